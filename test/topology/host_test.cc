#include "tools/fftopo/host.h"

#include <cstdlib>

#include "compiler/machine/machine.h"
#include "test/catch.h"

namespace ff {
namespace {

Machine machine_of(const Host& host) {
  return parse_machine("name: \"host\"\n" + host_machine_text(host), "machine");
}

TEST_CASE("this host has cores, memory and rates, and is a machine") {
  Host host = detect_host(true);
  CHECK(host.cores() >= 1);
  CHECK(host.memory_bytes > 0);
  host.rates = measure_rates(host);
  CHECK(host.rates.flops > 1e8);
  CHECK(host.rates.copied > 1e7);
  CHECK(machine_of(host).num_devices() == host.cores());
  CHECK(host_facts(host).find("cores: " + std::to_string(host.cores())) != std::string::npos);
}

TEST_CASE("hosts of two NUMA nodes are seen as hwloc sees them") {
  setenv("HWLOC_SYNTHETIC", "numa:2 core:2 pu:2", 1);
  const Host host = detect_host(true);
  unsetenv("HWLOC_SYNTHETIC");
  // A container that is granted fewer processors has fewer.
  CHECK(host.cores() <= 4);
  if (host.cores() == 4) CHECK(host.numa_of_core == std::vector<int>{0, 0, 1, 1});
}

TEST_CASE("cores of one NUMA node share a link that others do not use") {
  Host host;
  host.numa_of_core = {0, 0, 1, 1};
  host.numa_nodes = 2;
  host.memory_bytes = int64_t{16} << 30;
  host.rates = {100e9, 6e9};
  const Machine machine = machine_of(host);
  CHECK(machine.num_devices() == 4);
  CHECK(machine.kinds()[0].memory_bytes == int64_t{4} << 30);
  CHECK(machine.kinds()[0].flops_f32 == Approx(85e9));
  CHECK(machine.kinds()[0].memory_bandwidth == Approx(12e9));
  CHECK(machine.route(DeviceId(0), DeviceId(1)).size == 2);
  CHECK(machine.route(DeviceId(0), DeviceId(2)).size == 4);
  CHECK(machine.route(DeviceId(0), DeviceId(2)).bandwidth == Approx(6e9));
  CHECK(machine.refinements().message_holds_device);
}

}  // namespace
}  // namespace ff
