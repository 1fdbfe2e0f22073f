#include "test/catch.h"
#include "test/topology/import.h"

namespace ff {
namespace {

const std::string kLegend =
    "\nLegend:\n\n  X    = Self\n  SYS  = Connection\n  NV#  = Connection of # NVLinks\n";

TEST_CASE("columns, tabs, comments, Markdown and colours hold the same matrix") {
  const std::string texts[] = {
      "$ nvidia-smi topo -m\n        GPU0    GPU1    CPU Affinity    NUMA Affinity\n"
      "GPU0     X      NV4     0-7     1\nGPU1    NV4      X      8-15    0\n",
      "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\r\n"
      "GPU0\t X \tNV4\t0-7\t1\t\tN/A\r\nGPU1\tNV4\t X \t8-15\t0\t\tN/A\r\n",
      "# \tGPU0 GPU1 CPU Affinity NUMA Affinity\n# GPU0  X  NV4  0-7  1\n# GPU1 NV4  X  8-15  0\n",
      "| GPU  | GPU0 | GPU1 | CPU Affinity | NUMA Affinity | GPU NUMA ID "
      "|\n|------|------|------|---|---|---|\n"
      "| GPU0 | X    | NV4  | 0-7          | 1             | 4 |\n| GPU1 | NV4  | X    | 8-15 | 0 | 12 |\n",
      "\x1b[4m\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\x1b[0m\nGPU0\t X \tNV4\t0,2,4\t1\nGPU1\tNV4\t X "
      "\t1,3\t0\n"};
  for (const std::string& text : texts) {
    INFO(text);
    const Read read(text);
    CHECK(read.fact("GPUs") == "2 (a100, assumed)");
    CHECK(read.fact("NUMA nodes") == "2 (1, 0; of the GPUs: 1, 0)");
    CHECK(read.fact("NICs") == "0");
    CHECK(read.fact("link GPU0-GPU1") == "NV4");
    CHECK(read.fact("NVLinks of GPU0") == "4");
    CHECK(read.bandwidth(0, 1) == Approx(100e9));
  }
}

TEST_CASE("lost tabs between links, and the old word for another socket, are read") {
  const Read read(
      "\tGPU0\tGPU1\tmlx5_0\tmlx5_1\tCPU Affinity\n"
      "GPU0\t X \tSOC\tPIXNODE\t0-0,8-8\n"
      "GPU1\tSOC\t X NODE\tPIX\t16-16\n"
      "mlx5_0\tPIX\tNODE\t X \tNODE\t\nmlx5_1\tNODE\tPIX\tNODE\t X\n");
  CHECK(read.fact("link GPU0-GPU1") == "SYS");
  CHECK(read.fact("NUMA nodes") == "unknown: the input does not say");
  CHECK(read.fact("NICs") == "2: 2 x unknown speed (mlx5_0, mlx5_1)");
  CHECK(read.bandwidth(0, 1) == Approx(16e9));
}

TEST_CASE("as many NVLinks to every GPU as one GPU can have are a switch's") {
  std::string text = "GPU0 GPU1 GPU2 GPU3 NIC0 CPU Affinity NUMA Affinity\n";
  for (int g = 0; g < 4; ++g) {
    text += "GPU" + std::to_string(g);
    for (int other = 0; other < 4; ++other) text += other == g ? " X" : " NV12";
    text += " SYS 0-7 N/A\n";
  }
  const Read read(text + "NIC0 SYS SYS SYS SYS X\n" + kLegend + "\nNIC Legend:\n\n  NIC0: mlx5_9\n");
  CHECK(read.fact("NVLinks of GPU0") == "12");
  CHECK(read.fact("NICs") == "1: 1 x unknown speed (mlx5_9)");
  CHECK(read.bandwidth(1, 3) == Approx(300e9));
}

TEST_CASE("as many as fit are direct ones") {
  const Read read(
      "GPU0 GPU1 GPU2 CPU Affinity\nGPU0 X NV1 NV2 0-15\nGPU1 NV1 X NV2 0-15\nGPU2 NV2 NV2 X 0-15\n");
  CHECK(read.fact("NVLinks of GPU0") == "3");
  CHECK(read.bandwidth(0, 1) == Approx(25e9));
  CHECK(read.bandwidth(0, 2) == Approx(50e9));
}

TEST_CASE("PCIe switches are islands, joined to each other where the matrix says PXB") {
  const Read read(
      "GPU0 GPU1 GPU2 GPU3 CPU Affinity\nGPU0 X PIX PXB PXB 0-3\nGPU1 PIX X PXB PXB 0-3\n"
      "GPU2 PXB PXB X PIX 0-3\nGPU3 PXB PXB PIX X 0-3\n");
  const Machine machine = parse_machine(read.imported.machine, "machine");
  CHECK(machine.route(DeviceId(0), DeviceId(1)).size == 2);
  CHECK(machine.route(DeviceId(0), DeviceId(2)).size == 3);
}

TEST_CASE("every GPU may be far from every other, within one socket as well") {
  const Read read(
      "GPU0 GPU1 GPU2 CPU Affinity NUMA Affinity\nGPU0 X SYS SYS 0-3 0\nGPU1 SYS X SYS 0-3 0\n"
      "GPU2 SYS SYS X 4-7 1\n");
  CHECK(read.fact("link GPU0-GPU1") == "SYS");
  CHECK(read.bandwidth(0, 1) == Approx(16e9));
}

TEST_CASE("a p2p matrix in the same text takes the way past the host away") {
  const std::string matrix =
      "GPU0 GPU1 CPU Affinity NUMA Affinity\nGPU0 X PIX 24-47 1\nGPU1 PIX X 24-47 1\n" + kLegend;
  const Read direct(matrix),
      refused(matrix + "$ nvidia-smi topo -p2p p\n  GPU0 GPU1\n GPU0 X NS\n GPU1 NS X\n");
  CHECK(direct.imported.machine.find("plx0") != std::string::npos);
  CHECK(refused.imported.machine.find("plx0") == std::string::npos);
  CHECK(refused.fact("note") == "GPUs cannot reach each other (p2p says so): all goes by the host");
}

TEST_CASE("equal matrices in one text are hosts, others are refused") {
  const std::string one =
      "$ nvidia-smi topo -m\nGPU0 GPU1 NIC0 CPU Affinity\nGPU0 X NV2 PIX 0-7\nGPU1 NV2 X PIX 0-7\n"
      "NIC0 PIX PIX X\n";
  const std::string other = "GPU0 GPU1 NIC0 CPU Affinity\nGPU0 X SYS PIX 0-7\nGPU1 SYS X PIX 0-7\n";
  const Read read(one + kLegend + one);
  CHECK(read.fact("GPUs") == "2 on each of 2 hosts (a100, assumed)");
  CHECK(read.bandwidth(0, 2) == Approx(12.5e9));
  CHECK_THROWS_WITH(Read(one + other), "input: holds matrices of hosts that differ");
}

TEST_CASE("topo -mp is said to hide NVLinks") {
  const Read read("> nvidia-smi topo -mp\nGPU0 GPU1 CPU Affinity\nGPU0 X NODE 0-7\nGPU1 NODE X 0-7\n");
  CHECK(read.fact("note") == "this is topo -mp, which does not show NVLinks: import what topo -m prints");
}

TEST_CASE("rows that are cut or missing are named") {
  const std::string header = "GPU0 GPU1 CPU Affinity\n";
  CHECK_THROWS_WITH(Read(header + "GPU0 X NV2 0-7\nGPU1 NV2\n"),
                    "input:3: the row of GPU1 has 1 links, the header 2 columns");
  CHECK_THROWS_WITH(Read(header + "GPU0 X NV2 0-7\n"), "input: the matrix has no row of GPU1");
}

}  // namespace
}  // namespace ff
