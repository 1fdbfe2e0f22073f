// Dynamic programming over additive costs against every choice; OptCNN's sums against every choice of its
// candidates on chains and diamonds.
#include "compiler/search/optcnn.h"

#include <algorithm>
#include <functional>

#include "compiler/base/rng.h"
#include "compiler/cost/constant_cost.h"
#include "compiler/cost/roofline.h"
#include "test/catch.h"
#include "test/search/small_nets.h"

using namespace ff;

namespace {

/// The least sum of all choices, one by one.
Nanoseconds brute_force(const AdditiveCosts& costs) {
  std::vector<size_t> choice(costs.nodes.size(), 0);
  Nanoseconds least = costs.cost(choice);
  const std::function<void(size_t)> choose = [&](size_t node) {
    if (node == choice.size()) {
      least = std::min(least, costs.cost(choice));
      return;
    }
    for (choice[node] = 0; choice[node] < costs.nodes[node].size(); ++choice[node]) choose(node + 1);
    choice[node] = 0;
  };
  choose(0);
  return least;
}

AdditiveCosts random_costs(Rng& rng, size_t nodes, const std::vector<std::pair<size_t, size_t>>& edges) {
  AdditiveCosts out;
  for (size_t n = 0; n < nodes; ++n) {
    out.nodes.emplace_back();
    for (int64_t c = 1 + rng.below(3); c > 0; --c) out.nodes.back().push_back(rng.below(100));
  }
  for (const auto& [a, b] : edges) {
    out.edges.push_back({a, b, {}});
    for (size_t i = 0; i < out.nodes[a].size() * out.nodes[b].size(); ++i)
      out.edges.back().costs.push_back(rng.below(100));
  }
  return out;
}

void check_least(const AdditiveCosts& costs, int64_t trials) {
  const LeastChoice found = least_choice(costs, trials);
  CHECK(costs.cost(found.choice) == found.cost);
  if (found.guessed == 0) {
    CHECK(found.cost == brute_force(costs));
  } else {
    CHECK(found.cost >= brute_force(costs));
  }
}

}  // namespace

TEST_CASE("elimination of the worked example gives its least choice") {
  AdditiveCosts costs{{{0, 3}, {4, 0}, {0, 3}}, {{0, 1, {0, 5, 5, 0}}, {1, 2, {0, 5, 5, 0}}}};
  const LeastChoice found = least_choice(costs);
  CHECK(found.cost == 4);
  CHECK(found.choice == std::vector<size_t>{0, 0, 0});
  CHECK(costs.cost({1, 1, 1}) == 6);
  CHECK(costs.cost({0, 1, 0}) == 10);
}

TEST_CASE("elimination finds the least of all choices on chains, diamonds and random graphs") {
  Rng rng(1);
  for (int i = 0; i < 200; ++i) {
    CAPTURE(i);
    const AdditiveCosts chain = random_costs(rng, 5, {{0, 1}, {2, 1}, {2, 3}, {3, 4}});
    const AdditiveCosts diamond = random_costs(rng, 5, {{0, 1}, {0, 2}, {1, 3}, {3, 2}, {3, 4}, {3, 4}});
    CHECK(least_choice(chain, 0).guessed == 0);
    CHECK(least_choice(diamond, 0).guessed == 0);
    check_least(chain, 0);
    check_least(diamond, 0);
    std::vector<std::pair<size_t, size_t>> edges;
    for (size_t a = 0; a < 6; ++a) {
      for (size_t b = a + 1; b < 6; ++b) {
        if (rng.below(3) != 0) edges.emplace_back(a, b);
      }
    }
    check_least(random_costs(rng, 6, edges), 20'000);
    check_least(random_costs(rng, 6, edges), 0);
  }
}

TEST_CASE("what does not reduce is tried out where that is affordable, else guessed and said so") {
  // Four nodes, each a neighbour of every other.
  Rng rng(2);
  std::vector<std::pair<size_t, size_t>> edges{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
  CHECK(least_choice(random_costs(rng, 4, edges), 100).guessed == 0);
  CHECK(least_choice(random_costs(rng, 4, edges), 0).guessed == 1);
}

TEST_CASE("the sums of dynamic programming are the least over all of its candidates") {
  Rng rng(3);
  for (const bool diamond : {false, true}) {
    for (const char* name : {"cpu-2", "ethernet-4:devices=2", "p100-4x4:devices=3"}) {
      CAPTURE(diamond, name);
      const test::SmallNet net = diamond ? test::diamond_net(4, 8) : test::chain_net(4, 8);
      const Machine machine = load_machine(name);
      const Problem problem(net.graph, machine.num_devices());
      RooflineCost costs;
      OptcnnModel model = optcnn_candidates(problem, machine, costs, Space::soap);
      price(problem, machine, costs, model);
      const OptcnnResult found = optcnn(problem, machine, costs, model);
      CHECK(found.guessed == 0);
      CHECK(found.cost == brute_force(model.costs));
      problem.check(found.strategy);
      // Nothing overlaps in the sum: on a chain, where each tensor has one reader beside its writer, the
      // simulator needs no longer.
      if (!diamond) CHECK(Simulator(problem, machine, costs).evaluate(found.strategy).makespan <= found.cost);
    }
  }
}

TEST_CASE("on one device the sum is that of all kernels") {
  const test::SmallNet net = test::chain_net(4, 8);
  const Machine machine = load_machine("cpu-1");
  const Problem problem(net.graph, 1);
  ConstantCost costs(1000);
  const OptcnnResult found =
      optcnn(problem, machine, costs, optcnn_candidates(problem, machine, costs, Space::full));
  CHECK(found.cost == 1000 * static_cast<Nanoseconds>(net.graph.ops.size()));
}

TEST_CASE("a split op costs a part of its time, and what its weight and its neighbours need") {
  // Kernels of 1000 ns whatever their size, two hosts: a split brings nothing, so both ends of every edge lie
  // whole on device 0, where nothing is sent.
  const test::SmallNet net = test::chain_net(4, 8);
  const Machine machine = load_machine("ethernet-4:devices=2");
  const Problem problem(net.graph, 2);
  ConstantCost costs(1000);
  const OptcnnResult found =
      optcnn(problem, machine, costs, optcnn_candidates(problem, machine, costs, Space::full));
  CHECK(found.cost == 1000 * static_cast<Nanoseconds>(net.graph.ops.size()));
  for (OpId op : net.ops) CHECK(found.strategy.configs[op.index()].devices.size() == 1);
}
