// The price of a redistribution's step on a machine.

#include <algorithm>
#include <cmath>

#include "compiler/simulator/parts.h"

namespace ff {
namespace {

Nanoseconds to_ns(double seconds) { return std::max<Nanoseconds>(1, std::llround(seconds * 1e9)); }

double seconds_of(int64_t bytes, double bandwidth) {
  return bandwidth > 0 ? static_cast<double>(bytes) / bandwidth : 0;
}

class Pricer {
 public:
  Pricer(const Step& step, const Machine& machine)
      : step_(step), machine_(machine), refine_(machine.refinements()) {}

  StepPrice price() {
    switch (step_.kind) {
      case StepKind::fill:
      case StepKind::copy:
        local(seconds_of(step_.bytes, refine_.copy_bandwidth));
        break;
      case StepKind::sum:
        local(seconds_of(step_.bytes * static_cast<int64_t>(step_.in.size()), refine_.reduction_bandwidth));
        break;
      case StepKind::message:
        message();
        break;
      default:
        collective();
        break;
    }
    std::sort(out_.resources.begin(), out_.resources.end());
    out_.resources.erase(std::unique(out_.resources.begin(), out_.resources.end()), out_.resources.end());
    return std::move(out_);
  }

 private:
  void local(double seconds) {
    out_.duration = to_ns(seconds);
    out_.resources.push_back(step_.group[0].value);
  }

  void hold(DeviceId device) {
    if (!refine_.links_only) out_.resources.push_back(machine_.num_devices() + device.value);
    if (refine_.message_holds_device) out_.resources.push_back(device.value);
  }

  void hold(const Route& route) {
    for (LinkId link : route) out_.resources.push_back(2 * machine_.num_devices() + link.value);
  }

  void message() {
    const Route route = machine_.route(step_.group[0], step_.group[1]);
    hold(step_.group[0]);
    hold(step_.group[1]);
    hold(route);
    out_.duration = std::max(launch(), route.latency + to_ns(seconds_of(step_.bytes, route.bandwidth)) +
                                           2 * refine_.message_overhead);
    out_.bytes_moved = step_.bytes;
  }

  Nanoseconds launch() const { return machine_.kind_of(step_.group[0]).message_launch; }

  /// Time of one round in which every member sends `bytes` to the next one on the ring; links that several
  /// pairs cross are shared.
  double ring_round(int64_t bytes) {
    std::vector<std::pair<int32_t, int>> load;  // link, pairs that cross it
    double latency = 0;
    const size_t n = step_.group.size();
    for (size_t i = 0; i < n; ++i) {
      const Route route = machine_.route(ring_[i], ring_[(i + 1) % n]);
      latency = std::max(latency, static_cast<double>(route.latency + 2 * refine_.message_overhead) * 1e-9);
      hold(route);
      for (LinkId link : route) {
        const auto at =
            std::find_if(load.begin(), load.end(), [link](const auto& l) { return l.first == link.value; });
        if (at == load.end()) {
          load.emplace_back(link.value, 1);
        } else {
          ++at->second;
        }
      }
    }
    double slowest = 0;
    for (const auto& [link, pairs] : load) {
      slowest =
          std::max(slowest, seconds_of(bytes * pairs, machine_.links()[static_cast<size_t>(link)].bandwidth));
    }
    return latency + slowest;
  }

  void collective() {
    for (DeviceId d : step_.group) hold(d);
    ring_ = step_.group;
    std::sort(ring_.begin(), ring_.end());  // neighbours in number are neighbours in the machine
    const auto members = static_cast<int64_t>(step_.group.size());
    const int64_t part = (step_.bytes + members - 1) / members;
    double seconds = 0;
    if (step_.kind == StepKind::broadcast) {
      seconds = ring_round(step_.bytes) * std::ceil(std::log2(static_cast<double>(members)));
      out_.bytes_moved = step_.bytes * (members - 1);
    } else {
      const bool both = step_.kind == StepKind::all_reduce;
      const double rounds = static_cast<double>(members - 1);
      seconds = rounds * ring_round(part) * (both ? 2 : 1);
      if (step_.kind != StepKind::all_gather)
        seconds += rounds * seconds_of(2 * part, refine_.reduction_bandwidth);
      out_.bytes_moved = step_.bytes * (members - 1) * (both ? 2 : 1);
    }
    out_.duration = std::max(launch(), to_ns(seconds));
  }

  const Step& step_;
  const Machine& machine_;
  const Refinements& refine_;
  std::vector<DeviceId> ring_;
  StepPrice out_;
};

}  // namespace

StepPrice price_step(const Step& step, const Machine& machine) { return Pricer(step, machine).price(); }

}  // namespace ff
