#include "tools/fftopo/measure.h"

#include "compiler/machine/machine.h"
#include "test/catch.h"

namespace ff {
namespace {

std::vector<TimedMessage> times_of(const Line& line) {
  std::vector<TimedMessage> times;
  for (const int64_t bytes : {8, 4096, 1 << 20, 16 << 20})
    times.push_back({bytes, line.at(static_cast<double>(bytes))});
  return times;
}

Measured two_hosts(const std::vector<std::string>& host_of_rank) {
  Measured m;
  m.host_of_rank = host_of_rank;
  m.host.numa_of_core = {0, 0};
  m.host.memory_bytes = int64_t{8} << 30;
  m.host.rates = {100e9, 6e9};
  m.inside = times_of({1e-6, 5e9});
  m.between = times_of({50e-6, 0.118e9});
  // Four ranks: six rounds of a quarter over the network, and sums of six quarters at 3e9 bytes a second.
  for (const int64_t bytes : {8, 4096, 1 << 20}) {
    const double part = static_cast<double>(bytes) / 4;
    m.all_reduce.push_back({bytes, 6 * (50e-6 + part / 0.118e9) + 6 * part / 3e9});
  }
  return m;
}

TEST_CASE("times on a line give its latency and bandwidth") {
  const Line line = fit_line(times_of({2e-6, 4e9}));
  CHECK(line.latency == Approx(2e-6).epsilon(1e-2));  // of eight bytes
  CHECK(line.bandwidth == Approx(4e9).epsilon(1e-4));
}

TEST_CASE("bursts and protocols of middling sizes bend no line") {
  std::vector<TimedMessage> times = times_of({15e-6, 0.118e9});
  times[1].seconds = 20e-6;  // not 50: 4 KiB go out in one burst
  CHECK(fit_line(times).bandwidth == Approx(0.118e9).epsilon(1e-3));
}

TEST_CASE("times that no line fits give what was seen") {
  // Larger messages that take less time would have a bandwidth below 0.
  const Line line = fit_line({{8, 4e-6}, {1 << 20, 2e-6}});
  CHECK(line.latency == Approx(4e-6));
  CHECK(line.bandwidth == Approx((1 << 20) / 2e-6));
  CHECK(fit_line({{8, 1e-6}}).latency == Approx(1e-6));
}

TEST_CASE("two hosts of two ranks become nodes whose routes take what messages took") {
  const Measured m = two_hosts({"a", "a", "b", "b"});
  const Machine machine = parse_machine("name: \"m\"\n" + measured_machine_text(m), "machine");
  CHECK(machine.num_nodes() == 2);
  CHECK(machine.num_devices() == 4);
  CHECK(machine.kinds()[0].memory_bytes == int64_t{4} << 30);
  CHECK(machine.route(DeviceId(0), DeviceId(1)).bandwidth == Approx(5e9).epsilon(1e-2));
  CHECK(machine.route(DeviceId(0), DeviceId(1)).latency == Approx(1000).epsilon(1e-2));
  CHECK(machine.route(DeviceId(1), DeviceId(2)).bandwidth == Approx(0.118e9).epsilon(1e-2));
  CHECK(machine.route(DeviceId(1), DeviceId(2)).latency == Approx(50000).epsilon(1e-2));
  CHECK(reduction_rate(m) == Approx(3e9).epsilon(1e-2));
  CHECK(machine.refinements().reduction_bandwidth == Approx(3e9).epsilon(1e-2));
}

TEST_CASE("one rank a host is joined by its network card alone") {
  Measured m = two_hosts({"a", "b"});
  m.inside.clear();
  const Machine machine = parse_machine("name: \"m\"\n" + measured_machine_text(m), "machine");
  CHECK(machine.route(DeviceId(0), DeviceId(1)).size == 2);
  CHECK(machine.route(DeviceId(0), DeviceId(1)).latency == Approx(50000).epsilon(1e-2));
  CHECK_FALSE(machine.refinements().message_holds_device);
}

TEST_CASE("hosts of unlike numbers of ranks are nodes of their own, and ranks in turn are noted") {
  const Measured m = two_hosts({"a", "b", "a"});
  const Machine machine = parse_machine("name: \"m\"\n" + measured_machine_text(m), "machine");
  CHECK(machine.num_nodes() == 2);
  CHECK(machine.num_devices() == 3);
  CHECK(measured_facts(m).find("note: ranks went from host to host in turn") != std::string::npos);
  CHECK(measured_facts(two_hosts({"a", "a", "b"})).find("note:") == std::string::npos);
}

}  // namespace
}  // namespace ff
