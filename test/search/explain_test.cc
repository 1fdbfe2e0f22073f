// Explanations of configs, derived by hand where a chain of two ops allows it, else beside full simulation of
// every other config.
//
// The chain: pool1 and pool2 (1x1 windows: each element by itself) on x of 2 samples and 100 channels, 800
// bytes. A kernel takes 1000 ns, whatever its size; a message of b bytes 100 + b ns; a copy of b bytes b ns.
#include <algorithm>

#include "compiler/base/check.h"
#include "compiler/cost/constant_cost.h"
#include "compiler/cost/roofline.h"
#include "compiler/driver/explanation.h"
#include "compiler/search/baselines.h"
#include "test/catch.h"

using namespace ff;

namespace {

constexpr const char* kTwo = R"(
name: "two"
device_kind { name: "core" backend: CPU flops_f32: 1e9 memory_bandwidth: 1e9 memory: "1 GiB" }
node { name: "box" device { name: "cpu" kind: "core" count: 2 }
       link { name: "bus" from: "cpu0" to: "cpu1" bandwidth: 1e9 latency_ns: 100 } }
refinements { copy_bandwidth: 1e9 }
)";

TensorId add_tensor(Graph& graph, const std::string& name, Shape shape, TensorKind kind) {
  Tensor t;
  t.name = name;
  t.shape = std::move(shape);
  t.kind = kind;
  t.batch_axis = kind == TensorKind::parameter || name[0] == 'g' ? -1 : 0;
  return graph.add_tensor(std::move(t));
}

OpId add_op(Graph& graph, const std::string& name, const std::string& type, std::vector<TensorId> inputs,
            TensorId output, Phase phase = Phase::forward, OpId config_of = {}) {
  Op op;
  op.name = name;
  op.type = type;
  op.inputs = std::move(inputs);
  op.outputs = {output};
  op.phase = phase;
  op.config_of = config_of;
  if (type == "AveragePool") op.attributes.set("kernel_shape", Ints{1, 1});
  return graph.add_op(std::move(op));
}

Graph chain() {
  Graph graph;
  graph.batch = 2;
  const Shape shape{2, 100, 1, 1};
  const TensorId x = add_tensor(graph, "x", shape, TensorKind::input);
  const TensorId y = add_tensor(graph, "y", shape, TensorKind::activation);
  const TensorId z = add_tensor(graph, "z", shape, TensorKind::activation);
  add_op(graph, "pool1", "AveragePool", {x}, y);
  add_op(graph, "pool2", "AveragePool", {y}, z);
  verify(graph);
  return graph;
}

/// A convolution (1x1, 4 to 64 channels) with its weight's gradient and update.
Graph convolution() {
  Graph graph;
  graph.batch = 16;
  const TensorId x = add_tensor(graph, "x", {16, 4, 8, 8}, TensorKind::input);
  const TensorId w = add_tensor(graph, "w", {64, 4, 1, 1}, TensorKind::parameter);
  const TensorId y = add_tensor(graph, "y", {16, 64, 8, 8}, TensorKind::activation);
  const TensorId z = add_tensor(graph, "z", {16, 64, 8, 8}, TensorKind::activation);
  const TensorId gw = add_tensor(graph, "gw", {64, 4, 1, 1}, TensorKind::gradient);
  const OpId conv = add_op(graph, "conv", "Conv", {x, w}, y);
  add_op(graph, "pool", "AveragePool", {y}, z);
  add_op(graph, "conv/weight", "ConvGradWeight", {x, z}, gw, Phase::backward, conv);
  add_op(graph, "w/update", "AveragePool", {gw}, w, Phase::update);
  verify(graph);
  return graph;
}

struct Chain {
  Graph graph = chain();
  Machine machine = parse_machine(kTwo, "two");
  Problem problem{graph, 2};
  ConstantCost costs{1000};

  /// Both pools whole, the first on device 0.
  Strategy second_on(int device) const {
    return {{whole_on(problem, OpId(0), {DeviceId(0)}), whole_on(problem, OpId(1), {DeviceId(device)})}};
  }
  Explanation explain(const Strategy& strategy, int64_t memory_limit = 0) {
    SearchOptions options;
    options.memory_limit = memory_limit;
    return Explainer(problem, machine, costs, options).explain(strategy, find_op("pool2", problem));
  }
};

std::string error_of(const std::string& name, const Problem& problem) {
  try {
    find_op(name, problem);
  } catch (const UserError& e) {
    return std::string(e.what()) + " | " + e.hint();
  }
  return "no error";
}

}  // namespace

TEST_CASE("an op that waits for a message is explained beside those that wait for less") {
  // Chosen: pool1 on 0 until 1000, y to device 1 until 1900, pool2 there until 2900.
  //   whole on 0     no message: 2000
  //   n:2 on 0, 1    half of y, 400 bytes in one piece, until 1500: 2500
  //   replicas       device 1 gets all of y as before: 2900
  //   c:2 on 0, 1    half of y's channels lie in two pieces: device 0 copies each half into one, its own
  //   until
  //                  1400 and the other's, ready before its cell is, until 1800; sends until 2300: 3300
  // Device 0 runs two kernels in all of these. Buffers are 832 bytes (800, rounded up to 64): x and y, or y
  // and z, are there at once; with c:2 at most y and both copies (448 each): 1728.
  Chain c;
  CHECK(explanation_text(c.explain(c.second_on(1)), c.problem) ==
        R"(pool2 (AveragePool), all else as it is; 4 other configs tried

  config      devices  step    difference  compute  link     sent    memory
  -           0        2.0 us  -900 ns     +1.0 us  -900 ns  -800 B  0 B      on one device
  n:2(S)      0-1      2.5 us  -400 ns     +1.0 us  -400 ns  -400 B  0 B      data parallel
* -           1        2.9 us              1.0 us   900 ns   800 B   1.6 KiB  on one device
  replicas:2  0-1      2.9 us  0 ns        +1.0 us  0 ns     0 B     0 B
  c:2(P)      0-1      3.3 us  +400 ns     +1.0 us  -400 ns  -400 B  +64 B

whole on 0 is faster than whole on 1, the chosen config, by 900 ns; it computes 1.0 us more on the busiest device, sends 800 B less and keeps the busiest link 900 ns less long.
A longer search (--proposals, --budget) may find it; --strategy can give it.
)");
}

TEST_CASE("the sentence says what the next best config costs") {
  // On device 0 both kernels run there in any case; n:2 sends 400 bytes in 500 ns.
  Chain c;
  const std::string text = explanation_text(c.explain(c.second_on(0)), c.problem);
  CHECK(text.substr(text.rfind("\n\n") + 2) ==
        "whole on 0 wins: the next, n:2(S) on 0-1, takes 500 ns longer; it sends 400 B more and keeps the "
        "busiest "
        "link 500 ns longer.\n");
}

TEST_CASE("configs that do not fit the memory are left out, but for whole and data parallel") {
  // Every config has 1664 bytes on device 0 at the first kernel, c:2 then 1728.
  Chain c;
  CHECK(c.explain(c.second_on(1), 1728).others.size() == 4);
  const Explanation fits = c.explain(c.second_on(1), 1664);
  CHECK(fits.misfits == 1);
  CHECK(fits.others.size() == 3);
  const Explanation none = c.explain(c.second_on(1), 1663);
  CHECK(none.tried == 4);
  CHECK(none.misfits == 3);  // whole on 0, replicas, channels: whole beside the present one is on device 1
  REQUIRE(none.others.size() == 1);
  CHECK(none.others[0].data_parallel);
  CHECK_FALSE(none.others[0].fits);
  const std::string text = explanation_text(none, c.problem);
  CHECK(text.find("Left out: 3 as fast as these that would not fit the memory.\nNo other config fits the "
                  "memory.\n") != std::string::npos);
}

TEST_CASE("the fastest are those that full simulation finds, updates following") {
  const Graph graph = convolution();
  const Machine machine = load_machine("k80-16x4:devices=8");
  const Problem problem(graph, 8);
  RooflineCost costs;
  const OpId conv = find_op("conv", problem), update = find_op("w/update", problem);
  const Strategy strategy = data_parallel(problem, machine);
  const auto configs = other_configs(problem, machine, strategy, conv, Space::full);
  // n, co, h, w allow 8 and ci 4: factors 2, 2, 2 over five dimensions or nowhere, C(8, 3) = 56, less ci:8
  // and the present n:8; and one replica a device.
  CHECK(configs.size() == 55);
  std::vector<Nanoseconds> expected;
  Simulator simulator(problem, machine, costs);
  for (const Config& config : configs) {
    Strategy other = strategy;
    other.configs[conv.index()] = config;
    other.configs[update.index()] = follow_readers(problem, other, update);
    expected.push_back(simulator.evaluate(other).makespan);
  }
  std::sort(expected.begin(), expected.end());
  const Explanation e = Explainer(problem, machine, costs, {}).explain(strategy, conv);
  CHECK(e.chosen.outcome.step == simulator.evaluate(strategy).makespan);
  CHECK(e.chosen.data_parallel);
  REQUIRE(e.others.size() == 13);  // the twelve fastest, and whole
  for (size_t i = 0; i < 12; ++i) CHECK(e.others[i].outcome.step == expected[i]);
  CHECK(std::any_of(e.others.begin(), e.others.end(),
                    [](const Alternative& a) { return a.whole && a.config.devices[0] == DeviceId(0); }));
}

TEST_CASE("the paper's space has one config an update") {
  const Graph graph = convolution();
  const Machine machine = load_machine("cpu-4");
  const Problem problem(graph, 4);
  const OpId update = find_op("w/update", problem);
  const Strategy strategy = data_parallel(problem, machine);
  CHECK(other_configs(problem, machine, strategy, update, Space::soap).empty());
  RooflineCost costs;
  SearchOptions options;
  options.space = Space::soap;
  CHECK(explanation_text(Explainer(problem, machine, costs, options).explain(strategy, update), problem) ==
        "w/update (AveragePool), all else as it is; no other config is possible\n");
}

TEST_CASE("an unknown op is refused with close names, one without a config with whose it has", "[error]") {
  const Graph graph = convolution();
  const Problem problem(graph, 2);
  CHECK(
      error_of("conv1", problem) ==
      "--explain conv1: no such op; close are 'conv', 'pool', 'w/update' | ffplan-dump PLAN.soap and --emit "
      "strategy list the ops");
  CHECK(error_of("conv/weight", problem) ==
        "--explain conv/weight: it is split as 'conv' is | give --explain conv");
}
