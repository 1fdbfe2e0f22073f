// Metropolis search: a walk through strategies that takes every better one and a worse one with probability
// exp(-beta * relative worsening), always against where it stands, not against the best so far.
//
//   beta 100, a proposal 1 % worse: taken with probability exp(-1) = 0.37; 5 % worse: 0.007
//
// The random number is drawn first and gives the highest cost that would be taken.
#pragma once

#include "compiler/search/candidate.h"
#include "compiler/search/search.h"
#include "compiler/simulator/delta.h"

namespace ff {

/// The highest penalised cost that is taken from `current`, for a uniform `u` in [0, 1).
double acceptance_threshold(double current, double u, double beta);

/// One walk. Owns its simulator and its random numbers: what it does depends on its start and seed only.
class Chain {
 public:
  Chain(const Problem& problem, const Machine& machine, CostModel& costs, const SearchOptions& options,
        Strategy start, uint64_t seed);

  /// Makes so many proposals, with beta rising as the search proceeds; returns early if `stopped`.
  void run(int64_t proposals, double beta, const std::function<bool()>& stopped);
  /// Walks on from here.
  void jump(const Strategy& strategy);

  const Strategy& current() const { return current_; }
  const Score& current_score() const { return current_score_; }
  /// The best that fits, if any.
  const std::optional<Strategy>& best() const { return best_; }
  Nanoseconds best_cost() const { return best_cost_; }
  int64_t best_at() const { return best_at_; }  // proposals made when it was found
  /// The least overrun seen, where nothing fits.
  const Strategy& leanest() const { return leanest_; }
  double least_over() const { return least_over_; }
  int64_t proposals() const { return proposals_; }
  int64_t accepted() const { return accepted_; }

 private:
  Score score();
  void keep();

  const SearchOptions& options_;
  std::vector<int64_t> limits_;  // of memory, by device
  DeltaSimulator simulator_;     // stands at current_
  Proposer proposer_;
  Rng rng_;
  Strategy current_, leanest_;
  Score current_score_;
  double least_over_ = 0;
  std::optional<Strategy> best_;
  Nanoseconds best_cost_ = 0;
  int64_t best_at_ = 0, proposals_ = 0, accepted_ = 0;
};

/// Walks in rounds on threads from these starts; fills in all of a result but its simulation and baselines.
/// Ties go to the first chain. `best` is empty if nothing fits; then `leanest` overran the least.
struct McmcResult {
  std::optional<Strategy> best;
  Strategy leanest;
  int64_t proposals = 0, accepted = 0;
  std::vector<TracePoint> trace;
};
McmcResult mcmc(const Problem& problem, const Machine& machine, CostModel& costs,
                const std::vector<Strategy>& starts, const SearchOptions& options);

}  // namespace ff
