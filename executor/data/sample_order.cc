#include "executor/data/sample_order.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "compiler/base/check.h"
#include "compiler/base/rng.h"

namespace ff {
namespace {

constexpr uint64_t kShuffleStream = 0x5A3F1E;

}  // namespace

Batches cut_batches(int64_t samples, int64_t batch, bool training) {
  FF_CHECK_GT(batch, 0);
  if (samples == 0) throw UserError("the data files hold no samples");
  Batches cut{.samples = samples, .batch = batch};
  if (training) {
    cut.steps = samples / batch;
    cut.dropped = samples % batch;
    if (cut.steps == 0) {
      throw UserError("the data files hold " + std::to_string(samples) +
                          " samples, fewer than one batch of " + std::to_string(batch),
                      "compile with --batch " + std::to_string(samples) + " or less");
    }
  } else {
    cut.steps = (samples + batch - 1) / batch;
    cut.padded = cut.steps * batch - samples;
  }
  return cut;
}

SampleOrder::SampleOrder(int64_t samples, bool shuffle, uint64_t seed)
    : shuffle_(shuffle), seed_(seed), order_(static_cast<size_t>(samples)) {
  std::iota(order_.begin(), order_.end(), int64_t{0});
}

const std::vector<int64_t>& SampleOrder::epoch(int64_t number) {
  if (!shuffle_ || number == epoch_) return order_;
  std::iota(order_.begin(), order_.end(), int64_t{0});
  Rng rng(counter_random(seed_, kShuffleStream, static_cast<uint64_t>(number)));
  for (size_t i = order_.size(); i > 1; --i) {
    std::swap(order_[i - 1], order_[static_cast<size_t>(rng.below(static_cast<int64_t>(i)))]);
  }
  epoch_ = number;
  return order_;
}

Batch SampleOrder::batch(const Batches& cut, int64_t epoch_number, int64_t step) {
  FF_CHECK(step >= 0 && step < cut.steps) << "step " << step << " of " << cut.steps;
  FF_CHECK_EQ(cut.samples, static_cast<int64_t>(order_.size()));
  const std::vector<int64_t>& order = epoch(epoch_number);
  const int64_t first = step * cut.batch;
  Batch batch;
  batch.real = std::min(cut.batch, cut.samples - first);
  batch.samples.assign(order.begin() + first, order.begin() + first + batch.real);
  batch.samples.resize(static_cast<size_t>(cut.batch), Batch::kPadding);
  return batch;
}

}  // namespace ff
