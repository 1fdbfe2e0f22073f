// What the search tries next: random configs, and changes of a strategy.
//
//   Proposer proposer(problem, machine, Space::full);
//   StrategyEdit edit(strategy);
//   proposer.propose(edit, rng);      // some ops' configs differ; the strategy passes Problem::check
//   edit.undo();                      // as it was
//
// A proposal is drawn from a fixed distribution over kinds. Besides the paper's (a random op, a random
// config), which alone changes one op in a row of ops and so mostly adds communication on both sides, there
// are moves of whole neighbourhoods: an op and the weightless ops around it, all ops of one shape, a
// neighbour's split carried over. Where a weight is synchronised through one server, that moves, too.
#pragma once

#include <optional>
#include <vector>

#include "compiler/base/rng.h"
#include "compiler/machine/machine.h"
#include "compiler/search/follow.h"

namespace ff {

/// Changes to a strategy that can be taken back.
class StrategyEdit {
 public:
  explicit StrategyEdit(Strategy& strategy) : strategy_(strategy) {}
  const Strategy& strategy() const { return strategy_; }
  void set(OpId leader, Config config);
  void undo();
  /// The leaders that were set, each once.
  const std::vector<OpId>& leaders() const { return leaders_; }
  /// Whether any config differs from what it was.
  bool changed() const;

 private:
  Strategy& strategy_;
  std::vector<OpId> leaders_;
  std::vector<Config> before_;  // of each
};

class Proposer {
 public:
  Proposer(const Problem& problem, const Machine& machine, Space space);

  /// Degrees and devices at random: a divisor of the number of devices, its prime factors spread over the
  /// dimensions.
  Config random_config(OpId leader, const Strategy& strategy, Rng& rng) const;
  /// Every op at random; updates follow.
  Strategy random_strategy(Rng& rng) const;
  void propose(StrategyEdit& edit, Rng& rng) const;
  /// Gives a leader a config; the updates of its weights follow, sharded ones are sharded anew.
  void set(StrategyEdit& edit, OpId leader, Config config) const;
  /// Leaders that are no updates.
  const std::vector<OpId>& movable() const { return movable_; }

 private:
  std::vector<DeviceId> place(int count, OpId leader, const Strategy& strategy, Rng& rng) const;
  std::vector<DeviceId> neighbour_devices(int count, OpId leader, const Strategy& strategy, Rng& rng) const;
  Config preset(OpId leader, Rng& rng) const;
  Config nudged(OpId leader, const Strategy& strategy, Rng& rng) const;
  Config moved(OpId leader, const Strategy& strategy, Rng& rng) const;
  std::optional<Config> copied(OpId leader, const Strategy& strategy, Rng& rng) const;
  void spread_to_light(StrategyEdit& edit, OpId from, Rng& rng) const;
  void change_twins(StrategyEdit& edit, OpId leader, const Config& config) const;
  std::optional<Config> sharded(OpId update, const Config& following, size_t dim) const;
  void shard_update(StrategyEdit& edit, Rng& rng) const;
  void change_server(StrategyEdit& edit, Rng& rng) const;
  int random_divisor(Rng& rng) const;

  const Problem& problem_;
  const Machine& machine_;
  Space space_;
  bool servers_;  // the first replica of an update is its weight's server
  std::vector<int> divisors_;
  std::vector<OpId> movable_, updates_;
  std::vector<std::vector<OpId>> neighbours_;    // by OpId
  std::vector<std::vector<OpId>> updates_of_;    // by OpId of a leader
  std::vector<std::vector<OpId>> twins_;         // by OpId: same type and extents
  std::vector<std::vector<size_t>> splittable_;  // by OpId
};

}  // namespace ff
