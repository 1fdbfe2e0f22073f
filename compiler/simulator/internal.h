// What the files of this room share: building a task graph, and the price of a redistribution's step.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/simulator/simulator.h"

namespace ff {

/// Kernel costs by (op, degrees): one cost a config, that of its largest cell.
class KernelCosts {
 public:
  KernelCost largest_cell(const Problem& problem, const Machine& machine, CostModel& costs, OpId id,
                          const std::vector<int32_t>& degrees);

 private:
  std::unordered_map<std::string, KernelCost> memo_;
};

struct StepPrice {
  Nanoseconds duration = 1;
  std::vector<int32_t> resources;
  int64_t bytes_moved = 0;
};

/// Time and resources of one step. Messages: latency + bytes / bandwidth of the route. Collectives over P
/// members, bytes n: reduce-scatter and all-gather take (P-1) rounds of n/P each on a ring, an all-reduce
/// both, a broadcast ceil(log2 P) rounds of n.
StepPrice price_step(const Step& step, const Machine& machine);

class GraphBuilder {
 public:
  GraphBuilder(const Problem& problem, const Machine& machine, CostModel& costs, const Strategy& strategy,
               KernelCosts& memo, const Homes* homes = nullptr);
  TaskGraph build();

 private:
  struct Use {
    OpId op;
    int32_t run;
    int32_t place;  // in OpRuns::instances
  };
  void add_runs(OpId id);
  void collect(TensorId tensor);
  bool is_result(TensorId tensor) const;
  RedistributionOptions options_of(TensorId tensor) const;
  void add_tensor(TensorId tensor);
  void add_step(TensorId tensor, const TensorPlan& plan, int32_t index);
  void finish_edges();
  int32_t& place_of(const Use& use) {
    return out_.ops[use.op.index()].instances[static_cast<size_t>(use.place)];
  }

  const Problem& problem_;
  const Machine& machine_;
  CostModel& costs_;
  const Strategy& strategy_;
  KernelCosts& memo_;
  const Homes* homes_;
  TaskGraph out_;
  std::vector<int32_t> first_task_;  // of each op's runs
  std::vector<std::pair<int32_t, int32_t>> edges_;
  std::vector<TensorWrite> writes_;
  std::vector<TensorRead> reads_;
  std::vector<Use> write_places_, read_places_;
};

}  // namespace ff
