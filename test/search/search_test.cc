// The search: configs that follow, baselines, proposals, Metropolis against every strategy; strategies as
// text.
//
// The net: conv1 (1x1, 4 to 6 channels), a pool, conv2 (1x1, 6 to 6) on 8 images of 2x2, both weights with a
// gradient and an update. Pools of 1x1 windows stand in for the elementwise ops: each maps every dimension to
// itself.
#include <cmath>
#include <functional>

#include "compiler/base/check.h"
#include "compiler/cost/roofline.h"
#include "compiler/partition/strategy_text.h"
#include "compiler/search/baselines.h"
#include "compiler/search/candidate.h"
#include "compiler/search/exhaustive.h"
#include "compiler/search/mcmc.h"
#include "compiler/search/report.h"
#include "test/catch.h"

using namespace ff;

namespace {

struct Net {
  Graph graph;
  OpId conv1, pool, conv2, update1, update2;

  TensorId tensor(const std::string& name, Shape shape, TensorKind kind) {
    Tensor t;
    t.name = name;
    t.shape = std::move(shape);
    t.kind = kind;
    t.batch_axis = kind == TensorKind::parameter || name[0] == 'g' ? -1 : 0;
    return graph.add_tensor(std::move(t));
  }
  OpId add(const std::string& name, const std::string& type, std::vector<TensorId> inputs, TensorId output,
           Phase phase = Phase::forward, OpId config_of = {}) {
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
};

Net make_net(int64_t batch = 8, int64_t size = 2) {
  Net n;
  n.graph.batch = batch;
  const auto x = n.tensor("x", {batch, 4, size, size}, TensorKind::input);
  const auto w1 = n.tensor("w1", {6, 4, 1, 1}, TensorKind::parameter);
  const auto w2 = n.tensor("w2", {6, 6, 1, 1}, TensorKind::parameter);
  const auto y1 = n.tensor("y1", {batch, 6, size, size}, TensorKind::activation);
  const auto z1 = n.tensor("z1", {batch, 6, size, size}, TensorKind::activation);
  const auto y2 = n.tensor("y2", {batch, 6, size, size}, TensorKind::activation);
  const auto dz1 = n.tensor("dz1", {batch, 6, size, size}, TensorKind::gradient);
  const auto gw1 = n.tensor("gw1", {6, 4, 1, 1}, TensorKind::gradient);
  const auto gw2 = n.tensor("gw2", {6, 6, 1, 1}, TensorKind::gradient);
  n.conv1 = n.add("conv1", "Conv", {x, w1}, y1);
  n.pool = n.add("pool", "AveragePool", {y1}, z1);
  n.conv2 = n.add("conv2", "Conv", {z1, w2}, y2);
  n.add("conv2/weight", "ConvGradWeight", {z1, y2}, gw2, Phase::backward, n.conv2);
  n.add("conv2/data", "ConvGradData", {y2, w2}, dz1, Phase::backward, n.conv2);
  n.add("conv1/weight", "ConvGradWeight", {x, dz1}, gw1, Phase::backward, n.conv1);
  n.update1 = n.add("w1/update", "AveragePool", {gw1}, w1, Phase::update);
  n.update2 = n.add("w2/update", "AveragePool", {gw2}, w2, Phase::update);
  verify(n.graph);
  return n;
}

std::vector<DeviceId> ids(std::initializer_list<int> values) {
  std::vector<DeviceId> out;
  for (int v : values) out.emplace_back(v);
  return out;
}

/// Degrees by name; other dimensions whole.
Config split(const Problem& problem, OpId op, std::vector<std::pair<std::string, int32_t>> degrees,
             std::vector<DeviceId> devices, int32_t replicas = 1) {
  Config config{std::vector<int32_t>(problem.space(op).dims.size(), 1), replicas, std::move(devices)};
  for (const auto& [name, degree] : degrees)
    config.degrees[static_cast<size_t>(problem.space(op).dim_index(name))] = degree;
  problem.check(op, config);
  return config;
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const UserError& e) {
    return std::string(e.what()) + " hint: " + e.hint();
  }
  return "no error";
}

bool says(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("an update follows how its weight is read") {
  const Net net = make_net();
  const Problem problem(net.graph, 4);
  Strategy s{std::vector<Config>(net.graph.ops.size())};
  s.configs[net.conv1.index()] = split(problem, net.conv1, {{"n", 2}, {"co", 2}}, ids({0, 1, 2, 3}));
  // Cells are (n0 co0) on 0, (n0 co1) on 1, (n1 co0) on 2, (n1 co1) on 3: half co0 of the weight is read by 0
  // and 2, half co1 by 1 and 3.
  const Config update = follow_readers(problem, s, net.update1);
  CHECK(update == split(problem, net.update1, {{"n", 2}}, ids({0, 2, 1, 3}), 2));
  CHECK(weight_reader(problem, net.update1) == net.conv1);
}

TEST_CASE("a neighbour follows the split of the tensor between") {
  const Net net = make_net();
  const Problem problem(net.graph, 4);
  Strategy s{std::vector<Config>(net.graph.ops.size())};
  s.configs[net.conv1.index()] = split(problem, net.conv1, {{"n", 2}, {"co", 2}}, ids({3, 2, 1, 0}));
  CHECK(follow_neighbour(problem, s, net.conv1, net.pool, Space::full) ==
        split(problem, net.pool, {{"n", 2}, {"c", 2}}, ids({3, 2, 1, 0})));
  // conv2 reads those channels through its contracted dimension: only the full space may split it.
  s.configs[net.pool.index()] = split(problem, net.pool, {{"c", 2}}, ids({1, 2}));
  CHECK(follow_neighbour(problem, s, net.pool, net.conv2, Space::full) ==
        split(problem, net.conv2, {{"ci", 2}}, ids({1, 2})));
  CHECK(follow_neighbour(problem, s, net.pool, net.conv2, Space::soap) ==
        split(problem, net.conv2, {}, ids({1})));
  CHECK(neighbours(problem, net.pool) == std::vector<OpId>{net.conv1, net.conv2});
}

TEST_CASE("data parallelism splits samples and replicates weights") {
  const Net net = make_net();
  const Machine machine = load_machine("cpu-4");
  const Problem problem(net.graph, 4);
  const Strategy s = data_parallel(problem, machine);
  for (OpId op : {net.conv1, net.pool, net.conv2})
    CHECK(s.configs[op.index()] == split(problem, op, {{"n", 4}}, ids({0, 1, 2, 3})));
  for (OpId op : {net.update1, net.update2})
    CHECK(s.configs[op.index()] == split(problem, op, {}, ids({0, 1, 2, 3}), 4));
}

TEST_CASE("a batch smaller than the machine uses as many devices as it has samples") {
  const Net net = make_net(3);
  const Problem problem(net.graph, 4);
  const Strategy s = data_parallel(problem, load_machine("cpu-4"));
  CHECK(s.configs[net.conv1.index()] == split(problem, net.conv1, {{"n", 3}}, ids({0, 1, 2})));
  CHECK(s.configs[net.update1.index()] == split(problem, net.update1, {}, ids({0, 1, 2}), 3));
}

TEST_CASE("model parallelism splits parameters and ops between follow") {
  const Net net = make_net();
  const Problem problem(net.graph, 2);
  const Strategy s = model_parallel(problem, load_machine("cpu-2"));
  CHECK(s.configs[net.conv1.index()] == split(problem, net.conv1, {{"co", 2}}, ids({0, 1})));
  CHECK(s.configs[net.pool.index()] == split(problem, net.pool, {{"c", 2}}, ids({0, 1})));
  CHECK(s.configs[net.update1.index()] == split(problem, net.update1, {{"n", 2}}, ids({0, 1})));
}

TEST_CASE("every proposal passes Problem check and keeps to its space") {
  const Net net = make_net();
  for (const char* preset : {"cpu-1", "cpu-2", "k80-16x4-paper:devices=6", "p100-4x4"}) {
    const Machine machine = load_machine(preset);
    const Problem problem(net.graph, machine.num_devices());
    for (Space space : {Space::full, Space::soap}) {
      CAPTURE(preset, static_cast<int>(space));
      const Proposer proposer(problem, machine, space);
      Rng rng(7);
      Strategy s = proposer.random_strategy(rng);
      problem.check(s);
      bool contracted = false, replicated = false, sharded = false, moved = false;
      for (int i = 0; i < 3000; ++i) {
        StrategyEdit edit(s);
        proposer.propose(edit, rng);
        problem.check(s);
        for (OpId op : proposer.movable()) {
          replicated |= s.configs[op.index()].replicas > 1;
          for (size_t d = 0; d < problem.space(op).dims.size(); ++d)
            contracted |=
                s.configs[op.index()].degrees[d] > 1 && problem.space(op).dims[d].role == Role::contracted;
        }
        for (OpId op : {net.update1, net.update2}) {
          const Config& update = s.configs[op.index()];
          const Config following = follow_readers(problem, s, op);
          sharded |= update.replicas != following.replicas;
          moved |= update.replicas == following.replicas && update != following;
        }
      }
      const bool expected = space == Space::full && machine.num_devices() > 1;
      CHECK(contracted == expected);
      CHECK(replicated == expected);
      CHECK(sharded == expected);
      if (space == Space::soap)
        CHECK(moved == (machine.refinements().synchronization == Synchronization::kServer));
    }
  }
}

TEST_CASE("the acceptance threshold is Metropolis with the random number drawn first") {
  // exp(-beta * w) >= 1 - u, w = -ln(1 - u) / beta; u = 1 - 1/e gives w = 1 / beta.
  CHECK(acceptance_threshold(1000, 1 - std::exp(-1.0), 100) == Approx(1010));
  CHECK(acceptance_threshold(1000, 0, 100) == 1000);
}

TEST_CASE("a walk takes worse strategies than its current one and keeps the best apart") {
  const Net net = make_net(8, 64);
  const Machine machine = load_machine("cpu-4");
  const Problem problem(net.graph, 4);
  RooflineCost costs;
  const SearchOptions options;
  Chain chain(problem, machine, costs, options, data_parallel(problem, machine), 3);
  bool worse_than_best = false;
  for (int i = 0; i < 200; ++i) {
    const double before = chain.current_score().penalised();
    const int64_t accepted = chain.accepted();
    chain.run(1, 1e9, [] { return false; });  // so cold that nothing worse than the current is taken
    CHECK(chain.current_score().penalised() <= before * 1.000001);
    if (accepted == chain.accepted()) CHECK(chain.current_score().penalised() == before);
  }
  chain.run(300, 1e-3, [] { return false; });  // so hot that all is taken
  worse_than_best = chain.current_score().cost > chain.best_cost();
  CHECK(worse_than_best);
  CHECK(Simulator(problem, machine, costs).evaluate(*chain.best()).makespan == chain.best_cost());
}

TEST_CASE("Metropolis finds the exhaustive optimum") {
  const Machine machine = load_machine("cpu-2");
  for (int64_t size : {2, 24, 64}) {
    const Net net = make_net(8, size);
    const Problem problem(net.graph, 2);
    RooflineCost costs;
    SearchOptions options{.space = Space::soap, .proposals = 2000, .seed = 5};
    const SearchResult walked = search(problem, machine, costs, options);
    options.kind = "exhaustive";
    const SearchResult all = search(problem, machine, costs, options);
    // Conv: whole on 2 devices, or n, co, h or w by 2 in 2 orders: 10 configs; the pool likewise.
    for (OpId op : {net.conv1, net.pool, net.conv2})
      CHECK(all_configs(problem, op, Space::soap, 10).size() == 10);
    CHECK(all.proposals <= 3 + 10 + 100 + 1000 + 1000);  // starts, parts of strategies, strategies
    CHECK(walked.cost == all.cost);
    CHECK(all.lower_bound == all.cost);
  }
}

TEST_CASE("the same seed gives the same strategy whatever the threads") {
  const Net net = make_net(16, 32);
  const Machine machine = load_machine("p100-4x4");
  const Problem problem(net.graph, 16);
  SearchOptions options{.proposals = 400, .seed = 11, .threads = 1};
  RooflineCost costs;
  const SearchResult one = search(problem, machine, costs, options);
  options.threads = 2;
  const SearchResult two = search(problem, machine, costs, options);
  CHECK(one.best == two.best);
  CHECK(one.accepted == two.accepted);
  CHECK(one.proposals == 400);
  CHECK(two.proposals == 400);
}

TEST_CASE("without proposals the best of the starts is the result") {
  const Net net = make_net();
  const Machine machine = load_machine("cpu-4");
  const Problem problem(net.graph, 4);
  RooflineCost costs;
  for (SearchOptions options : {SearchOptions{.proposals = 0}, SearchOptions{.budget_seconds = 0}}) {
    const SearchResult r = search(problem, machine, costs, options);
    CHECK(r.proposals == 0);
    REQUIRE(r.baselines.size() == 4);
    for (const Baseline& b : r.baselines) CHECK(r.cost <= b.cost);
    const std::string report = search_report(r, {"net", "cpu-4", 1}, costs.counts());
    for (const char* name :
         {"predicted_step_seconds", "lower_bound", "optimality_gap", "baselines", "data-parallel", "optcnn",
          "proposals_per_second", "peak_bytes", "bytes_moved", "estimated", "tasks", "seed"})
      CHECK(says(report, name));
  }
}

TEST_CASE("a memory limit that nothing meets is an error with the smallest peak") {
  const Net net = make_net();
  const Machine machine = load_machine("cpu-4");
  const Problem problem(net.graph, 4);
  RooflineCost costs;
  const std::string error =
      error_of([&] { search(problem, machine, costs, {.proposals = 100, .memory_limit = 16}); });
  CHECK(says(error, "smallest peak"));
  CHECK(says(error, "node0/cpu"));
  CHECK(says(error, "--memory-limit"));
}

TEST_CASE("a strategy comes back from its text") {
  const Net net = make_net();
  const Machine machine = load_machine("k80-16x4-paper:nodes=2");
  const Problem problem(net.graph, 8);
  const Proposer proposer(problem, machine, Space::full);
  Rng rng(1);
  std::vector<std::string> warnings;
  for (int i = 0; i < 300; ++i) {
    const Strategy s = proposer.random_strategy(rng);
    const std::string text = to_text(s, problem, {1, 2});
    const Strategy again = parse_strategy(text, "f", problem, {1, 2}, warnings);
    CHECK(again == s);
    CHECK(to_text(again, problem, {1, 2}) == text);
  }
  CHECK(warnings.empty());
}

TEST_CASE("device lists have ranges with steps") {
  CHECK(parse_devices("0-3", "x") == ids({0, 1, 2, 3}));
  CHECK(parse_devices("0-9:4, 7", "x") == ids({0, 4, 8, 7}));
  CHECK(parse_devices("3-0:-1", "x") == ids({3, 2, 1, 0}));
  CHECK(devices_to_text(ids({0, 4, 8, 7})) == "0-8:4,7");
  CHECK(devices_to_text(ids({5, 5, 1, 0})) == "5,5,1,0");
  for (const char* bad : {"a", "1-", "-1", "3-0", "0-3:0", "0-3:-1", "99999999"})
    CHECK(says(error_of([&] { parse_devices(bad, "here"); }), "here"));
}

TEST_CASE("errors of a strategy file name the op and how to mend it") {
  const Net net = make_net();
  const Problem problem(net.graph, 4);
  std::vector<std::string> warnings;
  const auto parse = [&](const std::string& text) {
    return error_of([&] { parse_strategy(text, "s.txt", problem, {1, 2}, warnings); });
  };
  const std::string rest = " default { devices: '0' }";
  CHECK(says(parse("op { name: 'conv1' devices: '0' }"), "'pool' is missing"));
  CHECK(says(parse("op { name: 'conv11' devices: '0' }" + rest), "did you mean 'conv1'?"));
  CHECK(says(parse("op { name: 'conv1' degree { dim: 'x' by: 2 } devices: '0,1' }" + rest),
             "no dimension 'x'"));
  CHECK(says(parse("op { name: 'conv1' degree { dim: 'n' by: 9 } devices: '0-3' }" + rest), "conv1"));
  CHECK(says(parse("op { name: 'conv1' devices: '9' }" + rest), "device 9"));
  CHECK(says(parse("op { name: 'conv1' devices: '0' } op { name: 'conv1' devices: '0' }" + rest), "twice"));
  CHECK(says(parse("\nop { nam"), "s.txt:2:"));
  CHECK(warnings.empty());
  CHECK(parse("model_hash: '0' " + rest) == "no error");
  REQUIRE(warnings.size() == 1);
  CHECK(says(warnings[0], "another model"));
}
