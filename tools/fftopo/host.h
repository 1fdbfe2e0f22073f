// This host as a machine of CPU cores, one device a core.
//
//   Host host = detect_host(/*heed_binding=*/true);   // 8 cores on 2 NUMA nodes, 64 GiB
//   host.rates = measure_rates(host);                 // a fraction of a second on all cores
//   host_machine_text(host)                           // device_kind { ... } node { device { ... count: 8 }
//   ... }
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ff {

/// Of one core while all are at work.
struct CoreRates {
  double flops = 0;   // f32 multiply-adds count two, per second
  double copied = 0;  // bytes per second that a copy brings to its destination
};

struct Host {
  std::string name, processor;
  std::vector<int> numa_of_core;  // numbers from 0, for each core
  int numa_nodes = 1;
  int64_t memory_bytes = 0;  // of all cores together
  CoreRates rates;
  std::vector<std::string> notes;

  int cores() const { return static_cast<int>(numa_of_core.size()); }
};

/// What hwloc sees, less what a container may not use. `heed_binding`: less the cores that this process is
/// kept off (taskset); a rank under mpirun is bound to its own core and wants to know of all.
Host detect_host(bool heed_binding);
/// Keeps every core busy for about a third of a second.
CoreRates measure_rates(const Host& host);

std::string host_facts(const Host& host);
/// The device kind of a core: its memory is an equal share of the host's.
std::string core_kind_text(const Host& host);
/// A machine file but for its name: kind, one node, links estimated from the rate of copies.
std::string host_machine_text(const Host& host);

}  // namespace ff
