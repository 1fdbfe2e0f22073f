// Strategies: how each op is split and placed.
//
//   Conv with dims n co h w ci on 4 devices, samples by 2 and channels by 2:
//   Config{.degrees = {2, 2, 1, 1, 1}, .devices = {0, 1, 2, 3}}
//
// Cells are counted row-major over the degrees, the replica last: cell = ((in * 2 + ico) ...) * replicas + r.
// A replica computes the same cell again on its own device. Several cells on one device are legal.
#pragma once

#include <memory>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/ops/op_table.h"

namespace ff {

struct Config {
  std::vector<int32_t> degrees;  // one an iteration dimension of the op
  int32_t replicas = 1;
  std::vector<DeviceId> devices;  // one a cell

  int64_t num_cells() const;
  friend bool operator==(const Config&, const Config&) = default;
};

/// One config an op that has its own (Op::config_of is itself); the others' are empty.
struct Strategy {
  std::vector<Config> configs;  // by OpId
  friend bool operator==(const Strategy&, const Strategy&) = default;
};

/// One execution of a cell. Cells of one device that compute the same (replicas, or an op that lacks a split
/// dimension of the config it follows) run once.
struct CellRun {
  DeviceId device;
  int32_t cell = 0;    // in the config
  int32_t addend = 0;  // number of the distinct blocks, row-major over the op's own degrees
};

/// The training graph with what the search asks of it again and again, computed once.
class Problem {
 public:
  /// `graph` must outlive this. `num_devices` bounds device ids.
  Problem(const Graph& graph, int num_devices);

  const Graph& graph() const { return graph_; }
  int num_devices() const { return num_devices_; }
  const OpSpace& space(OpId op) const { return spaces_[op.index()]; }
  /// Ops with a config of their own, in graph order.
  const std::vector<OpId>& leaders() const { return leaders_; }
  /// The ops that follow this leader's config, itself included.
  const std::vector<OpId>& followers(OpId leader) const { return followers_[leader.index()]; }
  /// Of a leader's dimension: the largest degree that it and all its followers allow.
  int64_t max_degree(OpId leader, size_t dim) const { return max_degrees_[leader.index()][dim]; }
  /// The ops that may write or read a tensor, in graph order, fused and staged forms alike.
  const std::vector<std::pair<OpId, int>>& writers(TensorId t) const { return writers_[t.index()]; }
  const std::vector<std::pair<OpId, int>>& readers(TensorId t) const { return readers_[t.index()]; }

  /// By dimension of the op: its leader's dimension, or -1 if the leader lacks it.
  const std::vector<int>& leader_dims(OpId op) const { return leader_dims_[op.index()]; }
  /// Of a fused op that has a staged form: a bit for each leader's dimension whose split needs that form.
  uint32_t stage_mask(OpId fused) const { return stage_masks_[fused.index()]; }
  /// Whether this op takes part under its leader's config: of the fused and the staged form exactly one does.
  bool active(OpId op, const Config& config) const;
  /// The op's own degrees under its leader's config.
  std::vector<int32_t> degrees_of(OpId op, const Config& config) const;
  /// Its executions, by cell.
  std::vector<CellRun> runs_of(OpId op, const Config& config) const;
  /// Blocks of the op's dimensions in an addend (a number over `degrees`, row-major).
  std::vector<Range> blocks_of(OpId op, const std::vector<int32_t>& degrees, int32_t addend) const;
  void blocks_of(OpId op, const std::vector<int32_t>& degrees, int32_t addend,
                 std::vector<Range>& blocks) const;
  /// Blocks of the largest cell under these degrees: what a config's cost is taken from.
  std::vector<Range> largest_blocks(OpId op, const std::vector<int32_t>& degrees) const;

  /// Throws UserError naming the op if a strategy is not one of this graph: a degree above its dimension's
  /// largest, a device that the machine does not have, a wrong number of devices.
  void check(const Strategy& strategy) const;
  void check(OpId leader, const Config& config) const;

 private:
  const Graph& graph_;
  int num_devices_;
  std::vector<OpSpace> spaces_;
  std::vector<std::vector<int>> leader_dims_;  // op dim -> leader dim, -1: the leader lacks it
  std::vector<uint32_t> stage_masks_;          // over leader dims; of fused ops that have a staged form
  std::vector<OpId> leaders_;
  std::vector<std::vector<OpId>> followers_;
  std::vector<std::vector<int64_t>> max_degrees_;
  std::vector<std::vector<std::pair<OpId, int>>> writers_, readers_;
};

}  // namespace ff
