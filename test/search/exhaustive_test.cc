// Branch and bound against every strategy, one by one; what it says when it is stopped.
#include "compiler/search/exhaustive.h"

#include <functional>
#include <limits>

#include "compiler/base/hash.h"
#include "compiler/base/rng.h"
#include "compiler/cost/roofline.h"
#include "compiler/search/baselines.h"
#include "test/catch.h"
#include "test/search/small_nets.h"

using namespace ff;

namespace {

constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

/// Kernels take any time at all: smaller cells may well take longer.
class RandomCost : public CostModel {
 public:
  RandomCost(uint64_t seed, Nanoseconds most) : seed_(seed), most_(most) {}
  KernelCost kernel(const KernelCall& call, const Work&, std::string_view, const DeviceKind&) override {
    const auto bits = static_cast<int64_t>(hash_bytes(to_string(call), seed_) >> 1);
    return {.time = 1 + bits % most_};
  }

 private:
  uint64_t seed_;
  Nanoseconds most_;
};

/// The least makespan of all strategies that fit; kNever if none does.
Nanoseconds brute_force(const Problem& problem, const Machine& machine, CostModel& costs, Space space,
                        int64_t memory_limit) {
  Simulator simulator(problem, machine, costs);
  std::vector<OpId> ops;
  std::vector<std::vector<Config>> choices;
  for (OpId op : problem.leaders()) {
    if (is_update(problem, op)) continue;
    ops.push_back(op);
    choices.push_back(all_configs(problem, op, space, 100));
  }
  Nanoseconds least = kNever;
  Strategy strategy{std::vector<Config>(problem.graph().ops.size())};
  const std::function<void(size_t)> choose = [&](size_t i) {
    if (i == ops.size()) {
      follow_all(problem, strategy);
      const Score score = score_of(simulator.evaluate(strategy), machine, memory_limit);
      if (score.fits()) least = std::min(least, score.cost);
      return;
    }
    for (const Config& config : choices[i]) {
      strategy.configs[ops[i].index()] = config;
      choose(i + 1);
    }
  };
  choose(0);
  return least;
}

}  // namespace

TEST_CASE("a stream has every config once") {
  // Two devices: whole on either, or one of n, c, h, w by 2, in two orders. Four: 4 whole; 4 * 3 ordered
  // pairs for each of 4 dimensions; 4! orders for each of 4 dimensions by 4 and 6 pairs of dimensions by 2.
  const test::SmallNet net = test::chain_net(4, 8);
  for (const auto& [devices, expected] : {std::pair{2, 10}, {4, 4 + 12 * 4 + 24 * 10}}) {
    const Problem problem(net.graph, devices);
    std::vector<Config> seen = all_configs(problem, net.ops[1], Space::soap, 1000);
    CHECK(seen.size() == static_cast<size_t>(expected));
    for (size_t i = 0; i < seen.size(); ++i) {
      problem.check(net.ops[1], seen[i]);
      CHECK(std::find(seen.begin() + static_cast<std::ptrdiff_t>(i) + 1, seen.end(), seen[i]) == seen.end());
    }
  }
}

TEST_CASE("branch and bound finds what trying every strategy finds") {
  int fitted = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const bool diamond = seed % 5 == 0;
    const int64_t batch = 1 + rng.below(3), size = 1 + rng.below(3);
    const test::SmallNet net = diamond ? test::diamond_net(batch, size) : test::chain_net(batch, size);
    const char* names[] = {"cpu-2", "ethernet-4:devices=2", "p100-4x4-paper:devices=2"};
    const Machine machine = load_machine(names[rng.below(3)]);
    const Problem problem(net.graph, 2);
    RandomCost costs(seed, rng.below(2) == 0 ? 1'000'000 : 10'000);
    SearchOptions options{.kind = "exhaustive", .space = rng.below(2) == 0 ? Space::soap : Space::full};
    Simulator simulator(problem, machine, costs);
    // Sometimes so little memory that not everything fits.
    const auto peaks = simulator.evaluate(data_parallel(problem, machine)).peak_bytes;
    if (rng.below(2) == 0) options.memory_limit = peaks[0] + rng.below(peaks[0]);
    const Nanoseconds expected = brute_force(problem, machine, costs, options.space, options.memory_limit);
    const ExhaustiveResult found = exhaustive(problem, machine, costs, {}, options);
    CHECK(found.complete);
    REQUIRE(found.best.has_value() == (expected != kNever));
    if (!found.best) continue;
    ++fitted;
    CHECK(found.cost == expected);
    CHECK(found.lower_bound == expected);
    const Score score = score_of(simulator.evaluate(*found.best), machine, options.memory_limit);
    CHECK(score.cost == expected);
    CHECK(score.fits());
    // Stopped anywhere, the optimum lies between the bound and the best so far.
    options.proposals = rng.below(found.judged);
    const Strategy start = data_parallel(problem, machine);
    const ExhaustiveResult stopped = exhaustive(problem, machine, costs, {&start, 1}, options);
    CHECK(stopped.lower_bound <= expected);
    CHECK(stopped.judged <= options.proposals + 1);
    if (stopped.best) CHECK(stopped.cost >= expected);
    if (stopped.complete && stopped.best) CHECK(stopped.cost == expected);
  }
  CHECK(fitted >= 20);
}

TEST_CASE("an exhaustive search too large to end says how far its best may be from the optimum") {
  const test::SmallNet net = test::chain_net(64, 32);
  const Machine machine = load_machine("p100-4x4");
  const Problem problem(net.graph, 16);  // 16! orders of the devices alone
  RooflineCost costs;
  SearchOptions options{.kind = "exhaustive", .proposals = 200};
  const SearchResult found = search(problem, machine, costs, options);
  REQUIRE(found.lower_bound);
  CHECK(*found.lower_bound <= found.cost);
  CHECK(*optimality_gap(found) >= 0);
  REQUIRE(found.notes.size() == 1);
  CHECK(found.notes[0].find("stopped") != std::string::npos);
  for (const Baseline& b : found.baselines) CHECK(found.cost <= b.cost);
  const std::atomic<bool> stop{true};  // Ctrl-C
  options.stop = &stop;
  options.proposals = -1;
  CHECK(search(problem, machine, costs, options).cost <= found.baselines[0].cost);
}
