// Why an op is split as it is: what the step would be with another config of it, all else as it is.
//
//   Explainer explainer(problem, machine, costs, options);  // their space and memory_limit
//   Explanation e = explainer.explain(strategy, find_op("fc1", problem));
//   e.chosen.outcome.step        // 1.09 ms, with n=2 on devices 0, 1
//   e.others[0].outcome.step     // 1.14 ms: the best other one, the whole on both
//
// Updates of the op's weights follow, as in the search. Steps are told apart by delta simulation, which gives
// up early on what is slower than the best so far; those that are reported are simulated whole.
#pragma once

#include <string>
#include <vector>

#include "compiler/search/candidate.h"
#include "compiler/search/search.h"

namespace ff {

struct Outcome {
  Nanoseconds step = 0;
  Nanoseconds compute = 0;   // of the busiest device
  Nanoseconds link = 0;      // of the busiest link, or of the busiest device's port
  int64_t sent_bytes = 0;    // by all devices
  int64_t memory_bytes = 0;  // live peak of the fullest device
};

struct Alternative {
  Config config;
  Outcome outcome;
  bool fits = true;  // the devices' memory
  bool whole = false, data_parallel = false;
};

struct Explanation {
  OpId op;
  Alternative chosen;
  std::vector<Alternative> others;  // by step, fastest first
  int64_t tried = 0;                // the chosen one aside
  int64_t misfits = 0;              // as fast as these, but they do not fit the memory
};

/// The leader of this name; UserError that names close ones, or the leader whose config the op has.
OpId find_op(const std::string& name, const Problem& problem);

/// Other configs of a leader: degrees that together divide the number of devices, in order on the first
/// devices and on those that the leader's and its neighbours' configs list; each neighbour's split carried
/// over; whole on one device; data parallelism. Each once, without the present one.
std::vector<Config> other_configs(const Problem& problem, const Machine& machine, const Strategy& strategy,
                                  OpId leader, Space space);

class Explainer {
 public:
  Explainer(const Problem& problem, const Machine& machine, CostModel& costs, const SearchOptions& options);
  /// Calls options.progress with the number of other configs that were tried, and the fastest's step.
  /// Of the others, the twelve fastest that fit; whole on one device and data parallel beside them.
  Explanation explain(const Strategy& strategy, OpId leader);

 private:
  std::vector<Config> fastest(const Strategy& strategy, OpId leader, const std::vector<Config>& configs,
                              int64_t& misfits);
  Alternative evaluated(const Strategy& strategy, OpId leader, const Config& config);

  const Problem& problem_;
  const Machine& machine_;
  CostModel& costs_;
  SearchOptions options_;
  Simulator simulator_;
  Proposer proposer_;
};

}  // namespace ff
