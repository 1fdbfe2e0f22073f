#include "compiler/simulator/delta.h"

#include <algorithm>
#include <limits>

#include "compiler/base/check.h"

namespace ff {

DeltaSimulator::DeltaSimulator(const Problem& problem, const Machine& machine, CostModel& costs,
                               int32_t interval)
    : problem_(problem),
      parts_(problem, machine, costs),
      num_ops_(static_cast<int32_t>(problem.graph().ops.size())),
      interval_(interval),
      first_link_(2 * machine.num_devices()) {
  const auto ops = static_cast<size_t>(num_ops_);
  const size_t tensors = problem.graph().tensors.size();
  runs_.resize(ops);
  tensors_.resize(tensors);
  tensor_seen_.assign(tensors, 0);
  blocks_.resize(ops + tensors);
  const auto devices = static_cast<size_t>(machine.num_devices());
  work_.assign(2 * devices + static_cast<size_t>(machine.num_links()), 0);
  most_bytes_.assign(devices, 0);
  attach();
}

template <DeltaSimulator::Neighbours neighbours, typename F>
void DeltaSimulator::for_each_neighbour(const std::vector<std::vector<Attachment>>& attachments,
                                        const Slot& slot, F visit) const {
  const auto visit_in = [&](int32_t tensor, int32_t owner) {
    const TensorPart& part = *tensors_[static_cast<size_t>(tensor)];
    for (const auto& node : (part.*neighbours)(owner, slot.index)) visit(slot_of(tensor, node));
  };
  if (slot.owner >= num_ops_) return visit_in(slot.owner - num_ops_, 0);
  for (const Attachment& a : attachments[static_cast<size_t>(slot.owner)]) visit_in(a.tensor, a.owner);
}

void DeltaSimulator::reset(const Strategy& strategy) {
  FF_CHECK(!pending_);
  slots_.clear();
  free_blocks_.clear();
  place_.clear();
  gone_.clear();
  seen_.clear();
  for (auto* times : {&ready_, &end_, &new_ready_, &new_end_}) times->clear();
  waiting_.clear();
  order_.clear();
  snapshots_.clear();
  std::fill(work_.begin(), work_.end(), 0);
  std::fill(most_bytes_.begin(), most_bytes_.end(), 0);
  num_tasks_ = 0;
  to_check_.clear();
  ++epoch_;
  keys_ = keys_of(problem_, strategy);
  for (int32_t i = 0; i < num_ops_; ++i) {
    const size_t op = static_cast<size_t>(i), leader = problem_.graph().ops[op].config_of.index();
    put_op(i, parts_.op(OpId(i), strategy.configs[leader], keys_[op]));
    count_op(*runs_[op], 1);
  }
  for (size_t t = 0; t < tensors_.size(); ++t) {
    put_tensor(static_cast<int32_t>(t), parts_.tensor(TensorId(static_cast<int64_t>(t)), runs_, keys_));
    count_tensor(*tensors_[t], 1);
  }
  for (const Block& block : blocks_) {
    for (int32_t i = 0; i < block.count; ++i) to_check_.push_back(block.first + i);
  }
  snapshots_.push_back(
      {std::vector<Nanoseconds>(work_.size(), 0), std::vector<Nanoseconds>(work_.size(), 0), {}, 0});
  FF_CHECK(simulate(0, std::numeric_limits<Nanoseconds>::max()));
  pending_ = true;
  accept();
}

bool DeltaSimulator::propose(const Strategy& next, std::span<const OpId> leaders, Nanoseconds limit) {
  FF_CHECK(!pending_);
  old_work_ = work_;
  old_most_bytes_ = most_bytes_;
  old_num_tasks_ = num_tasks_;
  to_check_.clear();
  ++epoch_;
  pending_ = true;
  if (!rebuild(next, leaders, limit)) {
    restore();
    return false;
  }
  const Nanoseconds time = first_change();
  const auto at = std::partition_point(
      order_.begin(), order_.end(), [&](int32_t slot) { return ready_[static_cast<size_t>(slot)] < time; });
  const auto place = static_cast<size_t>(at - order_.begin());
  if (!simulate(std::min(place / static_cast<size_t>(interval_), snapshots_.size() - 1), limit)) {
    restore();
    return false;
  }
  return true;
}

/// Before this time nothing differs from the current timeline. Fills to_check_.
Nanoseconds DeltaSimulator::first_change() {
  Nanoseconds time = std::numeric_limits<Nanoseconds>::max();
  const auto remove = [&](const Block& block) {
    for (int32_t i = 0; i < block.count; ++i) {
      const auto s = static_cast<size_t>(block.first + i);
      gone_[s] = 1;
      time = std::min(time, ready_[s]);
    }
  };
  for (const OpChange& change : changed_ops_) {
    remove(change.block);
    check_later(blocks_[static_cast<size_t>(change.op)], false);
  }
  for (const TensorChange& change : changed_tensors_) {
    remove(change.block);
    check_later(blocks_[static_cast<size_t>(num_ops_ + change.tensor)], false);
    for (OpId op : parts_.participants(TensorId(change.tensor))) {
      const auto& in = in_[op.index()];
      if (std::none_of(in.begin(), in.end(), [&](const Attachment& a) { return a.tensor == change.tensor; }))
        continue;
      const Block& block = blocks_[op.index()];
      if (block.count == 0 || place_[static_cast<size_t>(block.first)] == kNowhere ||
          gone_[static_cast<size_t>(block.first)] != 0)
        continue;  // new, or met already
      for (int32_t i = 0; i < block.count; ++i)
        time = std::min(time, ready_[static_cast<size_t>(block.first + i)]);
      check_later(block, true);
    }
  }
  for (int32_t slot : to_check_) {
    Nanoseconds earliest = 0;
    bool known = true;
    for_each_neighbour<&TensorPart::predecessors_of>(in_, slots_[static_cast<size_t>(slot)], [&](int32_t p) {
      known &= place_[static_cast<size_t>(p)] != kNowhere;
      earliest = std::max(earliest, end_[static_cast<size_t>(p)]);
    });
    if (known) time = std::min(time, earliest);
  }
  return time;
}

void DeltaSimulator::check_later(const Block& block, bool dirty) {
  for (int32_t i = 0; i < block.count; ++i) {
    to_check_.push_back(block.first + i);
    if (dirty) gone_[static_cast<size_t>(block.first + i)] = 1;
  }
}

/// Counts what a task waits for, when the proposal meets it first.
void DeltaSimulator::touch(int32_t slot) {
  const auto s = static_cast<size_t>(slot);
  if (seen_[s] == epoch_) return;
  seen_[s] = epoch_;
  int32_t waiting = 0;
  Nanoseconds ready = 0;
  for_each_neighbour<&TensorPart::predecessors_of>(in_, slots_[s], [&](int32_t p) {
    if (place_[static_cast<size_t>(p)] < resumed_) {
      ready = std::max(ready, end_[static_cast<size_t>(p)]);
    } else {
      ++waiting;
    }
  });
  waiting_[s] = waiting;
  new_ready_[s] = ready;
}

void DeltaSimulator::start_from(const Snapshot& snapshot, int32_t place) {
  resumed_ = place;
  free_ = snapshot.free;
  done_ = snapshot.done;
  new_makespan_ = snapshot.makespan;
  new_order_.clear();
  for (Snapshot& s : new_snapshots_) spare_snapshots_.push_back(std::move(s));
  new_snapshots_.clear();
  queue_.clear();
  for (const QueuedTask& t : snapshot.queue) {
    if (gone_[static_cast<size_t>(t.task)] != 0) continue;
    seen_[static_cast<size_t>(t.task)] = epoch_;
    queue_.push(t.time, t.task);
  }
  for (int32_t slot : to_check_) {
    touch(slot);
    if (waiting_[static_cast<size_t>(slot)] == 0) queue_.push(new_ready_[static_cast<size_t>(slot)], slot);
  }
}

void DeltaSimulator::take_snapshot() {
  if (!spare_snapshots_.empty()) {
    new_snapshots_.push_back(std::move(spare_snapshots_.back()));
    spare_snapshots_.pop_back();
  } else {
    new_snapshots_.emplace_back();
  }
  Snapshot& snapshot = new_snapshots_.back();
  snapshot.free = free_;
  snapshot.done = done_;
  snapshot.makespan = new_makespan_;
  snapshot.queue.clear();
  queue_.for_each([&](const QueuedTask& t) { snapshot.queue.push_back(t); });
}

/// Simulates from a snapshot on. False as soon as the step must take longer than the limit.
bool DeltaSimulator::simulate(size_t number, Nanoseconds limit) {
  start_from(snapshots_[number], static_cast<int32_t>(number) * interval_);
  if (new_makespan_ > limit) return false;
  const auto rank_of = [this](int32_t slot) { return rank(slot); };
  int32_t until_snapshot = interval_;
  while (!queue_.empty()) {
    const auto [ready, task] = queue_.pop(rank_of);
    const auto t = static_cast<size_t>(task);
    const Slot& slot = slots_[t];
    const std::span<const int32_t> resources(slot.resources, static_cast<size_t>(slot.num_resources));
    const Nanoseconds end = occupy(resources, first_link_, ready, slot.duration, free_);
    for (int32_t r : resources) {
      const auto i = static_cast<size_t>(r);
      done_[i] += slot.duration;
      if (work_[i] - done_[i] > limit - free_[i]) return false;
    }
    new_ready_[t] = ready;
    new_end_[t] = end;
    new_makespan_ = std::max(new_makespan_, end);
    new_order_.push_back(task);
    for_each_neighbour<&TensorPart::successors_of>(out_, slot, [&](int32_t next) {
      const auto s = static_cast<size_t>(next);
      touch(next);
      new_ready_[s] = std::max(new_ready_[s], end);
      if (--waiting_[s] == 0) queue_.push(new_ready_[s], next);
    });
    if (--until_snapshot == 0) {
      take_snapshot();
      until_snapshot = interval_;
    }
  }
  FF_CHECK_EQ(static_cast<int64_t>(new_order_.size()) + resumed_, num_tasks_)
      << "tasks wait for each other in a circle";
  return true;
}

/// Drops the snapshots after the place of resumption. From the queues of the others, takes the tasks that are
/// no longer there, and adds the new ones that become ready before them.
void DeltaSimulator::renew_kept_snapshots() {
  const size_t kept = static_cast<size_t>(resumed_ / interval_) + 1;
  for (size_t i = kept; i < snapshots_.size(); ++i) spare_snapshots_.push_back(std::move(snapshots_[i]));
  snapshots_.resize(kept);
  for (Snapshot& snapshot : snapshots_)
    std::erase_if(snapshot.queue,
                  [this](const QueuedTask& t) { return gone_[static_cast<size_t>(t.task)] != 0; });
  for (int32_t slot : to_check_) {
    int32_t last = -1;  // place of the predecessor that is simulated last
    Nanoseconds ready = 0;
    for_each_neighbour<&TensorPart::predecessors_of>(in_, slots_[static_cast<size_t>(slot)], [&](int32_t p) {
      last = std::max(last, place_[static_cast<size_t>(p)]);
      ready = std::max(ready, end_[static_cast<size_t>(p)]);
    });
    if (last >= resumed_) continue;
    const auto first = static_cast<size_t>((last + interval_) / interval_);
    for (size_t i = first; i < kept; ++i) snapshots_[i].queue.push_back({ready, slot});
  }
}

void DeltaSimulator::accept() {
  FF_CHECK(pending_);
  renew_kept_snapshots();
  for (const OpChange& change : changed_ops_) release(change.block);
  for (const TensorChange& change : changed_tensors_) release(change.block);
  changed_ops_.clear();
  changed_tensors_.clear();
  order_.resize(static_cast<size_t>(resumed_));
  for (int32_t slot : new_order_) {
    const auto s = static_cast<size_t>(slot);
    place_[s] = static_cast<int32_t>(order_.size());
    order_.push_back(slot);
    ready_[s] = new_ready_[s];
    end_[s] = new_end_[s];
  }
  for (int32_t slot : to_check_) gone_[static_cast<size_t>(slot)] = 0;
  for (Snapshot& s : new_snapshots_) snapshots_.push_back(std::move(s));
  new_snapshots_.clear();
  makespan_ = new_makespan_;
  pending_ = false;
}

void DeltaSimulator::reject() {
  FF_CHECK(pending_);
  restore();
}

std::vector<DeltaSimulator::TaskTime> DeltaSimulator::timeline() const {
  std::vector<TaskTime> out;
  const auto add = [&](int32_t number, const std::vector<Nanoseconds>& ready,
                       const std::vector<Nanoseconds>& end) {
    const auto s = static_cast<size_t>(number);
    const Slot& slot = slots_[s];
    const bool step = slot.owner >= num_ops_;
    const Task task{step ? Task::Kind::step : Task::Kind::run, step ? slot.owner - num_ops_ : slot.owner,
                    slot.index, slot.duration};
    out.push_back({task, ready[s], end[s]});
  };
  const size_t kept = pending_ ? static_cast<size_t>(resumed_) : order_.size();
  for (size_t i = 0; i < kept; ++i) add(order_[i], ready_, end_);
  if (pending_) {
    for (int32_t slot : new_order_) add(slot, new_ready_, new_end_);
  }
  return out;
}

}  // namespace ff
