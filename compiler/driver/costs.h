// The cost model that ffcompile's flags ask for.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "compiler/cost/cost_model.h"
#include "compiler/cost/profile_store.h"
#include "compiler/machine/machine.h"
#include "profiles/cpu_profiler.h"

namespace ff {

struct CostFlags {
  std::optional<std::string> given;  // measured, profile or roofline
  std::string profile;               // a file; "": in the user's cache
  std::string device = "cpu";        // whose kernels are asked: cpu or cuda

  /// What was given, or the machine's default: measured for CPU devices, else roofline.
  std::string kind(const Machine& machine) const;
};

/// A cost model with what it stands on.
struct Costs {
  std::unique_ptr<CpuProfiler> profiler;  // none for machines without CPU devices
  std::optional<ProfileStore> store;      // none by roofline
  std::unique_ptr<CostModel> model;
};

/// UserError for a kind that there is not or that the machine cannot have.
Costs make_costs(const CostFlags& flags, const Machine& machine);

/// What the costs stand on, to stderr, where it is not measurements alone.
void print_sources(const CostCounts& counts, const std::string& machine);

}  // namespace ff
