// The task graph of delta simulation, in slots, and what a proposal puts in and takes back.

#include <algorithm>
#include <bit>

#include "compiler/base/check.h"
#include "compiler/simulator/delta.h"

namespace ff {

/// Which tensors each op touches, and in which of them it can come before or after something else: a
/// parameter's writers come after its readers, those of any other tensor before.
void DeltaSimulator::attach() {
  const Graph& graph = problem_.graph();
  touches_.resize(graph.ops.size());
  out_.resize(graph.ops.size());
  in_.resize(graph.ops.size());
  base_places_.resize(graph.ops.size());
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    const TensorId id(static_cast<int64_t>(t));
    const bool parameter = graph.tensors[t].kind == TensorKind::parameter;
    first_base_.push_back(bases_.size());
    bases_.push_back(0);
    int32_t owner = 0;
    for (OpId op : parts_.participants(id)) {
      const Attachment here{id.value, ++owner};
      const auto among = [op](const std::vector<std::pair<OpId, int>>& uses) {
        return std::any_of(uses.begin(), uses.end(), [op](const auto& use) { return use.first == op; });
      };
      const bool writes = among(problem_.writers(id)), reads = among(problem_.readers(id));
      touches_[op.index()].push_back(here);
      if (parameter ? reads : writes) out_[op.index()].push_back(here);
      if (parameter || reads) in_[op.index()].push_back(here);
      base_places_[op.index()].push_back(bases_.size());
      bases_.push_back(0);
    }
  }
}

DeltaSimulator::Block DeltaSimulator::allocate(int32_t count) {
  if (count == 0) return {};
  const int size_class = std::bit_width(static_cast<uint32_t>(count) - 1);
  if (free_blocks_.size() <= static_cast<size_t>(size_class))
    free_blocks_.resize(static_cast<size_t>(size_class) + 1);
  auto& free = free_blocks_[static_cast<size_t>(size_class)];
  Block block{0, count, size_class};
  if (!free.empty()) {
    block.first = free.back().first;
    free.pop_back();
    return block;
  }
  const size_t size = slots_.size() + (size_t{1} << size_class);
  FF_CHECK_LT(size, static_cast<size_t>(kNowhere)) << "too many tasks";
  block.first = static_cast<int32_t>(slots_.size());
  slots_.resize(size);
  for (auto* times : {&ready_, &end_, &new_ready_, &new_end_}) times->resize(size, 0);
  place_.resize(size, kNowhere);
  waiting_.resize(size, 0);
  seen_.resize(size, 0);
  gone_.resize(size, 0);
  return block;
}

void DeltaSimulator::release(const Block& block) {
  if (block.count == 0) return;
  for (int32_t i = 0; i < block.count; ++i) {
    const auto s = static_cast<size_t>(block.first + i);
    place_[s] = kNowhere;
    gone_[s] = 0;
  }
  free_blocks_[static_cast<size_t>(block.size_class)].push_back(block);
}

void DeltaSimulator::place_block(int32_t owner, const Block& block) {
  blocks_[static_cast<size_t>(owner)] = block;
  if (owner >= num_ops_) {
    bases_[first_base_[static_cast<size_t>(owner - num_ops_)]] = block.first;
    return;
  }
  for (size_t place : base_places_[static_cast<size_t>(owner)]) bases_[place] = block.first;
}

void DeltaSimulator::put_op(int32_t op, std::shared_ptr<const OpRuns> runs) {
  const Block block = allocate(static_cast<int32_t>(runs->runs.size()));
  for (int32_t i = 0; i < block.count; ++i)
    slots_[static_cast<size_t>(block.first + i)] = {runs->cost.time, &runs->devices[static_cast<size_t>(i)],
                                                    1, op, i};
  place_block(op, block);
  runs_[static_cast<size_t>(op)] = std::move(runs);
}

void DeltaSimulator::put_tensor(int32_t tensor, std::shared_ptr<const TensorPart> part) {
  const Block block = allocate(part->steps());
  for (int32_t i = 0; i < block.count; ++i) {
    const auto resources = part->resources[static_cast<size_t>(i)];
    slots_[static_cast<size_t>(block.first + i)] = {part->durations[static_cast<size_t>(i)], resources.data(),
                                                    static_cast<int32_t>(resources.size()), num_ops_ + tensor,
                                                    i};
  }
  place_block(num_ops_ + tensor, block);
  tensors_[static_cast<size_t>(tensor)] = std::move(part);
}

void DeltaSimulator::count_op(const OpRuns& runs, int sign) {
  for (int32_t device : runs.devices) work_[static_cast<size_t>(device)] += sign * runs.cost.time;
  num_tasks_ += sign * static_cast<int64_t>(runs.runs.size());
}

void DeltaSimulator::count_tensor(const TensorPart& part, int sign) {
  for (size_t s = 0; s < part.durations.size(); ++s) {
    for (int32_t r : part.resources[s]) work_[static_cast<size_t>(r)] += sign * part.durations[s];
  }
  num_tasks_ += sign * static_cast<int64_t>(part.durations.size());
  for (const TensorPart::Buffer& buffer : part.buffers)
    most_bytes_[buffer.device.index()] += sign * buffer.bytes;
}

/// Whether some resource has more to do than the limit.
bool DeltaSimulator::over(Nanoseconds limit) const {
  return std::any_of(work_.begin(), work_.end(), [limit](Nanoseconds work) { return work > limit; });
}

/// Puts the parts of the changed ops and of their tensors in place of the current ones. False: no way below
/// the limit.
bool DeltaSimulator::rebuild(const Strategy& next, std::span<const OpId> leaders, Nanoseconds limit) {
  for (OpId leader : leaders) {
    const Config& config = next.configs[leader.index()];
    const PartKey key = key_of(config);
    if (key == keys_[leader.index()]) continue;
    for (OpId id : problem_.followers(leader)) {
      auto& runs = runs_[id.index()];
      changed_ops_.push_back({id.value, runs, blocks_[id.index()], keys_[id.index()]});
      keys_[id.index()] = key;
      count_op(*runs, -1);
      put_op(id.value, parts_.op(id, config, key));
      count_op(*runs_[id.index()], 1);
    }
  }
  for (const OpChange& change : changed_ops_) {
    for (const Attachment& a : touches_[static_cast<size_t>(change.op)]) {
      const auto t = static_cast<size_t>(a.tensor);
      if (tensor_seen_[t] == epoch_) continue;
      tensor_seen_[t] = epoch_;
      changed_tensors_.push_back({a.tensor, tensors_[t], blocks_[static_cast<size_t>(num_ops_ + a.tensor)]});
      count_tensor(*tensors_[t], -1);
    }
  }
  // The ops alone may be too much; then nothing needs to be sent.
  if (over(limit)) {
    changed_tensors_.clear();
    return false;
  }
  for (const TensorChange& change : changed_tensors_) {
    put_tensor(change.tensor, parts_.tensor(TensorId(change.tensor), runs_, keys_));
    count_tensor(*tensors_[static_cast<size_t>(change.tensor)], 1);
  }
  return !over(limit);
}

void DeltaSimulator::restore() {
  for (int32_t slot : to_check_) gone_[static_cast<size_t>(slot)] = 0;
  const auto keep = [this](const Block& block) {
    for (int32_t i = 0; i < block.count; ++i) gone_[static_cast<size_t>(block.first + i)] = 0;
  };
  for (TensorChange& change : changed_tensors_) {
    const int32_t owner = num_ops_ + change.tensor;
    keep(change.block);
    release(blocks_[static_cast<size_t>(owner)]);
    place_block(owner, change.block);
    tensors_[static_cast<size_t>(change.tensor)] = std::move(change.part);
  }
  for (OpChange& change : changed_ops_) {
    keep(change.block);
    release(blocks_[static_cast<size_t>(change.op)]);
    place_block(change.op, change.block);
    runs_[static_cast<size_t>(change.op)] = std::move(change.runs);
    keys_[static_cast<size_t>(change.op)] = change.key;
  }
  changed_ops_.clear();
  changed_tensors_.clear();
  work_ = old_work_;
  most_bytes_ = old_most_bytes_;
  num_tasks_ = old_num_tasks_;
  pending_ = false;
}

}  // namespace ff
