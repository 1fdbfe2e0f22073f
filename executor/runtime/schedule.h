// Which samples each step of a run takes.
//
//   Schedule s = make_schedule(options, feed, plan.batch, seed);   // 60000 samples, batch 64, one epoch: 937
//   steps Batch b = s.batch(940);                                        // step 3 of the second epoch
#pragma once

#include <optional>

#include "executor/data/sample_order.h"
#include "executor/runtime/run_options.h"

namespace ff {

class Schedule {
 public:
  Schedule(const Batches& cut, int64_t steps, bool shuffle, uint64_t seed)
      : cut_(cut), steps_(steps), order_(cut.samples, shuffle, seed) {}

  const Batches& cut() const { return cut_; }
  int64_t steps() const { return steps_; }
  int64_t epoch_of(int64_t step) const { return step / cut_.steps; }
  bool ends_epoch(int64_t step) const { return (step + 1) % cut_.steps == 0; }
  Batch batch(int64_t step) { return order_.batch(cut_, epoch_of(step), step % cut_.steps); }

 private:
  Batches cut_;
  int64_t steps_;
  SampleOrder order_;
};

/// `samples`: of the data; nothing if it is made up: then batches repeat after 16. Without --steps and
/// --epochs: one epoch, or 10 steps. UserError for both flags, or a number below 1.
Schedule make_schedule(const RunOptions& options, std::optional<int64_t> samples, int64_t batch,
                       uint64_t seed);

}  // namespace ff
