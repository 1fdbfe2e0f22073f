// Delta simulation: the time of a step after a few ops' configs have changed.
//
//   DeltaSimulator simulator(problem, machine, costs);
//   simulator.reset(strategy);                              // whole
//   if (simulator.propose(next, {leader}, limit)) {         // takes `limit` at most
//     simulator.makespan();                                 // of `next`
//     simulator.accept();                                   // or reject()
//   }
//
// Gives the timeline that full simulation gives, to the bit (task ids are functions of the strategy, so ties
// break alike). A proposal rebuilds the runs of its ops and the redistributions of the tensors that they
// touch; everything else keeps its place. Until the earliest time at which anything can differ, the timeline
// is the old one: it is taken up from a snapshot before that time and simulated from there. A proposal ends
// as soon as a resource has more left to do than `limit` allows. What a proposal made lies beside the current
// timeline until it is accepted.
//
// Why not by propagating changes through the old timeline: a change reaches most of what comes after it, and
// looking for what it does not reach costs more than simulating.
#pragma once

#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "compiler/simulator/parts.h"
#include "compiler/simulator/radix_queue.h"

namespace ff {

/// One object a thread.
class DeltaSimulator {
 public:
  /// `interval`: tasks between two snapshots.
  DeltaSimulator(const Problem& problem, const Machine& machine, CostModel& costs, int32_t interval = 1024);

  /// Simulates a strategy (which must pass Problem::check): what proposals start from.
  void reset(const Strategy& strategy);
  /// Simulates `next`, which differs from the current strategy in the configs of these leaders at most.
  /// False, and nothing has changed, if it takes longer than `limit`. True: accept() or reject() comes next.
  bool propose(const Strategy& next, std::span<const OpId> leaders, Nanoseconds limit);
  /// Makes the proposal the current strategy.
  void accept();
  /// Forgets the proposal.
  void reject();

  /// Of the proposal, if one is pending; else of the current strategy. So are the others below.
  Nanoseconds makespan() const { return pending_ ? new_makespan_ : makespan_; }
  int64_t num_tasks() const { return num_tasks_; }
  /// How far the worst device's peak of memory is beyond its limit, as a part of it; 0: all fit.
  double overrun(std::span<const int64_t> limits);
  /// Peak bytes of every device, as Simulator::evaluate's.
  std::vector<int64_t> peak_bytes();

  /// For tests: the tasks in the order of simulation.
  struct TaskTime {
    Task task;
    Nanoseconds ready = 0, end = 0;
  };
  std::vector<TaskTime> timeline() const;

 private:
  static constexpr int32_t kNowhere = std::numeric_limits<int32_t>::max();  // a place in no order

  /// A task in its slot. Slots keep their numbers while their op or tensor is not rebuilt.
  struct Slot {
    Nanoseconds duration = 1;
    const int32_t* resources = nullptr;
    int32_t num_resources = 0;
    int32_t owner = -1;  // op, or number of ops + tensor
    int32_t index = 0;
  };
  struct Block {
    int32_t first = 0, count = 0, size_class = -1;
  };
  /// A tensor that an op touches, and which owner the op is in its part.
  struct Attachment {
    int32_t tensor, owner;
  };
  /// The state before the task at a multiple of interval_ is taken up.
  struct Snapshot {
    std::vector<Nanoseconds> free, done;  // by resource
    std::vector<QueuedTask> queue;
    Nanoseconds makespan = 0;
  };
  struct OpChange {
    int32_t op;
    std::shared_ptr<const OpRuns> runs;
    Block block;
    PartKey key;
  };
  struct TensorChange {
    int32_t tensor;
    std::shared_ptr<const TensorPart> part;
    Block block;
  };

  void attach();
  Block allocate(int32_t count);
  void release(const Block& block);
  void place_block(int32_t owner, const Block& block);
  void put_op(int32_t op, std::shared_ptr<const OpRuns> runs);
  void put_tensor(int32_t tensor, std::shared_ptr<const TensorPart> part);
  void count_op(const OpRuns& runs, int sign);
  void count_tensor(const TensorPart& part, int sign);
  bool over(Nanoseconds limit) const;
  bool rebuild(const Strategy& next, std::span<const OpId> leaders, Nanoseconds limit);
  Nanoseconds first_change();
  void check_later(const Block& block, bool dirty);
  void restore();
  bool simulate(size_t place, Nanoseconds limit);
  void start_from(const Snapshot& snapshot, int32_t place);
  void take_snapshot();
  void renew_kept_snapshots();
  void touch(int32_t slot);
  int32_t slot_of(int32_t tensor, const TensorPart::Node& node) const {
    return bases_[first_base_[static_cast<size_t>(tensor)] + static_cast<size_t>(node.owner)] + node.index;
  }
  using Neighbours = std::span<const TensorPart::Node> (TensorPart::*)(int32_t, int32_t) const;
  /// The slots of a task's successors (attachments: out_) or predecessors (in_).
  template <Neighbours neighbours, typename F>
  void for_each_neighbour(const std::vector<std::vector<Attachment>>& attachments, const Slot& slot,
                          F visit) const;
  uint64_t rank(int32_t slot) const {
    const Slot& s = slots_[static_cast<size_t>(slot)];
    return (static_cast<uint64_t>(s.owner) << 32) | static_cast<uint32_t>(s.index);
  }

  const Problem& problem_;
  Parts parts_;
  int32_t num_ops_;
  int32_t interval_;
  int32_t first_link_;  // of resources

  // The graph.
  std::vector<std::shared_ptr<const OpRuns>> runs_;          // by op
  std::vector<PartKey> keys_;                                // by op
  std::vector<std::shared_ptr<const TensorPart>> tensors_;   // by tensor
  std::vector<Block> blocks_;                                // by owner
  std::vector<std::vector<Attachment>> touches_, out_, in_;  // by op: all; where it may have successors; and
                                                             // predecessors
  std::vector<size_t> first_base_;                           // by tensor: in bases_
  std::vector<int32_t> bases_;                               // by tensor and owner: its block's first slot
  std::vector<std::vector<size_t>> base_places_;             // by op: in bases_
  std::vector<Slot> slots_;
  std::vector<std::vector<Block>> free_blocks_;  // by size class
  std::vector<Nanoseconds> work_;                // by resource: durations of all its tasks
  std::vector<int64_t> most_bytes_;              // by device: of all its buffers
  int64_t num_tasks_ = 0;

  // The current timeline, by slot.
  std::vector<Nanoseconds> ready_, end_;
  std::vector<int32_t> place_;  // in order_; kNowhere: not in it
  std::vector<int32_t> order_;
  std::vector<Snapshot> snapshots_;
  Nanoseconds makespan_ = 0;

  // The proposal.
  bool pending_ = false;
  std::vector<OpChange> changed_ops_;          // what was there before
  std::vector<TensorChange> changed_tensors_;  // likewise
  std::vector<Nanoseconds> old_work_;
  std::vector<int64_t> old_most_bytes_;
  int64_t old_num_tasks_ = 0;
  std::vector<int32_t> to_check_;  // new tasks, and those whose predecessors changed
  std::vector<char> gone_;         // by slot: removed or in to_check_: not taken from a snapshot's queue
  std::vector<uint32_t> seen_, tensor_seen_;  // by slot, tensor: the proposal that met it last
  uint32_t epoch_ = 0;
  int32_t resumed_ = 0;  // the place that the proposal's simulation starts at
  std::vector<Nanoseconds> new_ready_, new_end_;
  std::vector<int32_t> waiting_;
  std::vector<int32_t> new_order_;
  std::vector<Snapshot> new_snapshots_, spare_snapshots_;
  Nanoseconds new_makespan_ = 0;
  std::vector<Nanoseconds> free_, done_;  // by resource
  RadixQueue queue_;
  std::vector<int32_t> remaining_;  // touches of each buffer
};

}  // namespace ff
