#include "test/catch.h"
#include "test/topology/import.h"

namespace ff {
namespace {

std::string ranks(int hosts, int each, const std::string& gpu) {
  std::string text =
      "# nThread 1 nGpus 1 minBytes 8 maxBytes 1073741824 step: 2(factor)\n#\n# Using devices\n";
  for (int r = 0; r < hosts * each; ++r) {
    text += "#  Rank  " + std::to_string(r) + " Group  0 Pid   41 on   host" + std::to_string(r / each) +
            " device  " + std::to_string(r % each) + " [0000:04:00] " + gpu + "\n";
  }
  return text + "#       size         count      type   redop    root     time   algbw   busbw #wrong\n";
}

const std::string kEnd = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 12.5\n";

TEST_CASE("a table among log lines gives bandwidth at the largest size and latency at the smallest") {
  const Read read("```\n$ mpirun -np 4 all_reduce_perf -b 8 -e 1G\n" + ranks(2, 2, "NVIDIA H100 80GB HBM3") +
                  "host0:41:41 [0] NCCL INFO Launch mode Parallel\n"
                  "           0             0     float     sum      -1     20.0    0.00    0.00      0     "
                  "20.0    0.00    0.00      0\n"
                  "           8             2     float     sum      -1     60.0    0.00    0.00      0     "
                  "63.0    0.00    0.00      0\n"
                  "======recvPeer:0======\n"
                  "  1073741824     268435456     float     sum      -1    53687   20.00   30.00      0    "
                  "53000   20.26   30.39      0\n" +
                  kEnd);
  CHECK(read.fact("GPUs") == "4 on 2 nodes, 2 each (NVIDIA H100 80GB HBM3)");
  CHECK(read.fact("collective") == "all_reduce, 2 sizes");
  CHECK(read.fact("largest, 1.00 GiB") == "bus bandwidth 30 GB/s out of place, 30.39 GB/s in place");
  CHECK(read.fact("peak bus bandwidth") == "30.39 GB/s");
  CHECK(read.fact("average bus bandwidth, small messages included") == "12.5 GB/s");
  CHECK(read.fact("latency") == "60.0 us for 8 B");
  // A ring of four takes six rounds, each the latency of the longest route: 60 us / 6.
  const Machine machine = parse_machine(read.imported.machine, "machine");
  CHECK(machine.route(DeviceId(1), DeviceId(2)).latency == 10000);
  CHECK(machine.route(DeviceId(1), DeviceId(2)).bandwidth == Approx(30.39e9));
  CHECK(machine.route(DeviceId(0), DeviceId(1)).bandwidth == Approx(300e9));
}

TEST_CASE("old output has no root, no check, and may lack the in-place half") {
  const Read read(ranks(1, 2, "Tesla K80") +
                  "     1048576        262144   float     sum    2410.0    0.44    0.44    N/A\n"
                  "     4194304       1048576   float     sum    8116.1    0.52    0.52    N/A   8000.0    "
                  "0.53    0.53  N/A\n");
  CHECK(read.fact("collective") == "all_reduce, 2 sizes");
  CHECK(read.fact("peak bus bandwidth") == "0.53 GB/s");
  CHECK(read.fact("latency") == "not measured, the smallest message is 1.0 MiB");
  CHECK(read.bandwidth(0, 1) == Approx(0.53e9));
}

TEST_CASE("a collective without a name is told by what its bus bandwidth is of") {
  const Read gathered(ranks(1, 4, "NVIDIA RTX A6000") +
                      "  1048576   65536   float    none      -1    170.5    6.15    4.61      0    166.9    "
                      "6.28    4.71      0\n");
  CHECK(gathered.fact("collective") == "all_gather, 1 sizes");
  const Read reduced(ranks(1, 4, "NVIDIA RTX A6000") +
                     "  1048576   262144   float    sum      -1    170.5    6.15    9.22      0    166.9    "
                     "6.28    9.42      0\n");
  CHECK(reduced.fact("collective") == "all_reduce, 1 sizes");
}

TEST_CASE("runs of small messages say that no bandwidth was measured") {
  const std::string run = ranks(2, 2, "NVIDIA GeForce RTX 3090");
  const Read read(run + "          64            16     float     sum    55.57    0.00    0.00    N/A\n" +
                  kEnd + run +
                  "         128            32     float     sum    61.60    0.00    0.00    N/A\n" + kEnd +
                  "# Using devices\n");
  CHECK(read.fact("bandwidth") == "not measured, the largest message is 128 B");
  CHECK(read.fact("average bus bandwidth") == "none of the whole, 2 runs have their own");
  CHECK(read.fact("note") ==
        "bandwidths in the machine file are assumed: of the GPUs' kind, and of the network --nic-gbits");
  CHECK(read.bandwidth(0, 2) == Approx(12.5e9));
}

TEST_CASE("output without results, without ranks or of unlike hosts is refused") {
  const std::string row = "          64            16     float     sum    55.57    0.00    0.00    N/A\n";
  CHECK_THROWS_WITH(Read(ranks(1, 2, "Tesla K80")), "input: nccl-tests output without a line of results");
  CHECK_THROWS_WITH(Read(row),
                    "input: nccl-tests output without 'Rank' lines: nothing says which GPUs took part");
  CHECK_THROWS_WITH(
      Read("# Rank 0 Pid 1 on a device 0 [0x01] V100\n# Rank 1 Pid 1 on a device 1 [0x02] V100\n"
           "# Rank 2 Pid 2 on b device 0 [0x01] V100\n" +
           row),
      "input: b has 1 GPUs, a 2");
}

}  // namespace
}  // namespace ff
