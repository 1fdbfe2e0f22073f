// Lower bounds against the simulator: over random nets, machines, strategies and costs, no makespan is below
// the bound of any part of its strategy; and by hand where the bound is known.
#include "compiler/search/bound.h"

#include <string>

#include "compiler/base/hash.h"
#include "compiler/cost/constant_cost.h"
#include "compiler/cost/roofline.h"
#include "compiler/search/baselines.h"
#include "compiler/search/candidate.h"
#include "compiler/training/training.h"
#include "test/catch.h"
#include "test/e2e/random_nets.h"

using namespace ff;

namespace {

/// Kernels take any time at all: smaller cells may well take longer.
class RandomCost : public CostModel {
 public:
  explicit RandomCost(uint64_t seed) : seed_(seed) {}
  KernelCost kernel(const KernelCall& call, const Work&, std::string_view, const DeviceKind&) override {
    return {.time = 1 + static_cast<Nanoseconds>(hash_bytes(to_string(call), seed_) % 100'000)};
  }

 private:
  uint64_t seed_;
};

struct Case {
  Graph graph;
  Machine machine;
  std::unique_ptr<CostModel> costs;
};

Case random_case(Rng& rng) {
  const test::RandomTraining t = test::random_training(rng, true);
  std::vector<std::string> notes;
  const char* names[] = {"cpu-1", "cpu-2",      "cpu-4:devices=3",
                         "cpu-4", "ethernet-4", "k80-16x4-paper:devices=6"};
  Case out{
      make_training_graph(t.net, t.options, notes), load_machine(names[rng.below(std::ssize(names))]), {}};
  if (rng.below(2) == 0) {
    out.costs = std::make_unique<RooflineCost>();
  } else {
    out.costs = std::make_unique<RandomCost>(rng.next());
  }
  return out;
}

/// Any strategy with at most as many cells of an op as devices.
Strategy any_strategy(const Problem& problem, const Machine& machine, const Proposer& proposer, Rng& rng) {
  Strategy s = rng.below(4) == 0 ? data_parallel(problem, machine) : proposer.random_strategy(rng);
  if (rng.below(2) == 0) {
    const Strategy other = test::random_strategy(problem, rng);
    for (OpId leader : problem.leaders()) {
      const Config& config = other.configs[leader.index()];
      if (cells_of(config.degrees) <= machine.num_devices() && rng.below(2) == 0)
        s.configs[leader.index()] = config;
    }
  }
  for (int64_t i = rng.below(10); i > 0; --i) {
    StrategyEdit edit(s);
    proposer.propose(edit, rng);
  }
  return s;
}

}  // namespace

TEST_CASE("no strategy is faster than the bound of any part of it") {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const Case c = random_case(rng);
    CAPTURE(c.machine.name());
    const Problem problem(c.graph, c.machine.num_devices());
    const Proposer proposer(problem, c.machine, Space::full);
    Simulator simulator(problem, c.machine, *c.costs);
    LowerBound bound(problem, c.machine, *c.costs, Space::full);
    const Nanoseconds of_all = bound.value();
    CHECK(of_all > 0);
    for (int i = 0; i < 8; ++i) {
      const Strategy s = any_strategy(problem, c.machine, proposer, rng);
      const Nanoseconds makespan = simulator.evaluate(s).makespan;
      CHECK(of_all <= makespan);
      Strategy partial{std::vector<Config>(s.configs.size())};
      CHECK(bound.value(partial) == of_all);
      // Set op after op in any order: every part is a bound, and none is below the one before.
      std::vector<OpId> order = problem.leaders();
      for (size_t k = order.size(); k > 1; --k)
        std::swap(order[k - 1], order[static_cast<size_t>(rng.below(static_cast<int64_t>(k)))]);
      Nanoseconds before = of_all;
      for (OpId leader : order) {
        bound.set(leader, s.configs[leader.index()]);
        const Nanoseconds now = bound.value();
        REQUIRE(now <= makespan);
        CHECK(now >= before);
        before = now;
      }
      CHECK(bound.value(s) == before);
    }
  }
}
