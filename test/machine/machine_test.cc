#include "compiler/machine/machine.h"

#include <algorithm>

#include "test/catch.h"

namespace ff {
namespace {

std::vector<std::string> names_of(const Machine& m, int from, int to) {
  std::vector<std::string> names;
  for (LinkId l : m.route(DeviceId(from), DeviceId(to))) names.push_back(m.links()[l.index()].name);
  return names;
}

Route route(const Machine& m, int from, int to) { return m.route(DeviceId(from), DeviceId(to)); }

const std::string kKind =
    "device_kind { name: \"g\" backend: CUDA memory: \"1 GiB\" flops_f32: 1e12 memory_bandwidth: 1e11 }\n";

TEST_CASE("every preset loads and its text loads to the same machine") {
  struct Expected {
    const char* name;
    int devices, nodes;
  };
  const std::vector<Expected> expected = {
      {"cpu-1", 1, 1},      {"cpu-2", 2, 1},           {"cpu-4", 4, 1},      {"ethernet-4", 4, 4},
      {"p100-4x4", 16, 4},  {"p100-4x4-paper", 16, 4}, {"k80-16x4", 64, 16}, {"k80-16x4-paper", 64, 16},
      {"dgx-1-v100", 8, 1}, {"dgx-a100", 8, 1},        {"dgx-h100", 8, 1},   {"hgx-h200", 8, 1}};
  REQUIRE(preset_names().size() == expected.size());
  for (const Expected& e : expected) {
    INFO(e.name);
    const Machine m = load_machine(e.name);
    CHECK(m.name() == e.name);
    CHECK(m.num_devices() == e.devices);
    CHECK(m.num_nodes() == e.nodes);
    const Machine again = parse_machine(m.text(), "again");
    CHECK(again.text() == m.text());
    CHECK(again.hash() == m.hash());
    for (int a = 0; a < m.num_devices(); ++a) {
      for (int b = 0; b < m.num_devices(); ++b) {
        // A route is empty exactly from a device to itself, and its figures are those of its links.
        const Route r = route(m, a, b);
        REQUIRE(r.empty() == (a == b));
        Nanoseconds latency = 0;
        double least = a == b ? 0 : 1e300;
        for (LinkId l : r) {
          latency += m.links()[l.index()].latency;
          least = std::min(least, m.links()[l.index()].bandwidth);
        }
        REQUIRE(r.latency == latency);
        REQUIRE(r.bandwidth == least);
      }
    }
  }
}

TEST_CASE("a preset takes more or fewer nodes and devices and fills nodes in order") {
  CHECK(load_machine("p100-4x4:nodes=2").num_devices() == 8);
  CHECK(load_machine("p100-4x4:nodes=8").num_devices() == 32);
  const Machine six = load_machine("p100-4x4:devices=6");
  CHECK(six.num_devices() == 6);
  CHECK(six.num_nodes() == 2);
  CHECK(six.node_of(DeviceId(3)) == 0);
  CHECK(six.node_of(DeviceId(4)) == 1);
  CHECK(six.devices()[5].name == "node1/gpu1");
  CHECK(parse_machine(six.text(), "six").num_devices() == 6);
  CHECK(load_machine("p100-4x4:devices=2").num_nodes() == 1);
  CHECK(load_machine("p100-4x4:devices=16").num_nodes() == 4);
  CHECK(load_machine("k80-16x4:devices=1024").num_nodes() == 256);
  CHECK(load_machine("cpu-4:devices=3").num_nodes() == 1);
  CHECK(load_machine("cpu-4:devices=8").num_devices() == 8);
  CHECK(load_machine("dgx-1-v100:devices=12").num_nodes() == 2);
}

TEST_CASE("p100 routes have the published bandwidths") {
  const Machine m = load_machine("p100-4x4");
  // Inside a node one NVLink of 20 GB/s each way; between nodes two PCIe 3.0 x16 (11 GB/s) and two EDR cards
  // (100 Gb/s / 8 = 12.5 GB/s): the least is 11.
  CHECK(names_of(m, 0, 3) == std::vector<std::string>{"node0/gpu0>gpu3"});
  CHECK(route(m, 0, 3).bandwidth == 20e9);
  CHECK(names_of(m, 1, 6) == std::vector<std::string>{"node0/gpu1>pcie", "node0/pcie>network",
                                                      "node1/network>pcie", "node1/pcie>gpu2"});
  CHECK(route(m, 1, 6).bandwidth == 11e9);
  // 1000 + 500 on each side.
  CHECK(route(m, 1, 6).latency == 3000);
  CHECK(m.kind_of(DeviceId(0)).flops_f32 == 10.6e12);
  CHECK(m.kind_of(DeviceId(0)).memory_bytes == int64_t{16} << 30);
}

TEST_CASE("adjacent k80 devices use their own switch and pairs of a node share the root") {
  const Machine m = load_machine("k80-16x4");
  CHECK(names_of(m, 0, 1) == std::vector<std::string>{"node0/gpu0>plx0", "node0/plx0>gpu1"});
  CHECK(names_of(m, 2, 3) == std::vector<std::string>{"node0/gpu2>plx1", "node0/plx1>gpu3"});
  const auto across = names_of(m, 0, 2);
  CHECK(across ==
        std::vector<std::string>{"node0/gpu0>plx0", "node0/plx0>root", "node0/root>plx1", "node0/plx1>gpu2"});
  CHECK(names_of(m, 1, 3)[1] == across[1]);
  // All four devices leave their node by one link to the host and one card.
  CHECK(names_of(m, 0, 4)[2] == "node0/root>host");
  CHECK(names_of(m, 3, 9)[2] == "node0/root>host");
}

TEST_CASE("no route between nodes is faster than the network card") {
  for (const auto& [name, card] : std::vector<std::pair<std::string, double>>{
           {"ethernet-4", 0.118e9}, {"p100-4x4", 12.5e9}, {"k80-16x4", 6.3e9}, {"dgx-h100:nodes=2", 50e9}}) {
    const Machine m = load_machine(name);
    for (int a = 0; a < m.num_devices(); ++a) {
      for (int b = 0; b < m.num_devices(); ++b) {
        if (m.node_of(DeviceId(a)) != m.node_of(DeviceId(b))) REQUIRE(route(m, a, b).bandwidth <= card);
      }
    }
  }
}

TEST_CASE("a half duplex link is one link in both directions and a full duplex one is two") {
  const auto pair = [](const std::string& duplex) {
    return parse_machine(
        "name: \"m\"\n" + kKind +
            "node { device { kind: \"g\" count: 2 } link { from: \"gpu0\" to: \"gpu1\" bandwidth: 5e9 " +
            duplex + " } }",
        "m");
  };
  const Machine half = pair("duplex: HALF"), full = pair("");
  CHECK(half.num_links() == 1);
  CHECK(*route(half, 0, 1).begin() == *route(half, 1, 0).begin());
  CHECK(full.num_links() == 2);
  CHECK(*route(full, 0, 1).begin() != *route(full, 1, 0).begin());
}

TEST_CASE("a limited switch between nodes is on every route between them") {
  std::string text = preset_text("ethernet-4") + "network { bandwidth: 0.05e9 latency_ns: 7 }\n";
  const Machine m = parse_machine(text, "m");
  CHECK(names_of(m, 0, 2) == std::vector<std::string>{"node0/cpu0>network", "network", "node2/network>cpu0"});
  CHECK(route(m, 0, 2).bandwidth == 0.05e9);
  CHECK(route(m, 0, 2).latency == 50007);
}

TEST_CASE("routes pass through no other device and the wider of two equally short ones is taken") {
  const Machine m =
      parse_machine("name: \"m\"\n" + kKind +
                        "node { device { kind: \"g\" count: 3 } switch: \"slow\" switch: \"fast\"\n"
                        "link { from: \"gpu0\" to: \"gpu1\" bandwidth: 90e9 } link { from: \"gpu1\" to: "
                        "\"gpu2\" bandwidth: 90e9 }\n"
                        "link { from: \"gpu*\" to: \"slow\" bandwidth: 1e9 } link { from: \"gpu*\" to: "
                        "\"fast\" bandwidth: 2e9 } }",
                    "m");
  CHECK(names_of(m, 0, 2) == std::vector<std::string>{"node0/gpu0>fast", "node0/fast>gpu2"});
}

TEST_CASE("the hash follows a bandwidth and not a comment") {
  const std::string text = preset_text("p100-4x4");
  const Machine m = parse_machine(text, "m");
  CHECK(parse_machine("# a comment\n" + text, "m").hash() == m.hash());
  std::string other = text;
  const size_t at = other.find("bandwidth: 20e9");
  REQUIRE(at != std::string::npos);
  other.replace(at, 15, "bandwidth: 21e9");
  CHECK(parse_machine(other, "m").hash() != m.hash());
}

TEST_CASE("refinements are off by default and can be switched off") {
  const Machine plain = parse_machine("name: \"m\"\n" + kKind + "node { device { kind: \"g\" } }", "m");
  CHECK(plain.refinements() == Refinements{});
  CHECK(load_machine("k80-16x4-paper").refinements().synchronization == Synchronization::kServer);
  CHECK(load_machine("k80-16x4").refinements().collectives);
  const Machine cpu = load_machine("cpu-2");
  CHECK(cpu.refinements().message_holds_device);
  const Machine off = cpu.with_refinements(Refinements{});
  CHECK(off.refinements() == Refinements{});
  CHECK(off.num_links() == cpu.num_links());
  CHECK(off.hash() != cpu.hash());
  CHECK(off.with_refinements(cpu.refinements()).refinements() == cpu.refinements());
}

TEST_CASE("an op family without an entry has the default efficiency") {
  const Machine m = load_machine("p100-4x4");
  CHECK(m.kinds()[0].efficiency("conv").fraction == 0.92);
  CHECK(m.kinds()[0].efficiency("gather").family == "default");
  CHECK(DeviceKind{}.efficiency("conv").fraction == 1);
}

}  // namespace
}  // namespace ff
