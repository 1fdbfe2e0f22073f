// Configs that follow others: how a tensor is split where one op touches it, carried over to another op.
//
//   Conv n=2 co=2 on devices 0..3 writes [n, co]; the Relu behind it, over (n, c), follows with n=2 c=2 on
//   the same devices: nothing is sent. Its weight [co, ci] is read by devices {0, 2} (co half 0) and {1, 3}
//   (half 1): the update of the weight follows with co=2 and 2 replicas, on {0, 2, 1, 3}: no weight is sent,
//   its gradient is reduced in pairs.
#pragma once

#include <optional>

#include "compiler/partition/config.h"

namespace ff {

/// full: everything that a config can say. soap: the paper's space: no contracted splits, no replicas, and
/// updates that run wherever their weight is read.
enum class Space : uint8_t { full, soap };

bool is_update(const Problem& problem, OpId leader);
/// Whether the space allows to split this dimension of a leader.
bool may_split(const Problem& problem, OpId leader, size_t dim, Space space);

/// The leader of the first forward op that reads the weight which this update writes; an invalid id if there
/// is none.
OpId weight_reader(const Problem& problem, OpId update);
/// The config of an update that leaves every block of the weight where it is read. Without a reader: whole,
/// on every device.
Config follow_readers(const Problem& problem, const Strategy& strategy, OpId update);

/// The config of `to` that splits the tensor between `from` and `to` (leaders, either may write it) as `from`
/// does; nothing if there is no such tensor or no split carries over.
std::optional<Config> follow_neighbour(const Problem& problem, const Strategy& strategy, OpId from, OpId to,
                                       Space space);

/// Leaders that `leader` shares an activation with in the forward pass, in graph order.
std::vector<OpId> neighbours(const Problem& problem, OpId leader);

/// The same config in as many cells, each device the next.
Config whole_on(const Problem& problem, OpId leader, const std::vector<DeviceId>& devices);
std::vector<DeviceId> all_devices(int count);

}  // namespace ff
