// The search: the strategy with the least predicted time of a training step that fits the devices' memory.
//
//   SearchResult r = search(problem, machine, costs, {.kind = "mcmc", .proposals = 10'000, .seed = 1});
//   r.cost                              // nanoseconds a step
//   r.baselines                         // what data parallelism and the others take
//   r.lower_bound                       // what no strategy beats: r.cost / *r.lower_bound - 1 may be left to
//   gain
//
// Between a training graph and lowering; it sees strategies through the simulator only.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/search/follow.h"
#include "compiler/simulator/simulator.h"

namespace ff {

struct SearchProgress {
  int64_t proposals = 0;
  double seconds = 0;
  Nanoseconds best = 0;
};

struct SearchOptions {
  std::string kind = "mcmc";  // or data-parallel, model-parallel, expert, optcnn, exhaustive
  Space space = Space::full;
  int64_t proposals =
      -1;  // stop after so many; -1: when the last half of them brought nothing, 500 an op at most
  double budget_seconds = -1;  // stop after so long; -1: no limit. Results then depend on the machine's speed
  uint64_t seed = 1;
  int chains = 4;
  int threads = 0;           // 0: as many as there are cores; the result does not depend on it
  int64_t memory_limit = 0;  // bytes a device, beside the device's own; 0: none
  /// Whether the lower bound and OptCNN as a start may ask for the cost of every kernel of the space: not
  /// where each would be measured and time is short.
  bool price_all = true;
  std::optional<Strategy> init = std::nullopt;
  const std::atomic<bool>* stop = nullptr;  // set by a signal: ends with the best so far
  std::function<void(const SearchProgress&)> progress = nullptr;
};

struct Baseline {
  std::string kind;
  Nanoseconds cost = 0;
  bool fits = true;
};

struct TracePoint {
  int64_t proposals = 0;
  Nanoseconds best = 0;
};

struct SearchResult {
  Strategy best;
  Nanoseconds cost = 0;
  SimulationResult simulation;  // of `best`
  /// No strategy of the space takes less: of those with at most as many cells of an op as there are devices,
  /// or, after an exhaustive search, of those it ranges over. Nothing if `best` is not one of them, or
  /// not all kernels may be priced.
  std::optional<Nanoseconds> lower_bound;
  std::string bounded = "plan of this space";  // what cannot take less, for people
  std::vector<std::string> notes;              // what the user should know of how `best` was found
  int64_t proposals = 0;
  int64_t accepted = 0;
  double seconds = 0;
  std::vector<Baseline> baselines;
  std::vector<TracePoint> trace;  // each time that the best improved
};

/// What the search compares: the makespan, and how far the worst device is beyond its memory.
struct Score {
  Nanoseconds cost = 0;
  double over = 0;  // of the limit; 0: fits
  bool fits() const { return over <= 0; }
  /// Cost with a penalty for what does not fit, steep enough that a walk comes back.
  double penalised() const { return static_cast<double>(cost) * (1 + 10 * over); }
};

/// Whether a lower bound of this space holds for the strategy.
bool is_bounded(const Problem& problem, const Strategy& strategy, Space space);
/// What the best may be away from the optimum at most, as a part of the bound; nothing without a bound.
std::optional<double> optimality_gap(const SearchResult& result);

/// By device: bytes that it may use, its own or `memory_limit` if that is less (0: none).
std::vector<int64_t> memory_limits(const Machine& machine, int64_t memory_limit);
Score score_of(const SimulationResult& result, const Machine& machine, int64_t memory_limit);

/// Throws UserError if nothing that was found fits, with the smallest peak, and for a kind that is not there.
SearchResult search(const Problem& problem, const Machine& machine, CostModel& costs,
                    const SearchOptions& options);

/// The strategy of a baseline's kind; UserError for another name.
Strategy baseline_strategy(const std::string& kind, const Problem& problem, const Machine& machine);

}  // namespace ff
