#include "compiler/search/follow.h"

#include <algorithm>

#include "compiler/base/check.h"

namespace ff {
namespace {

/// How a tensor lies: the degree of each axis, and who has each block (row-major over the degrees).
struct AxisSplit {
  std::vector<int32_t> degrees;
  std::vector<std::vector<DeviceId>> holders;
};

void add_once(std::vector<DeviceId>& devices, DeviceId device) {
  if (std::find(devices.begin(), devices.end(), device) == devices.end()) devices.push_back(device);
}

/// The block of each dimension in a number over `degrees`, row-major.
std::vector<int32_t> decode(int64_t number, const std::vector<int32_t>& degrees) {
  std::vector<int32_t> blocks(degrees.size());
  for (size_t d = degrees.size(); d-- > 0;) {
    blocks[d] = static_cast<int32_t>(number % degrees[d]);
    number /= degrees[d];
  }
  return blocks;
}

AxisSplit split_of(const Problem& problem, OpId op, const AccessMap& map, const Config& config) {
  const std::vector<int32_t> degrees = problem.degrees_of(op, config);
  std::vector<int> dims;  // of each axis; a dimension that two axes have counts at the first
  AxisSplit split;
  size_t blocks = 1;
  for (const AxisMap& axis : map.axes) {
    const bool used = std::find(dims.begin(), dims.end(), axis.dim) != dims.end();
    dims.push_back(used ? -1 : axis.dim);
    split.degrees.push_back(dims.back() < 0 ? 1 : degrees[static_cast<size_t>(axis.dim)]);
    blocks *= static_cast<size_t>(split.degrees.back());
  }
  split.holders.resize(blocks);
  for (const CellRun& run : problem.runs_of(op, config)) {
    const std::vector<int32_t> cell = decode(run.addend, degrees);
    size_t at = 0;
    for (size_t a = 0; a < dims.size(); ++a) {
      at = at * static_cast<size_t>(split.degrees[a]) +
           (dims[a] < 0 ? 0 : static_cast<size_t>(cell[static_cast<size_t>(dims[a])]));
    }
    add_once(split.holders[at], run.device);
  }
  return split;
}

/// A config of `leader` whose operand with this map is split so. Every holder computes if `replicate`, else
/// the first of each block.
Config config_of_split(const Problem& problem, OpId leader, const AccessMap& map, const AxisSplit& split,
                       bool replicate, Space space) {
  const size_t dims = problem.space(leader).dims.size();
  Config config{.degrees = std::vector<int32_t>(dims, 1), .replicas = 1, .devices = {}};
  std::vector<int> axis_of(dims, -1);
  for (size_t a = 0; a < map.axes.size(); ++a) {
    if (map.axes[a].dim < 0 || split.degrees[a] == 1) continue;
    const auto dim = static_cast<size_t>(map.axes[a].dim);
    if (axis_of[dim] >= 0 || split.degrees[a] > problem.max_degree(leader, dim)) continue;
    if (!may_split(problem, leader, dim, space)) continue;
    axis_of[dim] = static_cast<int>(a);
    config.degrees[dim] = split.degrees[a];
  }
  std::vector<std::vector<DeviceId>> holders(static_cast<size_t>(config.num_cells()));
  for (size_t b = 0; b < split.holders.size(); ++b) {
    const std::vector<int32_t> blocks = decode(static_cast<int64_t>(b), split.degrees);
    size_t cell = 0;
    for (size_t d = 0; d < dims; ++d) {
      cell = cell * static_cast<size_t>(config.degrees[d]) +
             (axis_of[d] < 0 ? 0 : static_cast<size_t>(blocks[static_cast<size_t>(axis_of[d])]));
    }
    for (DeviceId device : split.holders[b]) add_once(holders[cell], device);
  }
  size_t replicas = 1;
  if (replicate) {
    for (const auto& list : holders) replicas = std::max(replicas, list.size());
  }
  config.replicas = static_cast<int32_t>(replicas);
  for (const auto& list : holders) {
    FF_CHECK(!list.empty()) << problem.graph().op(leader).name;
    for (size_t r = 0; r < replicas; ++r) config.devices.push_back(list[r % list.size()]);
  }
  return config;
}

/// The operand of a leader that is this tensor: its map, or null.
const AccessMap* map_of(const Problem& problem, OpId op, TensorId tensor) {
  const Op& node = problem.graph().op(op);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == tensor) return &problem.space(op).outputs[i];
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == tensor) return &problem.space(op).inputs[i];
  }
  return nullptr;
}

/// The output of an update that is a parameter; -1 if it has none.
int weight_output(const Problem& problem, OpId update) {
  const Graph& graph = problem.graph();
  const Op& op = graph.op(update);
  int found = -1;
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    if (!op.outputs[i].valid() || graph.tensor(op.outputs[i]).kind != TensorKind::parameter) continue;
    if (graph.tensor(op.outputs[i]).source.role == ParameterRole::trained) return static_cast<int>(i);
    if (found < 0) found = static_cast<int>(i);
  }
  return found;
}

/// The first forward op that reads the weight of an update, and as which input.
std::pair<OpId, int> first_reader(const Problem& problem, OpId update) {
  const int output = weight_output(problem, update);
  if (output < 0) return {OpId(), -1};
  const TensorId weight = problem.graph().op(update).outputs[static_cast<size_t>(output)];
  for (const auto& reader : problem.readers(weight)) {
    if (problem.graph().op(reader.first).phase == Phase::forward) return reader;
  }
  return {OpId(), -1};
}

}  // namespace

bool is_update(const Problem& problem, OpId leader) {
  return problem.graph().op(leader).phase == Phase::update;
}

bool may_split(const Problem& problem, OpId leader, size_t dim, Space space) {
  if (problem.max_degree(leader, dim) < 2) return false;
  return space == Space::full || problem.space(leader).dims[dim].role != Role::contracted;
}

std::vector<DeviceId> all_devices(int count) {
  std::vector<DeviceId> devices;
  for (int d = 0; d < count; ++d) devices.emplace_back(d);
  return devices;
}

Config whole_on(const Problem& problem, OpId leader, const std::vector<DeviceId>& devices) {
  return {.degrees = std::vector<int32_t>(problem.space(leader).dims.size(), 1),
          .replicas = static_cast<int32_t>(devices.size()),
          .devices = devices};
}

OpId weight_reader(const Problem& problem, OpId update) {
  const OpId reader = first_reader(problem, update).first;
  return reader.valid() ? problem.graph().op(reader).config_of : OpId();
}

Config follow_readers(const Problem& problem, const Strategy& strategy, OpId update) {
  const auto [reader, input] = first_reader(problem, update);
  if (!reader.valid()) return whole_on(problem, update, all_devices(problem.num_devices()));
  const Config& config = strategy.configs[problem.graph().op(reader).config_of.index()];
  const AxisSplit split =
      split_of(problem, reader, problem.space(reader).inputs[static_cast<size_t>(input)], config);
  const AccessMap& map = problem.space(update).outputs[static_cast<size_t>(weight_output(problem, update))];
  return config_of_split(problem, update, map, split, true, Space::full);
}

std::vector<OpId> neighbours(const Problem& problem, OpId leader) {
  const Graph& graph = problem.graph();
  std::vector<OpId> found;
  const auto visit = [&](const std::vector<std::pair<OpId, int>>& ops) {
    for (const auto& [op, operand] : ops) {
      if (graph.op(op).phase == Phase::forward && graph.op(op).config_of == op && op != leader)
        found.push_back(op);
    }
  };
  for (TensorId t : graph.op(leader).inputs) {
    if (t.valid() && graph.tensor(t).kind == TensorKind::activation) visit(problem.writers(t));
  }
  for (TensorId t : graph.op(leader).outputs) {
    if (t.valid() && graph.tensor(t).kind == TensorKind::activation) visit(problem.readers(t));
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::optional<Config> follow_neighbour(const Problem& problem, const Strategy& strategy, OpId from, OpId to,
                                       Space space) {
  const Graph& graph = problem.graph();
  std::vector<TensorId> tensors = graph.op(from).outputs;
  const auto& inputs = graph.op(from).inputs;
  tensors.insert(tensors.end(), inputs.begin(), inputs.end());
  for (TensorId t : tensors) {
    if (!t.valid() || graph.tensor(t).kind != TensorKind::activation) continue;
    const AccessMap* theirs = map_of(problem, to, t);
    const AccessMap* ours = map_of(problem, from, t);
    if (theirs == nullptr || ours == nullptr) continue;
    const AxisSplit split = split_of(problem, from, *ours, strategy.configs[from.index()]);
    return config_of_split(problem, to, *theirs, split, false, space);
  }
  return std::nullopt;
}

}  // namespace ff
