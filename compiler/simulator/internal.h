// What the files of this room share: building a task graph, and the price of a redistribution's step.
#pragma once

#include <array>
#include <memory>
#include <optional>
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

/// The values of the keys that were used last.
template <typename Key, typename Value>
class Recent {
 public:
  const Value* find(const Key& key) {
    for (size_t i = 0; i < kKept; ++i) {
      if (!entries_[i].second || entries_[i].first != key) continue;
      for (; i > 0; --i) std::swap(entries_[i], entries_[i - 1]);
      return entries_[0].second.get();
    }
    return nullptr;
  }
  const Value& add(Key key, Value value) {
    for (size_t i = kKept - 1; i > 0; --i) std::swap(entries_[i], entries_[i - 1]);
    entries_[0] = {std::move(key), std::make_unique<Value>(std::move(value))};
    return *entries_[0].second;
  }

 private:
  // A walk goes to and fro between its strategy and one that differs in a few ops.
  static constexpr size_t kKept = 3;
  std::array<std::pair<Key, std::unique_ptr<Value>>, kKept> entries_;
};

/// A run of an op that reads or writes a tensor.
struct Use {
  OpId op;
  int32_t run;
  int32_t place;  // in OpRuns::instances
};

/// What one tensor adds to a task graph, whatever the numbers of its tasks there.
struct TensorTasks {
  struct Node {
    int32_t op;     // -1: a step of the plan
    int32_t index;  // run or step
  };
  std::vector<Use> writes, reads;
  std::shared_ptr<const TensorPlan> plan;
  std::vector<StepPrice> prices;  // of its steps
  std::vector<std::pair<Node, Node>> edges;
};

/// What builds of one problem share: costs, and the parts of task graphs whose ops have the same configs.
struct BuildCache {
  KernelCosts costs;
  std::vector<std::unordered_map<std::string, int32_t>> configs;   // by leader: numbers of those seen
  std::vector<Recent<int32_t, OpRuns>> ops;                        // by op and number of its config
  std::vector<Recent<std::vector<int32_t>, TensorTasks>> tensors;  // by the numbers of its ops' configs
};

class GraphBuilder {
 public:
  GraphBuilder(const Problem& problem, const Machine& machine, CostModel& costs, const Strategy& strategy,
               BuildCache& cache, const Homes* homes = nullptr);
  TaskGraph build();

 private:
  void number_configs();
  OpRuns make_runs(OpId id);
  void add_runs(OpId id);
  void collect(TensorId tensor);
  bool is_result(TensorId tensor) const;
  RedistributionOptions options_of(TensorId tensor) const;
  TensorTasks make_tensor(TensorId tensor);
  void add_tensor(TensorId tensor);
  void finish_edges();
  int32_t& place_of(const Use& use) {
    return out_.ops[use.op.index()].instances[static_cast<size_t>(use.place)];
  }

  const Problem& problem_;
  const Machine& machine_;
  CostModel& costs_;
  const Strategy& strategy_;
  BuildCache& cache_;
  const Homes* homes_;
  TaskGraph out_;
  std::vector<int32_t> first_task_;      // of each op's runs
  std::vector<int32_t> config_numbers_;  // by op: of its leader's config
  std::vector<std::pair<int32_t, int32_t>> edges_;
  std::vector<TensorWrite> writes_;
  std::vector<TensorRead> reads_;
  std::vector<Use> write_places_, read_places_;
};

}  // namespace ff
