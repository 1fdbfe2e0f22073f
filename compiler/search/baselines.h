// The strategies that people write by hand: what a search is measured against, and where it starts.
//
//   data parallelism    every op split by samples over all devices
//   model parallelism   every op split by its parameters' dimension over all devices
//   expert              with convolutions: by samples, and fully connected layers by parameters
//                       (Krizhevsky, "One weird trick", arXiv 1404.5997);
//                       without: nodes by samples, and layers placed on the devices of a node in order
#pragma once

#include "compiler/machine/machine.h"
#include "compiler/partition/config.h"

namespace ff {

/// Where an op has fewer samples than there are devices, it runs on as many as it has samples; where it has
/// no samples, on every device.
Strategy data_parallel(const Problem& problem, const Machine& machine);
/// Ops without a parameter dimension are split as their producer is, else by samples.
Strategy model_parallel(const Problem& problem, const Machine& machine);
Strategy expert(const Problem& problem, const Machine& machine);

/// Gives every update the config that follows the readers of its weight.
void follow_all(const Problem& problem, Strategy& strategy);
/// The leader's dimension of this role that allows the largest degree; -1 if none allows two.
int widest_dim(const Problem& problem, OpId leader, Role role);
/// Split in one dimension over the first of these devices that its extent allows.
Config split_over(const Problem& problem, OpId leader, int dim, const std::vector<DeviceId>& devices);

}  // namespace ff
