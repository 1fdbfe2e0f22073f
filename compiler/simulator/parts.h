// The parts that task graphs are put together from: the runs of one op under one config, and what one tensor
// adds (its redistribution, priced, and the edges between the tasks that touch it).
//
//   Parts parts(problem, machine, costs);
//   parts.op(id, config, key)                // shared: equal keys give the same object while it is kept
//   parts.tensor(id, runs, keys)             // likewise, also between tensors that are alike
//
// A part is a function of what its key says and does not know the numbers that its tasks have in a graph, so
// the layers of a repeated block share theirs, and a search that goes to and fro finds them again.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/simulator/simulator.h"

namespace ff {

/// 128 bits that stand for a value: unequal values have unequal keys but for one chance in 2^128 a pair.
struct PartKey {
  uint64_t a = 0, b = 0;
  friend bool operator==(const PartKey&, const PartKey&) = default;
};

struct PartKeyHash {
  size_t operator()(const PartKey& key) const { return static_cast<size_t>(key.a); }
};

PartKey key_of(const Config& config);
/// By op: of its leader's config.
std::vector<PartKey> keys_of(const Problem& problem, const Strategy& strategy);

struct StepPrice {
  Nanoseconds duration = 1;
  std::vector<int32_t> resources;
  int64_t bytes_moved = 0;
};

/// Time and resources of one step. Messages: latency + bytes / bandwidth of the route. Collectives over P
/// members, bytes n: reduce-scatter and all-gather take (P-1) rounds of n/P each on a ring, an all-reduce
/// both, a broadcast ceil(log2 P) rounds of n.
StepPrice price_step(const Step& step, const Machine& machine);

/// What one tensor adds to a task graph. Its nodes are the plan's steps and the runs of its participants.
struct TensorPart {
  /// owner 0: a step of the plan; k: a run of participant k - 1 (Parts::participants).
  struct Node {
    int32_t owner;
    int32_t index;
    friend auto operator<=>(const Node&, const Node&) = default;
  };
  /// A run that writes or reads the tensor. `place`: in OpRuns::instances.
  struct Use {
    int32_t owner;
    int32_t run;
    int32_t place;
  };
  /// A buffer: an instance that is no view. `home`: of a parameter, between the steps.
  struct Buffer {
    DeviceId device;
    int32_t instance = 0;
    int64_t bytes = 0;  // rounded up to 64
    bool home = false;
    int32_t touches = 0;  // nodes that read or write it
  };

  std::vector<Use> writes, reads;
  std::shared_ptr<const TensorPlan> plan;  // null: nobody reads or writes the tensor
  std::vector<Nanoseconds> durations;      // by step
  Csr resources;                           // by step
  int64_t bytes_moved = 0;
  std::vector<int32_t> first;  // by owner: the number of its first node; at the end, of all
  std::vector<int32_t> successor_begin{0}, predecessor_begin{0};  // by node
  std::vector<Node> successors, predecessors;
  std::vector<Buffer> buffers;
  Csr touched;  // by node: buffers

  int32_t steps() const { return static_cast<int32_t>(durations.size()); }
  size_t node(int32_t owner, int32_t index) const {
    return static_cast<size_t>(first[static_cast<size_t>(owner)] + index);
  }
  std::span<const Node> successors_of(int32_t owner, int32_t index) const {
    const size_t n = node(owner, index);
    return {successors.data() + successor_begin[n],
            static_cast<size_t>(successor_begin[n + 1] - successor_begin[n])};
  }
  std::span<const Node> predecessors_of(int32_t owner, int32_t index) const {
    const size_t n = node(owner, index);
    return {predecessors.data() + predecessor_begin[n],
            static_cast<size_t>(predecessor_begin[n + 1] - predecessor_begin[n])};
  }
};

/// Kernel costs by (op, degrees): one cost a config, that of its largest cell.
class KernelCosts {
 public:
  KernelCost largest_cell(const Problem& problem, const Machine& machine, CostModel& costs, OpId id,
                          const std::vector<int32_t>& degrees);

 private:
  std::unordered_map<std::string, KernelCost> memo_;
};

/// Values by key, those used lately: two generations, of which the older is dropped when the younger is full.
template <typename Value>
class RecentParts {
 public:
  explicit RecentParts(size_t capacity) : capacity_(capacity) {}

  std::shared_ptr<const Value> find(const PartKey& key) {
    if (const auto it = young_.find(key); it != young_.end()) return it->second;
    const auto it = old_.find(key);
    if (it == old_.end()) return nullptr;
    auto value = it->second;
    add(key, value, 0);
    return value;
  }
  /// `weight`: in the units of the capacity.
  void add(const PartKey& key, std::shared_ptr<const Value> value, size_t weight) {
    filled_ += weight;
    if (filled_ > capacity_) {
      old_ = std::move(young_);
      young_.clear();
      filled_ = weight;
    }
    young_.insert_or_assign(key, std::move(value));
  }

 private:
  size_t capacity_, filled_ = 0;
  std::unordered_map<PartKey, std::shared_ptr<const Value>, PartKeyHash> young_, old_;
};

class Parts {
 public:
  Parts(const Problem& problem, const Machine& machine, CostModel& costs);

  /// The runs of an op under its leader's config, whose key is `key`.
  std::shared_ptr<const OpRuns> op(OpId id, const Config& config, const PartKey& key);
  /// `runs` by op; `keys` by op: of its leader's config. `homes`: where the parameter lies that this graph
  /// does not write; then nothing is shared.
  std::shared_ptr<const TensorPart> tensor(TensorId id, std::span<const std::shared_ptr<const OpRuns>> runs,
                                           std::span<const PartKey> keys,
                                           const std::vector<TensorWrite>* homes = nullptr);
  /// The ops that touch a tensor, each once: writers, then readers.
  const std::vector<OpId>& participants(TensorId id) const { return participants_[id.index()]; }
  /// What device 0 reads when the step is over: the loss, and without updates (in evaluation) the model's
  /// outputs.
  bool is_result(TensorId id) const { return results_[id.index()] != 0; }

 private:
  struct Collected;
  void classify();
  Collected collect(TensorId id, std::span<const std::shared_ptr<const OpRuns>> runs,
                    const std::vector<TensorWrite>* homes) const;
  RedistributionOptions options_of(TensorId id, bool written, bool written_by_ops) const;
  TensorPart make_tensor(TensorId id, std::span<const std::shared_ptr<const OpRuns>> runs,
                         const std::vector<TensorWrite>* homes) const;

  const Problem& problem_;
  const Machine& machine_;
  CostModel& costs_;
  KernelCosts kernels_;
  std::vector<std::vector<OpId>> participants_;  // by tensor
  std::vector<PartKey> classes_;                 // by tensor: all that its part depends on beside configs
  std::vector<char> results_;                    // by tensor
  RecentParts<OpRuns> ops_;
  RecentParts<TensorPart> tensors_;
};

}  // namespace ff
