#include "compiler/driver/costs.h"

#include <cstdio>

#include "compiler/base/check.h"
#include "compiler/cost/measured_cost.h"
#include "compiler/cost/profiled_cost.h"
#include "compiler/cost/roofline.h"
#include "executor/kernels/cpu/registry.h"

namespace ff {

std::string CostFlags::kind(const Machine& machine) const {
  return given.value_or(machine.kinds()[0].backend == Backend::kCpu ? "measured" : "roofline");
}

Costs make_costs(const CostFlags& flags, const Machine& machine) {
  const DeviceKind& kind = machine.kinds()[0];
  const bool cpu = kind.backend == Backend::kCpu;
  const std::string cost = flags.kind(machine);
  if (flags.device == "cuda")
    throw UserError("--device cuda: this build has no CUDA kernels", "use --cost roofline, or --device cpu");
  Costs out;
  // Ranks of one node compute at once and share its memory.
  int ranks = 0;
  for (int d = 0; d < machine.num_devices(); ++d) ranks += machine.node_of(DeviceId(d)) == 0;
  if (cpu) {
    out.profiler =
        std::make_unique<CpuProfiler>([](const KernelCall& call) { return cpu::make_kernel(call); },
                                      CpuProfilerOptions{kind.threads, ranks});
  }
  const ProfileHeader header{kind.name, kind.threads, cpu_libraries()};
  const std::string path = flags.profile.empty() ? default_profile_path(header) : flags.profile;
  if (cost == "roofline") {
    out.model = std::make_unique<RooflineCost>();
  } else if (cost == "profile") {
    out.store = ProfileStore::read(path);
    out.model = std::make_unique<ProfiledCost>(*out.store, ranks);
  } else if (cost == "measured") {
    if (!cpu)
      throw UserError("--cost measured: machine " + machine.name() + " has no CPU devices",
                      "use --cost roofline or profile");
    out.store = ProfileStore::open(path, header);
    out.model = std::make_unique<MeasuredCost>(
        *out.store, *out.profiler, ranks, [](int64_t n, const std::string& call) {
          if (n % 50 == 1)
            std::fprintf(stderr, "measured %ld kernels, last: %.100s\n", static_cast<long>(n), call.c_str());
        });
  } else {
    throw UserError("--cost " + cost + ": no such kind of cost", "one of measured, profile, roofline");
  }
  return out;
}

void print_sources(const CostCounts& counts, const std::string& machine) {
  if (counts.measured == 0 || counts.interpolated + counts.estimated == 0) return;
  std::fprintf(
      stderr,
      "note: costs of %ld kernels as measured, of %ld from measurements of other shapes, of %ld from the "
      "rates of machine %s\n",
      static_cast<long>(counts.measured), static_cast<long>(counts.interpolated),
      static_cast<long>(counts.estimated), machine.c_str());
}

}  // namespace ff
