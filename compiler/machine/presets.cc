// The machines that are known by name. Every figure has its source beside it.

#include "compiler/base/check.h"
#include "compiler/machine/machine.h"

namespace ff {
namespace {

const char kCpuKind[] = R"(
# Rates of one core of a Zen 5 server with AVX-512 under oneDNN 2.6 (one thread): matmul 1024^3 at 230
# GFLOP/s, 3x3 convolution at 218 to 239, LSTM at 220; 12 GB/s of memory bandwidth a core with all cores at
# work. flops_f32 is that matmul rate, so that fractions are of what the library reaches and not of the data
# sheet.
device_kind {
  name: "cpu-core" backend: CPU memory: "8 GiB" flops_f32: 230e9 memory_bandwidth: 12e9 threads: 1
  efficiency { family: "matmul" half_work: 0.5e6 }
  efficiency { family: "conv" half_work: 0.5e6 }
  efficiency { family: "lstm" fraction: 0.96 half_work: 0.5e6 }
  efficiency { family: "default" fraction: 0.1 }   # elementwise work runs at the speed of memory
  kernel_launch_ns: 1000 message_launch_ns: 1000
}
)";

const char kCpuNode[] =
    R"(
# Shared memory transport of Open MPI 4.1: 64 MB both ways in 10.6 ms is 6.3 GB/s; about 1 us a message. A
# rank moves data with its own core, so messages hold their devices. A copy reads and writes, a sum reads two
# and writes one.
# Estimates, not measured: the copy and reduction rates and the overhead a message.
  link { kind: HOST_MEMORY from: "cpu*" to: "host" bandwidth: 6.3e9 latency_ns: 500 }
}
refinements {
  collectives: true message_holds_device: true copy_bandwidth: 6e9 reduction_bandwidth: 4e9 message_overhead_ns: 500
}
)";

const char kEthernetNode[] = R"(
# Four one-core hosts on 1 Gbit/s: 64 MB both ways measured 0.118 to 0.120 GB/s a direction; 50 us from rank
# to rank. The kernel copies through sockets beside the compute, which costs the core some percent while
# messages run.
# Estimates, not measured: overlap_slowdown, the copy and reduction rates and the overhead a message.
node {
  name: "host" count: 4
  device { kind: "cpu-core" }
  link { kind: NIC from: "cpu0" to: "network" bandwidth: 0.118e9 latency_ns: 25000 }
}
refinements {
  collectives: true overlap_slowdown: 1.1 copy_bandwidth: 6e9 reduction_bandwidth: 4e9 message_overhead_ns: 10000
}
)";

const char kP100[] = R"(
# Published: NVIDIA Tesla P100 SXM2 16 GB, 10.6 TFLOP/s fp32, 5.3 fp64, 732 GB/s; NVLink 20 GB/s each way a
# link; PCIe 3.0 x16 gives about 11 GB/s; EDR InfiniBand 100 Gb/s = 12.5 GB/s, one card a node, shared by its
# devices. Fractions are calibrated on published one-GPU training rates (training = 3 x forward, 2 flops a
# multiply-add):
#   AlexNet    4.2 GFLOP a sample x 2254 samples/s =  9.5 TFLOP/s = 0.89 of peak (Winograd, large batch):
#   conv 0.92; ResNet-101 46.8 GFLOP x 159 = 7.4 TFLOP/s; at 0.92 less small kernels, the rest is memory
#   traffic of batch norm; LSTM, 1024 hidden, batch 64: 8.1 GFLOP x 551 = 4.4 TFLOP/s = 0.42; a step of a
#   layer is 1.07 GFLOP, hence half_work 1.2e9 at 0.9: 0.9 x 1.07 / 2.27 = 0.42. With the projection to
#   32,000 words at 0.92 that gives NMT about 370 (358). Worse by the same sums: a two-layer LSTM of 2048, 280 (350);
#   Inception-v3, about 190 (149), whose many small kernels one half_work does not fit.
# Estimates, not measured: latencies, launch times, memory fractions and all of "default".
device_kind {
  name: "p100" backend: CUDA memory: "16 GiB" flops_f32: 10.6e12 flops_f64: 5.3e12 memory_bandwidth: 732e9
  efficiency { family: "conv" fraction: 0.92 half_work: 1.5e9 memory_fraction: 0.8 }
  efficiency { family: "matmul" fraction: 0.92 half_work: 1e9 memory_fraction: 0.8 }
  efficiency { family: "lstm" fraction: 0.9 half_work: 1.2e9 memory_fraction: 0.8 }
  efficiency { family: "default" fraction: 0.5 memory_fraction: 0.75 }
  kernel_launch_ns: 5000 message_launch_ns: 5000
}
node {
  count: 4
  device { kind: "p100" count: 4 }
  switch: "pcie"
  link { kind: NVLINK from: "gpu*" to: "gpu*" bandwidth: 20e9 latency_ns: 1000 }
  link { kind: PCIE from: "gpu*" to: "pcie" bandwidth: 11e9 latency_ns: 1000 }
  link { kind: NIC from: "pcie" to: "network" bandwidth: 12.5e9 latency_ns: 500 }
}
)";

const char kK80[] = R"(
# Published: NVIDIA Tesla K80, per GPU: 12 GB, about 4.4 TFLOP/s fp32 boosted, 240 GB/s; fp64 is a third.
# Adjacent GPUs share a PCIe switch of their own; all four reach the host through one shared switch, PCIe 3.0
# x16, about 11 GB/s. FDR InfiniBand 56 Gb/s = 7 GB/s; published data-parallel AlexNet (244 MB of weights, 64
# GPUs, 2.46 s over the one-GPU step, through one server) shows 6.3 GB/s of it, which is used here.
# Calibrated as above: AlexNet 4.2 GFLOP x 615 = 2.6 TFLOP/s = 0.59; ResNet-101 46.8 x 39 = 1.8 TFLOP/s =
# 0.41 with its memory traffic; LSTM with 1024 hidden 8.1 x 155 = 1.25 TFLOP/s = 0.28 = 0.65 x 1.07 / (1.07
# + 1.4).
# Estimates, not measured: latencies, launch times, memory fractions and all of "default".
device_kind {
  name: "k80" backend: CUDA memory: "12 GiB" flops_f32: 4.4e12 flops_f64: 1.45e12 memory_bandwidth: 240e9
  efficiency { family: "conv" fraction: 0.6 half_work: 1e9 memory_fraction: 0.8 }
  efficiency { family: "matmul" fraction: 0.65 half_work: 1e9 memory_fraction: 0.8 }
  efficiency { family: "lstm" fraction: 0.65 half_work: 1.4e9 memory_fraction: 0.8 }
  efficiency { family: "default" fraction: 0.5 memory_fraction: 0.7 }
  kernel_launch_ns: 8000 message_launch_ns: 8000
}
node {
  count: 16
  device { kind: "k80" count: 4 }
  switch: "plx0" switch: "plx1" switch: "root"
  link { kind: PCIE from: "gpu0" to: "plx0" bandwidth: 11e9 latency_ns: 1000 }
  link { kind: PCIE from: "gpu1" to: "plx0" bandwidth: 11e9 latency_ns: 1000 }
  link { kind: PCIE from: "gpu2" to: "plx1" bandwidth: 11e9 latency_ns: 1000 }
  link { kind: PCIE from: "gpu3" to: "plx1" bandwidth: 11e9 latency_ns: 1000 }
  link { kind: SWITCH from: "plx0" to: "root" bandwidth: 11e9 latency_ns: 500 }
  link { kind: SWITCH from: "plx1" to: "root" bandwidth: 11e9 latency_ns: 500 }
  link { kind: PCIE from: "root" to: "host" bandwidth: 11e9 latency_ns: 500 }
  link { kind: NIC from: "host" to: "network" bandwidth: 6.3e9 latency_ns: 1000 }
}
)";

const char kV100[] = R"(
# NVIDIA's data sheets. Fractions: no calibration of our own; 0.8 of peak is what the vendor's libraries are
# known to reach on large matrices. dgx-1-v100: V100 SXM2 16 GB, 15.7 TFLOP/s fp32, 900 GB/s, hybrid cube
# mesh of six 25 GB/s NVLinks a GPU (pairs with two links are written at 50e9), four EDR cards, two GPUs
# each. Latencies and launch times are estimates.
device_kind {
  name: "v100" backend: CUDA memory: "16 GiB" flops_f32: 15.7e12 flops_f64: 7.8e12 memory_bandwidth: 900e9
  efficiency { family: "default" fraction: 0.8 half_work: 1e9 memory_fraction: 0.8 }
  kernel_launch_ns: 5000 message_launch_ns: 5000
}
node {
  device { kind: "v100" count: 8 }
  switch: "plx0" switch: "plx1" switch: "plx2" switch: "plx3"
  link { kind: NVLINK from: "gpu0" to: "gpu1" bandwidth: 25e9 latency_ns: 1000 }
  link { kind: NVLINK from: "gpu0" to: "gpu2" bandwidth: 25e9 latency_ns: 1000 }
  link { kind: NVLINK from: "gpu0" to: "gpu3" bandwidth: 50e9 latency_ns: 1000 }
  link { kind: NVLINK from: "gpu0" to: "gpu4" bandwidth: 50e9 latency_ns: 1000 }
  link { kind: NVLINK from: "gpu1" to: "gpu2" bandwidth: 50e9 latency_ns: 1000 }
  link { kind: NVLINK from: "gpu1" to: "gpu3" bandwidth: 25e9 latency_ns: 1000 }
  link { kind: NVLINK from: "gpu1" to: "gpu5" bandwidth: 50e9 latency_ns: 1000 }
  link { kind: NVLINK from: "gpu2" to: "gpu3" bandwidth: 50e9 latency_ns: 1000 }
  link { kind: NVLINK from: "gpu2" to: "gpu6" bandwidth: 25e9 latency_ns: 1000 }
  link { kind: NVLINK from: "gpu3" to: "gpu7" bandwidth: 25e9 latency_ns: 1000 }
  link { kind: NVLINK from: "gpu4" to: "gpu5" bandwidth: 25e9 latency_ns: 1000 }
  link { kind: NVLINK from: "gpu4" to: "gpu6" bandwidth: 25e9 latency_ns: 1000 }
  link { kind: NVLINK from: "gpu4" to: "gpu7" bandwidth: 50e9 latency_ns: 1000 }
  link { kind: NVLINK from: "gpu5" to: "gpu6" bandwidth: 50e9 latency_ns: 1000 }
  link { kind: NVLINK from: "gpu5" to: "gpu7" bandwidth: 25e9 latency_ns: 1000 }
  link { kind: NVLINK from: "gpu6" to: "gpu7" bandwidth: 50e9 latency_ns: 1000 }
  link { kind: PCIE from: "gpu0" to: "plx0" bandwidth: 11e9 latency_ns: 1000 }
  link { kind: PCIE from: "gpu1" to: "plx0" bandwidth: 11e9 latency_ns: 1000 }
  link { kind: PCIE from: "gpu2" to: "plx1" bandwidth: 11e9 latency_ns: 1000 }
  link { kind: PCIE from: "gpu3" to: "plx1" bandwidth: 11e9 latency_ns: 1000 }
  link { kind: PCIE from: "gpu4" to: "plx2" bandwidth: 11e9 latency_ns: 1000 }
  link { kind: PCIE from: "gpu5" to: "plx2" bandwidth: 11e9 latency_ns: 1000 }
  link { kind: PCIE from: "gpu6" to: "plx3" bandwidth: 11e9 latency_ns: 1000 }
  link { kind: PCIE from: "gpu7" to: "plx3" bandwidth: 11e9 latency_ns: 1000 }
  link { kind: PCIE from: "plx0" to: "host" bandwidth: 11e9 latency_ns: 500 }
  link { kind: PCIE from: "plx1" to: "host" bandwidth: 11e9 latency_ns: 500 }
  link { kind: PCIE from: "plx2" to: "host" bandwidth: 11e9 latency_ns: 500 }
  link { kind: PCIE from: "plx3" to: "host" bandwidth: 11e9 latency_ns: 500 }
  link { kind: NIC from: "plx0" to: "network" bandwidth: 12.5e9 latency_ns: 500 }
  link { kind: NIC from: "plx1" to: "network" bandwidth: 12.5e9 latency_ns: 500 }
  link { kind: NIC from: "plx2" to: "network" bandwidth: 12.5e9 latency_ns: 500 }
  link { kind: NIC from: "plx3" to: "network" bandwidth: 12.5e9 latency_ns: 500 }
}
)";

struct NvSwitchNode {
  const char* kind;    // device kind's fields
  const char* nvlink;  // bytes per second each way, per GPU
  const char* nic;     // one card a GPU
};

// Latencies, launch times and half_work are estimates. NVSwitch joins eight GPUs; every GPU has a network
// card of its own behind its PCIe switch.
//   A100 SXM 40 GB: 19.5 TFLOP/s fp32, 9.7 fp64, 312 bf16 (dense), 1555 GB/s; NVLink 300 GB/s each way; HDR
//   200 Gb/s. H100 SXM 80 GB: 67 TFLOP/s fp32, 34 fp64, 989 bf16 (dense), 3.35 TB/s; NVLink 450 GB/s each
//   way; NDR 400 Gb/s. H200 SXM 141 GB (139 GiB for programs): as H100 with 4.8 TB/s.
const NvSwitchNode kA100 = {
    R"(name: "a100" memory: "40 GiB" flops_f32: 19.5e12 flops_f64: 9.7e12 flops_bf16: 312e12 memory_bandwidth: 1555e9)",
    "300e9", "25e9"};
const NvSwitchNode kH100 = {
    R"(name: "h100" memory: "80 GiB" flops_f32: 67e12 flops_f64: 34e12 flops_bf16: 989e12 memory_bandwidth: 3350e9)",
    "450e9", "50e9"};
const NvSwitchNode kH200 = {
    R"(name: "h200" memory: "139 GiB" flops_f32: 67e12 flops_f64: 34e12 flops_bf16: 989e12 memory_bandwidth: 4800e9)",
    "450e9", "50e9"};

const char kCollectives[] = "refinements { collectives: true }\n";
// As the published systems did it; a device's copy engines work on all its messages at once.
const char kServer[] = "refinements { synchronization: SERVER links_only: true }\n";

std::string named(const std::string& name, const std::string& rest) {
  return "name: \"" + name + "\"\n" + rest;
}

std::string cpu(int cores) {
  const std::string n = std::to_string(cores);
  return named("cpu-" + n,
               kCpuKind + ("node {\n  device { kind: \"cpu-core\" count: " + n + " }\n") + kCpuNode);
}

std::string nvswitch(const std::string& name, const std::string& short_name, const NvSwitchNode& node) {
  std::string text =
      "device_kind {\n  backend: CUDA " + std::string(node.kind) +
      "\n  efficiency { family: \"default\" fraction: 0.8 half_work: 2e9 memory_fraction: 0.8 }\n"
      "  kernel_launch_ns: 4000 message_launch_ns: 4000\n}\nnode {\n  device { kind: \"" +
      short_name + "\" count: 8 }\n  switch: \"nvswitch\"\n" +
      "  link { kind: NVLINK from: \"gpu*\" to: \"nvswitch\" bandwidth: " + node.nvlink +
      " latency_ns: 500 }\n" + "  link { kind: NIC from: \"gpu*\" to: \"network\" bandwidth: " + node.nic +
      " latency_ns: 1500 }\n}\n";
  return named(name, text + kCollectives);
}

}  // namespace

std::vector<std::string> preset_names() {
  return {"cpu-1",    "cpu-2",          "cpu-4",      "ethernet-4", "p100-4x4", "p100-4x4-paper",
          "k80-16x4", "k80-16x4-paper", "dgx-1-v100", "dgx-a100",   "dgx-h100", "hgx-h200"};
}

std::string preset_text(const std::string& name) {
  if (name == "cpu-1") return cpu(1);
  if (name == "cpu-2") return cpu(2);
  if (name == "cpu-4") return cpu(4);
  if (name == "ethernet-4") return named(name, std::string(kCpuKind) + kEthernetNode);
  if (name == "p100-4x4") return named(name, std::string(kP100) + kCollectives);
  if (name == "p100-4x4-paper") return named(name, std::string(kP100) + kServer);
  if (name == "k80-16x4") return named(name, std::string(kK80) + kCollectives);
  if (name == "k80-16x4-paper") return named(name, std::string(kK80) + kServer);
  if (name == "dgx-1-v100") return named(name, std::string(kV100) + kCollectives);
  if (name == "dgx-a100") return nvswitch(name, "a100", kA100);
  if (name == "dgx-h100") return nvswitch(name, "h100", kH100);
  if (name == "hgx-h200") return nvswitch(name, "h200", kH200);
  throw UserError("there is no machine preset '" + name + "'", "ffcompile --list-presets prints all of them");
}

}  // namespace ff
