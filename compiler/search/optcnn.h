// OptCNN: the strategy with the least sum of op times and transfer times, by dynamic programming (Jia, Lin,
// Qi, Aiken, ICML 2018). In that sum nothing overlaps, and a tensor with several readers is sent to each by
// itself: the simulator says mostly less of the strategy.
//
//   conv -> pool -> fc on 4 devices: each op costs its forward and backward pass, the reduction of its
//   weight's gradient and the update, under each candidate; conv -> pool and pool -> fc cost the
//   redistribution of the activation and of its gradient, under each pair
//
// Candidates are splits over the first devices in order: all degrees whose product divides the number of
// devices where there are at most 4 of them; beyond, 16 an op on up to 16 devices and 10 on more: whole,
// every dimension by the most it allows, then those with the shortest compute.
#pragma once

#include "compiler/search/additive.h"
#include "compiler/search/search.h"

namespace ff {

struct OptcnnModel {
  std::vector<OpId> ops;                        // leaders that are no updates: the nodes
  std::vector<std::vector<Config>> candidates;  // by node
  AdditiveCosts costs;
};

/// Candidates by op, in the order of Problem::leaders without updates.
OptcnnModel optcnn_candidates(const Problem& problem, const Machine& machine, CostModel& costs, Space space);
/// Redistributions that pricing these candidates plans, each weighted by the devices it may span: 100'000
/// take about a second.
double pricing_effort(const Problem& problem, const OptcnnModel& model);
/// Fills in model.costs, a redistribution by the steps that the simulator takes, alone on the machine.
void price(const Problem& problem, const Machine& machine, CostModel& costs, OptcnnModel& model);

struct OptcnnResult {
  Strategy strategy;
  Nanoseconds cost = 0;  // of the sum, not of the simulator
  size_t guessed = 0;    // ops that dynamic programming did not reach
};
OptcnnResult optcnn(const Problem& problem, const Machine& machine, CostModel& costs, OptcnnModel model);

}  // namespace ff
