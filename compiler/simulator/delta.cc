#include "compiler/simulator/delta.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "compiler/base/check.h"

namespace ff {
namespace {

constexpr int32_t kNowhere = std::numeric_limits<int32_t>::max();

}  // namespace

DeltaSimulator::DeltaSimulator(const Problem& problem, const Machine& machine, CostModel& costs,
                               int32_t interval)
    : problem_(problem),
      parts_(problem, machine, costs),
      num_ops_(static_cast<int32_t>(problem.graph().ops.size())),
      interval_(interval) {
  const auto ops = static_cast<size_t>(num_ops_);
  const size_t tensors = problem.graph().tensors.size();
  runs_.resize(ops);
  keys_.resize(ops);
  tensors_.resize(tensors);
  tensor_seen_.assign(tensors, 0);
  blocks_.resize(ops + tensors);
  const auto devices = static_cast<size_t>(machine.num_devices());
  work_.assign(2 * devices + static_cast<size_t>(machine.num_links()), 0);
  most_bytes_.assign(devices, 0);
  attach();
}

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
  for (int32_t i = 0; i < num_ops_; ++i) {
    const size_t op = static_cast<size_t>(i), leader = problem_.graph().ops[op].config_of.index();
    keys_[op] =
        OpId(i) == OpId(static_cast<int64_t>(leader)) ? key_of(strategy.configs[leader]) : keys_[leader];
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
    for_each_predecessor(slots_[static_cast<size_t>(slot)], [&](int32_t p) {
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

template <typename F>
void DeltaSimulator::for_each_successor(const Slot& slot, F visit) const {
  if (slot.owner >= num_ops_) {
    const int32_t tensor = slot.owner - num_ops_;
    for (const auto& node : tensors_[static_cast<size_t>(tensor)]->successors_of(0, slot.index))
      visit(slot_of(tensor, node));
    return;
  }
  for (const Attachment& a : out_[static_cast<size_t>(slot.owner)]) {
    for (const auto& node : tensors_[static_cast<size_t>(a.tensor)]->successors_of(a.owner, slot.index))
      visit(slot_of(a.tensor, node));
  }
}

template <typename F>
void DeltaSimulator::for_each_predecessor(const Slot& slot, F visit) const {
  if (slot.owner >= num_ops_) {
    const int32_t tensor = slot.owner - num_ops_;
    for (const auto& node : tensors_[static_cast<size_t>(tensor)]->predecessors_of(0, slot.index))
      visit(slot_of(tensor, node));
    return;
  }
  for (const Attachment& a : in_[static_cast<size_t>(slot.owner)]) {
    for (const auto& node : tensors_[static_cast<size_t>(a.tensor)]->predecessors_of(a.owner, slot.index))
      visit(slot_of(a.tensor, node));
  }
}

/// Counts what a task waits for, when the proposal meets it first.
void DeltaSimulator::touch(int32_t slot) {
  const auto s = static_cast<size_t>(slot);
  if (seen_[s] == epoch_) return;
  seen_[s] = epoch_;
  int32_t waiting = 0;
  Nanoseconds ready = 0;
  for_each_predecessor(slots_[s], [&](int32_t p) {
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
    Nanoseconds start = ready;
    for (int32_t r : resources) start = std::max(start, free_[static_cast<size_t>(r)]);
    const Nanoseconds end = start + slot.duration;
    for (int32_t r : resources) {
      const auto i = static_cast<size_t>(r);
      free_[i] = end;
      done_[i] += slot.duration;
      if (work_[i] - done_[i] > limit - end) return false;
    }
    new_ready_[t] = ready;
    new_end_[t] = end;
    new_makespan_ = std::max(new_makespan_, end);
    new_order_.push_back(task);
    for_each_successor(slot, [&](int32_t next) {
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
    for_each_predecessor(slots_[static_cast<size_t>(slot)], [&](int32_t p) {
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

double DeltaSimulator::overrun(std::span<const int64_t> limits) {
  const auto worst = [&](const std::vector<int64_t>& bytes) {
    double over = 0;
    for (size_t d = 0; d < limits.size(); ++d)
      over = std::max(over, static_cast<double>(bytes[d]) / static_cast<double>(limits[d]) - 1);
    return over;
  };
  // Everything at once is a bound, and often enough.
  int64_t workspace = 0;
  for (const auto& runs : runs_)
    workspace = std::max(workspace, runs->active ? runs->cost.workspace_bytes : 0);
  std::vector<int64_t> most = most_bytes_;
  for (int64_t& bytes : most) bytes += workspace;
  return worst(most) == 0 ? 0 : worst(peak_bytes());
}

std::vector<int64_t> DeltaSimulator::peak_bytes() {
  const Graph& graph = problem_.graph();
  std::vector<int64_t> live(most_bytes_.size(), 0);
  std::vector<size_t> first_buffer;
  remaining_.clear();
  for (size_t t = 0; t < tensors_.size(); ++t) {
    first_buffer.push_back(remaining_.size());
    const bool input = graph.tensors[t].kind == TensorKind::input;
    for (const TensorPart::Buffer& buffer : tensors_[t]->buffers) {
      remaining_.push_back(buffer.home ? 0 : buffer.touches);
      if (buffer.home || input) live[buffer.device.index()] += buffer.bytes;
    }
  }
  std::vector<char> kept(tensors_.size(), 0);  // read when the step is over
  if (graph.loss.valid()) kept[graph.loss.index()] = 1;
  for (TensorId id : graph.outputs) kept[id.index()] = 1;
  std::vector<int64_t> peak = live;
  const auto visit = [&](int32_t tensor, int32_t owner, int32_t index, bool before) {
    const auto t = static_cast<size_t>(tensor);
    const TensorPart& part = *tensors_[t];
    const bool input = graph.tensors[t].kind == TensorKind::input;
    for (int32_t b : part.touched[part.node(owner, index)]) {
      const TensorPart::Buffer& buffer = part.buffers[static_cast<size_t>(b)];
      if (buffer.home) continue;
      int32_t& remaining = remaining_[first_buffer[t] + static_cast<size_t>(b)];
      int64_t& now = live[buffer.device.index()];
      if (before) {
        if (remaining == buffer.touches && !input) now += buffer.bytes;
        int64_t& most = peak[buffer.device.index()];
        most = std::max(most, now);
      } else if (--remaining == 0 && kept[t] == 0) {
        now -= buffer.bytes;
      }
    }
  };
  const auto run = [&](int32_t slot_number) {
    const Slot& slot = slots_[static_cast<size_t>(slot_number)];
    const auto touch_all = [&](bool before) {
      if (slot.owner >= num_ops_) return visit(slot.owner - num_ops_, 0, slot.index, before);
      for (const Attachment& a : touches_[static_cast<size_t>(slot.owner)])
        visit(a.tensor, a.owner, slot.index, before);
    };
    touch_all(true);
    if (slot.owner < num_ops_) {
      const auto d = static_cast<size_t>(slot.resources[0]);
      peak[d] = std::max(peak[d], live[d] + runs_[static_cast<size_t>(slot.owner)]->cost.workspace_bytes);
    }
    touch_all(false);
  };
  const size_t kept_places = pending_ ? static_cast<size_t>(resumed_) : order_.size();
  for (size_t i = 0; i < kept_places; ++i) run(order_[i]);
  if (pending_) {
    for (int32_t slot : new_order_) run(slot);
  }
  return peak;
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
