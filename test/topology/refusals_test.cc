#include "test/catch.h"
#include "test/topology/import.h"

namespace ff {
namespace {

std::string refusal(const std::string& text) {
  try {
    recognise(text, "input");
  } catch (const UserError& e) {
    CHECK_FALSE(e.hint().empty());
    return e.what();
  }
  return "not refused";
}

TEST_CASE("XML of other things is refused by its name") {
  CHECK(
      refusal("<graphs version=\"1\"><graph id=\"0\"><channel><gpu dev=\"0\"/></channel></graph></graphs>") ==
      "input: this is an NCCL graph file (NCCL_GRAPH_FILE): rings and trees, not the machine they run on");
  const std::string hwloc = "input: this is hwloc's XML (lstopo), which does not say how GPUs are linked";
  CHECK(refusal(
            "<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n"
            "<object type=\"Machine\"><info name=\"Back") == hwloc);
  CHECK(refusal("<topology><object type=\"Machine\"/></topology>") == hwloc);
  CHECK(refusal("<svg/>") ==
        "input: this is XML with the root <svg>, not an NCCL topology, whose root is <system>");
  CHECK(refusal("<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000")
            .find("input: this is XML that is cut short or damaged, at byte ") == 0);
}

TEST_CASE("RCCL's topologies are refused, with and without links") {
  CHECK(refusal("<!-- AMD -->\n<system version=\"2\"><cpu><pci><gpu dev=\"0\" gcn=\"908\"><xgmi "
                "target=\"a\"/></gpu>"
                "</pci></cpu></system>") == "input: this is an RCCL topology (version 2, AMD GPUs)");
  CHECK(refusal("<system version=\"2\"><cpu><pci><gpu dev=\"0\"/></pci></cpu></system>") ==
        "input: this is an RCCL topology (version 2, where NCCL writes 1)");
}

TEST_CASE("templates that NCCL reads are refused, with what they lack") {
  CHECK(refusal("<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"1\" class=\"0x030200\"/>"
                "<pci busid=\"2\" class=\"0x020700\"/></cpu></system>") ==
        "input: this is an input template for NCCL (NCCL_TOPO_FILE), not a dump: it has no <gpu>, only 1 PCI "
        "functions "
        "of class 0x03, which may be GPUs; missing are their <gpu> and <nvlink> and the speeds of <net>");
  CHECK(refusal("<!-- c -->\n<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"1\"/><pci "
                "busid=\"2\"/></cpu></system>") ==
        "input: this is an input template for NCCL (NCCL_TOPO_FILE), not a dump: it has no <gpu>, and no "
        "class says "
        "which of its 2 PCI functions are GPUs");
}

TEST_CASE("output of other commands is refused by the command's name") {
  CHECK(refusal("  GPU0 GPU1\n GPU0 X OK\n GPU1 OK X\n\nLegend:\n  OK = Status Ok\n") ==
        "input: this is an nvidia-smi topo -p2p matrix: it says who may reach whom, not by what");
  CHECK(refusal("GPU 0: NVIDIA A100 (UUID: GPU-00)\n  MIG 1g.10gb Device 0: (UUID: MIG-01)\n") ==
        "input: this is nvidia-smi -L output, a list of GPUs and MIG devices without their links");
  CHECK(refusal("GPU 0: NVIDIA A100 (UUID: GPU-00)\n") ==
        "input: this is nvidia-smi -L output, a list of GPUs without their links");
  CHECK(refusal("==== ROCm System Management Interface ====\nGPU[0]\t: (Topology) Numa Node: 0\n") ==
        "input: this is rocm-smi output (AMD GPUs)");
  CHECK(refusal("| NVIDIA-SMI 550.54   Driver Version: 550.54 |\n") ==
        "input: this is nvidia-smi's table of GPUs, without their links");
}

TEST_CASE("a machine file, an empty file and anything else are told apart") {
  CHECK(refusal(preset_text("cpu-2")) == "input: this is a machine file already");
  CHECK(refusal(" \n") == "input: is empty");
  CHECK(refusal("hello") == "input: is not an NCCL topology, nvidia-smi topo -m output or nccl-tests output");
}

TEST_CASE("an unknown GPU is refused with the nearest name") {
  CHECK_THROWS_WITH(gpu_kind("a10"), "--gpu a10: no such GPU is known; did you mean 'a100'?");
  CHECK(find_gpu_name("NVIDIA A100-SXM4-80GB")->name == "a100-80");
  CHECK(find_gpu_name("NVIDIA GH200 480GB")->name == "gh200");
  CHECK(find_gpu_name("AMD Instinct MI300X") == nullptr);
}

TEST_CASE("GPUs that presets have, too, have the same figures there") {
  for (const char* preset : {"k80-16x4", "p100-4x4", "dgx-1-v100", "dgx-a100", "dgx-h100", "hgx-h200"}) {
    const DeviceKind there = load_machine(preset).kinds()[0];
    const std::string node = "node { device { kind: \"" + there.name + "\" } }\n";
    const DeviceKind here =
        parse_machine("name: \"m\"\n" + device_kind_text(gpu_kind(there.name)) + node, "machine").kinds()[0];
    CHECK(here.memory_bytes == there.memory_bytes);
    CHECK(here.flops_f32 == there.flops_f32);
    CHECK(here.flops_f64 == there.flops_f64);
    CHECK(here.flops_bf16 == there.flops_bf16);
    CHECK(here.memory_bandwidth == there.memory_bandwidth);
  }
}

}  // namespace
}  // namespace ff
