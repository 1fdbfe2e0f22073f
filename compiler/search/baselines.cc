#include "compiler/search/baselines.h"

#include <algorithm>

#include "compiler/search/follow.h"

namespace ff {
namespace {

Config by_samples(const Problem& problem, OpId op, const std::vector<DeviceId>& devices) {
  const int dim = widest_dim(problem, op, Role::sample);
  return dim < 0 ? whole_on(problem, op, devices) : split_over(problem, op, dim, devices);
}

bool is_split(const Config& config) {
  return std::any_of(config.degrees.begin(), config.degrees.end(), [](int32_t d) { return d > 1; });
}

/// As the op that wrote one of its inputs, where a split carries over; else by samples.
Config as_producer(const Problem& problem, const Strategy& strategy, OpId op,
                   const std::vector<DeviceId>& devices) {
  const Graph& graph = problem.graph();
  for (TensorId t : graph.op(op).inputs) {
    if (!t.valid() || graph.tensor(t).kind != TensorKind::activation) continue;
    for (const auto& [writer, output] : problem.writers(t)) {
      if (graph.op(writer).config_of != writer || strategy.configs[writer.index()].devices.empty()) continue;
      const auto config = follow_neighbour(problem, strategy, writer, op, Space::soap);
      if (config && is_split(*config)) return *config;
    }
  }
  return by_samples(problem, op, devices);
}

Strategy empty_strategy(const Problem& problem) { return {std::vector<Config>(problem.graph().ops.size())}; }

bool has_weight(const Problem& problem, OpId op) {
  const Graph& graph = problem.graph();
  for (TensorId t : graph.op(op).inputs) {
    if (t.valid() && graph.tensor(t).kind == TensorKind::parameter &&
        graph.tensor(t).source.role != ParameterRole::state)
      return true;
  }
  return false;
}

/// One weird trick: fully connected layers and what hangs on them by parameters, the rest by samples.
Strategy weird_trick(const Problem& problem, const Machine& machine) {
  const auto devices = all_devices(machine.num_devices());
  Strategy strategy = empty_strategy(problem);
  for (OpId op : problem.leaders()) {
    if (is_update(problem, op)) continue;
    const auto family = op_def(problem.graph().op(op).type).family;
    const int dim = widest_dim(problem, op, Role::parameter);
    Config& config = strategy.configs[op.index()];
    if (family == "matmul" && dim >= 0 && has_weight(problem, op)) {
      config = split_over(problem, op, dim, devices);
    } else if (family == "elementwise") {
      config = as_producer(problem, strategy, op, devices);
    } else {
      config = by_samples(problem, op, devices);
    }
  }
  follow_all(problem, strategy);
  return strategy;
}

double whole_work(const Problem& problem, OpId op) {
  const Graph& graph = problem.graph();
  const auto blocks = problem.largest_blocks(op, std::vector<int32_t>(problem.space(op).dims.size(), 1));
  const Work work = work_of(graph, graph.op(op), cell_of(graph, graph.op(op), problem.space(op), blocks));
  return work.flops > 0 ? work.flops : work.bytes;
}

/// Nodes by samples; in a node, layers in forward order on its devices, equal work each.
Strategy placed_layers(const Problem& problem, const Machine& machine) {
  const int nodes = machine.num_nodes();
  std::vector<std::vector<DeviceId>> node_devices(static_cast<size_t>(nodes));
  for (DeviceId d : all_devices(machine.num_devices()))
    node_devices[static_cast<size_t>(machine.node_of(d))].push_back(d);
  double total = 0, done = 0;
  std::vector<OpId> ops;
  for (OpId op : problem.leaders()) {
    if (is_update(problem, op)) continue;
    ops.push_back(op);
    total += whole_work(problem, op);
  }
  Strategy strategy = empty_strategy(problem);
  for (OpId op : ops) {
    const double work = whole_work(problem, op);
    const double at = total > 0 ? (done + work / 2) / total : 0;
    done += work;
    std::vector<DeviceId> devices;
    for (const auto& node : node_devices) {
      const auto k = static_cast<size_t>(at * static_cast<double>(node.size()));
      devices.push_back(node[std::min(k, node.size() - 1)]);
    }
    strategy.configs[op.index()] = by_samples(problem, op, devices);
  }
  follow_all(problem, strategy);
  return strategy;
}

}  // namespace

int widest_dim(const Problem& problem, OpId leader, Role role) {
  const auto& dims = problem.space(leader).dims;
  int best = -1;
  int64_t degree = 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].role != role || problem.max_degree(leader, d) <= degree) continue;
    degree = problem.max_degree(leader, d);
    best = static_cast<int>(d);
  }
  return best;
}

Config split_over(const Problem& problem, OpId leader, int dim, const std::vector<DeviceId>& devices) {
  const auto d = static_cast<size_t>(dim);
  const auto degree = std::min(static_cast<int64_t>(devices.size()), problem.max_degree(leader, d));
  Config config = whole_on(problem, leader, {devices.begin(), devices.begin() + degree});
  config.replicas = 1;
  config.degrees[d] = static_cast<int32_t>(degree);
  return config;
}

void follow_all(const Problem& problem, Strategy& strategy) {
  for (OpId op : problem.leaders()) {
    if (is_update(problem, op)) strategy.configs[op.index()] = follow_readers(problem, strategy, op);
  }
}

Strategy data_parallel(const Problem& problem, const Machine& machine) {
  const auto devices = all_devices(machine.num_devices());
  Strategy strategy = empty_strategy(problem);
  for (OpId op : problem.leaders()) {
    if (!is_update(problem, op)) strategy.configs[op.index()] = by_samples(problem, op, devices);
  }
  follow_all(problem, strategy);
  return strategy;
}

Strategy model_parallel(const Problem& problem, const Machine& machine) {
  const auto devices = all_devices(machine.num_devices());
  Strategy strategy = empty_strategy(problem);
  for (OpId op : problem.leaders()) {
    if (is_update(problem, op)) continue;
    const int dim = widest_dim(problem, op, Role::parameter);
    strategy.configs[op.index()] =
        dim >= 0 && problem.max_degree(op, static_cast<size_t>(dim)) >= 2 && has_weight(problem, op)
            ? split_over(problem, op, dim, devices)
            : as_producer(problem, strategy, op, devices);
  }
  follow_all(problem, strategy);
  return strategy;
}

Strategy expert(const Problem& problem, const Machine& machine) {
  const auto& ops = problem.graph().ops;
  const bool convolutions =
      std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op_def(op.type).family == "conv"; });
  return convolutions ? weird_trick(problem, machine) : placed_layers(problem, machine);
}

}  // namespace ff
