// A lower bound of the makespan: what no strategy of a space, or no completion of a part of a strategy, can
// beat.
//
//   LowerBound bound(problem, machine, costs, Space::full);
//   bound.value()                       // of every strategy
//   bound.set(conv1, config);           // of every strategy with this config: never less than before
//   bound.clear(conv1);
//
//   ops of 30, 20 and 30 ms of work one after the other, at best 10, 20 and 10 ms a run, on 4 devices:
//   work (30 + 20 + 30) / 4 = 20 ms, path 10 + 20 + 10 = 40 ms: no strategy takes less than 40 ms
//
// The bound is the largest of
//   work    what runs on a device holds it: all that the devices have to do, shared out evenly; what one
//           device, or one link, has to do for certain;
//   path    an op waits for what it reads. Where both ends of a tensor are set, its redistribution is planned
//           and priced as the simulator does; where not, a run of the reader waits for the earliest run of
//           each op that writes all of the tensor, and nothing is said of messages;
//   both    tasks that cannot begin before h end no earlier than h and their own time on the resource they
//           share, and all such work on devices no earlier than h and an even share of it.
// An op that is free takes what it takes at the least (least.h). Admissible because the simulator gives a
// task its duration whatever else happens, starts it after its predecessors, and lets one task at a time have
// a resource. Traffic between free ops is left out: for each pair of ops some config needs none.
#pragma once

#include <memory>
#include <vector>

#include "compiler/search/least.h"

namespace ff {

/// One object a thread. Strategies with more cells of an op than devices are not covered.
class LowerBound {
 public:
  LowerBound(const Problem& problem, const Machine& machine, CostModel& costs, Space space);

  /// The leader has this config from now on (which must pass Problem::check).
  void set(OpId leader, const Config& config);
  /// The leader may have any config again.
  void clear(OpId leader);
  /// Nanoseconds that no completion of what is set beats.
  Nanoseconds value();
  /// Of the completions of a strategy in which configs without devices are free; what was set is forgotten.
  Nanoseconds value(const Strategy& partial);

 private:
  /// The writers of a tensor that one leader leads: places in followers(leader), and which output it is.
  struct Writers {
    OpId leader;
    std::vector<std::pair<size_t, size_t>> ops;
  };
  /// A tensor that an op touches, and which owner the op is in its part; inputs: those that are this tensor.
  struct Attachment {
    TensorId tensor;
    int32_t owner = 0;
    uint64_t inputs = 0;
    bool reads = false;
  };
  struct Load {
    int32_t resource = 0;
    Nanoseconds head = 0, duration = 0;
  };

  void attach();
  void count(const OpRuns& runs, int sign);
  void count(const TensorPart& part, int sign);
  void drop_parts(OpId op);
  void pass_tensor(TensorId tensor);
  void pass_set_op(OpId op);
  void pass_free_op(OpId op);
  Nanoseconds available(TensorId tensor, OpId reader, size_t form) const;
  Nanoseconds end_of_form(const Writers& writers, size_t form) const;
  Nanoseconds end_of(TensorId tensor, const TensorPart::Node& node) const;
  Nanoseconds start_of(TensorId tensor, int32_t owner, int32_t index) const;
  Nanoseconds largest_load();
  Nanoseconds largest_share();
  bool is_set(OpId leader) const { return set_[leader.index()] != 0; }

  const Problem& problem_;
  const Machine& machine_;
  Parts parts_;
  std::vector<std::shared_ptr<const LeastLeader>> least_;  // by op: of leaders

  std::vector<std::vector<Attachment>> attachments_;  // by op
  std::vector<std::vector<Writers>> writers_;         // by tensor
  std::vector<size_t> place_;                         // by op: in its leader's followers

  std::vector<char> set_;                                   // by op: leaders
  std::vector<std::shared_ptr<const OpRuns>> runs_;         // by op: of set leaders
  std::vector<PartKey> keys_;                               // by op
  std::vector<Touched> touched_;                            // by op: of set leaders
  std::vector<int32_t> free_participants_;                  // by tensor
  std::vector<std::shared_ptr<const TensorPart>> tensors_;  // by tensor: where all participants are set
  std::vector<Nanoseconds> work_;                           // by resource: durations of all that is set
  Nanoseconds free_work_ = 0;                               // of free leaders

  // Of one evaluation.
  std::vector<std::vector<Nanoseconds>> run_ends_;   // by op
  std::vector<std::vector<Nanoseconds>> form_ends_;  // by op: of free leaders
  std::vector<std::vector<Nanoseconds>> step_ends_;  // by tensor
  std::vector<char> passed_;                         // by tensor: its steps have their ends
  std::vector<Load> loads_;
  std::vector<Load> shared_;  // of any device
  Nanoseconds path_ = 0;
};

}  // namespace ff
