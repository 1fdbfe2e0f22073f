// Every strategy of a small graph: proves what the best is.
//
//   4 ops of one dimension on 2 devices, each whole on 0, whole on 1, or split both ways round: 4^4
//   strategies
//
// Updates follow the readers of their weights; degrees are divisors of the number of devices; no replicas.
//
// Depth first, op by op in graph order, the config with the least bound first; what cannot beat the best so
// far (LowerBound) is not gone into. Stopped early, it says how much better than the best anything may be:
//
//   best 4.0 ms; the parts that were not gone into have bounds of 3.7 ms and more: the optimum is in
//   [3.7, 4.0] ms
#pragma once

#include <optional>
#include <span>

#include "compiler/search/search.h"

namespace ff {

/// All configs of a leader: degrees whose product divides the number of devices, on distinct devices in
/// every order. `limit`: UserError naming the op beyond so many.
std::vector<Config> all_configs(const Problem& problem, OpId leader, Space space, size_t limit);

struct ExhaustiveResult {
  std::optional<Strategy> best;  // that fits; nothing if none was met
  Nanoseconds cost = 0;          // of the best
  Nanoseconds lower_bound = 0;   // no strategy takes less; the cost if the search is complete
  bool complete = false;
  int64_t judged = 0;     // parts of strategies that were bounded, and strategies that were simulated
  double strategies = 0;  // how many there are in all
  std::vector<TracePoint> trace;
};

/// Stops after options.proposals judged, after options.budget_seconds, or when told to. `starts`: strategies
/// to begin with; those that are not among the candidates are left out.
ExhaustiveResult exhaustive(const Problem& problem, const Machine& machine, CostModel& costs,
                            std::span<const Strategy> starts, const SearchOptions& options);

}  // namespace ff
