// Which sample is where: the order of an epoch, a function of (seed, epoch) alone, and its cut into batches.
// Every rank of every plan derives the same, so that no rank has to tell another.
//
//   Batches cut = cut_batches(10, 4, /*training=*/true);   // 2 steps, 2 samples dropped
//   SampleOrder order(10, /*shuffle=*/true, seed);
//   order.batch(cut, 3, 1)                                 // the 4 samples of step 1 of epoch 3
#pragma once

#include <cstdint>
#include <vector>

namespace ff {

/// How one pass over `samples` is cut. Training drops a last partial batch; evaluation pads it.
struct Batches {
  int64_t samples = 0;
  int64_t batch = 0;
  int64_t steps = 0;
  int64_t dropped = 0;  // samples of an epoch that no step sees
  int64_t padded = 0;   // positions of the last step that hold no sample
};

/// UserError if training has not one whole batch, or there are no samples at all.
Batches cut_batches(int64_t samples, int64_t batch, bool training);

/// The samples of one step: `samples[i]` is the file's index at batch position i; kPadding past the first
/// `real`.
struct Batch {
  static constexpr int64_t kPadding = -1;
  std::vector<int64_t> samples;
  int64_t real = 0;
};

class SampleOrder {
 public:
  SampleOrder(int64_t samples, bool shuffle, uint64_t seed);
  /// The file's index of each position of an epoch: a permutation (Fisher-Yates), or the identity without
  /// shuffling.
  const std::vector<int64_t>& epoch(int64_t number);
  Batch batch(const Batches& cut, int64_t epoch_number, int64_t step);

 private:
  bool shuffle_;
  uint64_t seed_;
  int64_t epoch_ = -1;  // whose order is held
  std::vector<int64_t> order_;
};

}  // namespace ff
