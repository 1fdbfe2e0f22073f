// The pipeline from a training graph to a plan: search, simulation, lowering. `ffcompile` is flags around
// this.
//
//   Compilation c{graph, eval, machine};           // graphs, and the machine
//   SearchResult found = search(...);
//   Plan plan = make_plan(c, found.best, costs, workspace);
#pragma once

#include <string>
#include <vector>

#include "compiler/lower/lower.h"
#include "compiler/plan/plan.h"
#include "compiler/search/search.h"

namespace ff {

/// The strategy of `other`'s ops that have the names of `graph`'s: configs are carried over by op name; an op
/// without one gets its data-parallel config.
Strategy carry_over(const Strategy& strategy, const Graph& graph, const Problem& other,
                    const Machine& machine);

/// Everything on device 0, nothing split.
Strategy single_device(const Problem& problem);

/// A leader's name, type and config, as the plan's table of ops has them; what it costs is left at zero.
OpSummary summary_of(const Problem& problem, OpId leader, const Config& config);

struct PlanParts {
  const Problem* training = nullptr;  // null: an inference plan
  const Problem* evaluation = nullptr;
  const Machine* machine = nullptr;
};

/// Programs, memory, parameters, inputs and predictions; the caller fills in the header's names and hashes.
/// `with_reference` adds the training step on one device.
Plan make_plan(const PlanParts& parts, const Strategy& strategy, CostModel& costs,
               const WorkspaceQuery& workspace, bool with_reference);

}  // namespace ff
