#include "compiler/partition/config.h"

#include <algorithm>

#include "compiler/base/check.h"

namespace ff {

int64_t Config::num_cells() const {
  int64_t n = replicas;
  for (int32_t d : degrees) n *= d;
  return n;
}

Problem::Problem(const Graph& graph, int num_devices)
    : graph_(graph),
      num_devices_(num_devices),
      stage_masks_(graph.ops.size(), 0),
      followers_(graph.ops.size()),
      max_degrees_(graph.ops.size()),
      writers_(graph.tensors.size()),
      readers_(graph.tensors.size()) {
  const size_t n = graph.ops.size();
  for (size_t i = 0; i < n; ++i) spaces_.push_back(space_of(graph, OpId(static_cast<int64_t>(i))));
  for (size_t i = 0; i < n; ++i) {
    const OpId id(static_cast<int64_t>(i));
    const Op& op = graph.ops[i];
    const OpSpace& own = spaces_[i];
    const OpSpace& leader = spaces_[op.config_of.index()];
    FF_CHECK_LE(leader.dims.size(), size_t{32}) << "op " << op.name;
    std::vector<int> dims;
    for (const IterDim& dim : own.dims) dims.push_back(leader.dim_index(dim.name));
    for (std::string_view name : op_def(op.type).stage_dims) {
      if (const int dim = leader.dim_index(name); dim >= 0) stage_masks_[i] |= 1U << dim;
    }
    leader_dims_.push_back(std::move(dims));
    if (op.config_of == id) {
      leaders_.push_back(id);
      for (const IterDim& dim : own.dims) max_degrees_[i].push_back(std::min(dim.extent, dim.max_degree));
    }
    followers_[op.config_of.index()].push_back(id);
    for (size_t k = 0; k < op.inputs.size(); ++k) {
      if (op.inputs[k].valid()) readers_[op.inputs[k].index()].emplace_back(id, static_cast<int>(k));
    }
    for (size_t k = 0; k < op.outputs.size(); ++k) {
      if (op.outputs[k].valid()) writers_[op.outputs[k].index()].emplace_back(id, static_cast<int>(k));
    }
  }
  for (size_t i = 0; i < n; ++i) {
    auto& limits = max_degrees_[graph.ops[i].config_of.index()];
    for (size_t d = 0; d < leader_dims_[i].size(); ++d) {
      if (const int at = leader_dims_[i][d]; at >= 0) {
        int64_t& limit = limits[static_cast<size_t>(at)];
        limit = std::min({limit, spaces_[i].dims[d].max_degree, spaces_[i].dims[d].extent});
      }
    }
  }
}

bool Problem::active(OpId op, const Config& config) const {
  const Op& node = graph_.op(op);
  const OpId fused = node.stage_of.valid() ? node.stage_of : op;
  const uint32_t mask = stage_masks_[fused.index()];
  if (mask == 0) return true;
  bool split = false;
  for (size_t d = 0; d < config.degrees.size(); ++d)
    split |= ((mask >> d) & 1U) != 0 && config.degrees[d] > 1;
  return split == node.stage_of.valid();
}

std::vector<int32_t> Problem::degrees_of(OpId op, const Config& config) const {
  std::vector<int32_t> degrees;
  for (int dim : leader_dims_[op.index()])
    degrees.push_back(dim < 0 ? 1 : config.degrees[static_cast<size_t>(dim)]);
  return degrees;
}

std::vector<CellRun> Problem::runs_of(OpId op, const Config& config) const {
  const std::vector<int>& dims = leader_dims_[op.index()];
  const auto degrees = degrees_of(op, config);
  // The weight of each leader dimension's block index in the addend's number.
  std::vector<int64_t> weights(config.degrees.size(), 0);
  int64_t addends = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] >= 0) weights[static_cast<size_t>(dims[d])] = addends;
    addends *= degrees[d];
  }
  std::vector<CellRun> runs;
  const int64_t cells = config.num_cells();
  const bool all_distinct = addends == cells;
  std::vector<bool> seen(all_distinct ? 0 : static_cast<size_t>(addends * num_devices_));
  for (int64_t cell = 0; cell < cells; ++cell) {
    int64_t rest = cell / config.replicas;
    int64_t addend = 0;
    for (size_t d = config.degrees.size(); d-- > 0;) {
      addend += rest % config.degrees[d] * weights[d];
      rest /= config.degrees[d];
    }
    const DeviceId device = config.devices[static_cast<size_t>(cell)];
    if (!all_distinct) {
      auto mark = seen[static_cast<size_t>(addend * num_devices_ + device.value)];
      if (mark) continue;
      mark = true;
    }
    runs.push_back({device, static_cast<int32_t>(cell), static_cast<int32_t>(addend)});
  }
  return runs;
}

std::vector<Range> Problem::blocks_of(OpId op, const std::vector<int32_t>& degrees, int32_t addend) const {
  std::vector<Range> blocks;
  blocks_of(op, degrees, addend, blocks);
  return blocks;
}

void Problem::blocks_of(OpId op, const std::vector<int32_t>& degrees, int32_t addend,
                        std::vector<Range>& blocks) const {
  const auto& dims = spaces_[op.index()].dims;
  blocks.resize(dims.size());
  int64_t rest = addend;
  for (size_t d = dims.size(); d-- > 0;) {
    blocks[d] = block(dims[d].extent, degrees[d], rest % degrees[d]);
    rest /= degrees[d];
  }
}

std::vector<Range> Problem::largest_blocks(OpId op, const std::vector<int32_t>& degrees) const {
  const auto& dims = spaces_[op.index()].dims;
  std::vector<Range> blocks(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    // From the middle on, so that a window's block has neighbours on both sides where there are any.
    for (int64_t k = 0; k < degrees[d]; ++k) {
      const Range candidate = block(dims[d].extent, degrees[d], (degrees[d] / 2 + k) % degrees[d]);
      if (candidate.size() > blocks[d].size()) blocks[d] = candidate;
    }
  }
  return blocks;
}

void Problem::check(OpId leader, const Config& config) const {
  const Op& op = graph_.op(leader);
  const auto& dims = space(leader).dims;
  const std::string where = "op '" + op.name + "' (" + op.type + "): ";
  if (config.degrees.size() != dims.size()) {
    throw UserError(where + "has " + std::to_string(dims.size()) + " dimensions, the config has " +
                    std::to_string(config.degrees.size()) + " degrees");
  }
  for (size_t d = 0; d < dims.size(); ++d) {
    if (config.degrees[d] >= 1 && config.degrees[d] <= max_degree(leader, d)) continue;
    throw UserError(where + "dimension " + dims[d].name + " (size " + std::to_string(dims[d].extent) +
                    ") cannot be split by " + std::to_string(config.degrees[d]) + ": its largest degree is " +
                    std::to_string(max_degree(leader, d)));
  }
  if (config.replicas < 1) throw UserError(where + "replicas must be at least 1");
  if (static_cast<int64_t>(config.devices.size()) != config.num_cells()) {
    throw UserError(where + "has " + std::to_string(config.num_cells()) + " cells, the config names " +
                    std::to_string(config.devices.size()) + " devices");
  }
  for (DeviceId device : config.devices) {
    if (device.value >= 0 && device.value < num_devices_) continue;
    throw UserError(where + "device " + std::to_string(device.value) + " is not one of the machine's " +
                    std::to_string(num_devices_));
  }
}

void Problem::check(const Strategy& strategy) const {
  FF_CHECK_EQ(strategy.configs.size(), graph_.ops.size());
  for (OpId leader : leaders_) check(leader, strategy.configs[leader.index()]);
}

}  // namespace ff
