#include "tools/fftopo/host.h"

#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>

#include "compiler/base/check.h"
#include "compiler/base/units.h"
#include "tools/fftopo/topology.h"

namespace ff {
namespace {

constexpr int kDigits = 3;  // what such a measurement is worth

using TopologyHandle = std::unique_ptr<hwloc_topology, void (*)(hwloc_topology_t)>;
using Bitmap = std::unique_ptr<hwloc_bitmap_s, void (*)(hwloc_bitmap_t)>;

TopologyHandle load_topology() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) throw RunError("hwloc cannot be started");
  TopologyHandle handle(topology, hwloc_topology_destroy);
  if (hwloc_topology_load(topology) != 0) throw RunError("hwloc cannot read this host's topology");
  return handle;
}

/// The cores that this process may use; all of them where the system does not say.
Bitmap usable(hwloc_topology_t topology, bool heed_binding) {
  Bitmap set(hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(topology)), hwloc_bitmap_free);
  const Bitmap bound(hwloc_bitmap_alloc(), hwloc_bitmap_free);
  if (heed_binding && hwloc_get_cpubind(topology, bound.get(), HWLOC_CPUBIND_PROCESS) == 0 &&
      hwloc_bitmap_intersects(set.get(), bound.get()) != 0) {
    hwloc_bitmap_and(set.get(), set.get(), bound.get());
  }
  return set;
}

/// Of the NUMA nodes, the one that a core lies in.
int numa_of(hwloc_topology_t topology, hwloc_obj_t core) {
  const int nodes = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
  for (int n = 0; n < nodes; ++n) {
    const hwloc_obj_t node = hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, static_cast<unsigned>(n));
    if (hwloc_bitmap_isincluded(core->cpuset, node->cpuset) != 0) return n;
  }
  return 0;
}

/// The nodes that hold cores, numbered from 0 without gaps.
int renumber(std::vector<int>& nodes) {
  std::vector<int> known(nodes);
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  for (int& n : nodes) n = static_cast<int>(std::lower_bound(known.begin(), known.end(), n) - known.begin());
  return std::max(1, static_cast<int>(known.size()));
}

int64_t memory_of(hwloc_topology_t topology) {
  uint64_t bytes = 0;
  const int nodes = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
  for (int n = 0; n < nodes; ++n) {
    bytes += hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, static_cast<unsigned>(n))
                 ->attr->numanode.local_memory;
  }
  return static_cast<int64_t>(bytes);
}

/// What a container's control group grants: processors by its quota, memory by its limit.
void heed_container(Host& host) {
  double quota = 0, period = 0;
  if (std::ifstream("/sys/fs/cgroup/cpu.max") >> quota >> period && period > 0) {
    const int granted = std::max(1, static_cast<int>(quota / period));
    if (granted < host.cores()) {
      host.notes.push_back("of " + std::to_string(host.cores()) + " cores the container may use " +
                           std::to_string(granted));
      host.numa_of_core.resize(static_cast<size_t>(granted));
    }
  }
  int64_t limit = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> limit && limit > 0 && limit < host.memory_bytes) {
    host.notes.push_back("of " + format_bytes(host.memory_bytes) + " of memory the container may use " +
                         format_bytes(limit));
    host.memory_bytes = limit;
  }
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name[0] == '\0' ? "host" : name;
}

}  // namespace

Host detect_host(bool heed_binding) {
  const TopologyHandle handle = load_topology();
  hwloc_topology_t const topology = handle.get();
  const Bitmap set = usable(topology, heed_binding);
  Host host;
  host.name = host_name();
  const char* model = hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology), "CPUModel");
  const hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
  if (package != nullptr) model = hwloc_obj_get_info_by_name(package, "CPUModel");
  host.processor = model != nullptr ? model : "unknown processor";
  // Some virtual machines show no cores, only what threads run on.
  const bool cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0;
  const hwloc_obj_type_t type = cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  for (hwloc_obj_t at = nullptr; (at = hwloc_get_next_obj_by_type(topology, type, at)) != nullptr;) {
    if (hwloc_bitmap_intersects(at->cpuset, set.get()) != 0)
      host.numa_of_core.push_back(numa_of(topology, at));
  }
  host.memory_bytes = memory_of(topology);
  if (host.numa_of_core.empty() || host.memory_bytes <= 0) {
    throw RunError(
        "hwloc sees no cores or no memory on this host; write the machine file by hand, from --preset "
        "cpu-2");
  }
  heed_container(host);
  host.numa_nodes = renumber(host.numa_of_core);
  return host;
}

std::string host_facts(const Host& host) {
  std::ostringstream out;
  out << "host: " << host.name << " (" << host.processor << ")\n"
      << "cores: " << host.cores() << "\nNUMA nodes: " << host.numa_nodes
      << "\nmemory: " << format_bytes(host.memory_bytes) << "\n"
      << "each core, all at work: " << number_text(host.rates.flops / 1e9, kDigits)
      << " GFLOP/s of fused multiply-adds, " << number_text(host.rates.copied / 1e9, kDigits)
      << " GB/s copied\n";
  for (const std::string& note : host.notes) out << "note: " << note << "\n";
  return out.str();
}

std::string core_kind_text(const Host& host) {
  std::ostringstream out;
  out << "# flops_f32 is 0.85 of the multiply-adds measured, which is what large products reach of them; "
         "memory\n"
         "# bandwidth counts a copy's bytes twice, read and written. Estimates: half_work, the fraction of "
         "other\n"
         "# ops, launch times.\n"
      << "device_kind {\n  name: \"cpu-core\" backend: CPU memory: \""
      << host.memory_bytes / host.cores() / (1 << 20)
      << " MiB\" flops_f32: " << number_text(0.85 * host.rates.flops, kDigits)
      << " memory_bandwidth: " << number_text(2 * host.rates.copied, kDigits) << " threads: 1\n"
      << "  efficiency { family: \"matmul\" half_work: 0.5e6 }\n  efficiency { family: \"conv\" half_work: "
         "0.5e6 }\n"
      << "  efficiency { family: \"lstm\" fraction: 0.96 half_work: 0.5e6 }\n"
      << "  efficiency { family: \"default\" fraction: 0.1 }\n  kernel_launch_ns: 1000 message_launch_ns: "
         "1000\n}\n";
  return out.str();
}

std::string host_machine_text(const Host& host) {
  const double copied = host.rates.copied;
  const std::string rate = number_text(copied, kDigits);
  std::ostringstream out;
  out << core_kind_text(host) << "# Estimates: messages at the rate of a copy; mpirun -n "
      << std::max(2, host.cores())
      << " fftopo --measure measures them.\nnode {\n  device { kind: \"cpu-core\" count: " << host.cores()
      << " }\n";
  const auto link = [&](const std::string& from, const std::string& to) {
    out << "  link { kind: HOST_MEMORY from: \"" << from << "\" to: \"" << to << "\" bandwidth: " << rate
        << " latency_ns: " << (host.numa_nodes > 1 ? 250 : 500) << " }\n";
  };
  if (host.numa_nodes == 1) link("cpu*", "host");
  for (int n = 0; host.numa_nodes > 1 && n < host.numa_nodes; ++n) out << "  switch: \"numa" << n << "\"\n";
  for (int c = 0; host.numa_nodes > 1 && c < host.cores(); ++c) {
    link("cpu" + std::to_string(c), "numa" + std::to_string(host.numa_of_core[static_cast<size_t>(c)]));
  }
  for (int n = 0; host.numa_nodes > 1 && n < host.numa_nodes; ++n) {
    // Many cores use it at once: as wide as all of a node's.
    const auto cores = std::count(host.numa_of_core.begin(), host.numa_of_core.end(), n);
    out << "  link { kind: HOST_MEMORY from: \"numa" << n
        << "\" to: \"host\" bandwidth: " << number_text(copied * static_cast<double>(cores) / 2, kDigits)
        << " latency_ns: 500 }\n";
  }
  out << "}\nrefinements {\n  collectives: true message_holds_device: true copy_bandwidth: " << rate
      << " reduction_bandwidth: " << number_text(copied * 2 / 3, kDigits) << " message_overhead_ns: 500\n}\n";
  return out.str();
}

}  // namespace ff
