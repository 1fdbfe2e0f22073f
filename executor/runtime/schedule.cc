#include "executor/runtime/schedule.h"

#include "compiler/base/check.h"

namespace ff {
namespace {

constexpr int64_t kSyntheticBatches = 16;
constexpr int64_t kSyntheticSteps = 10;

void require_positive(const char* flag, const std::optional<int64_t>& value) {
  if (value && *value < 1)
    throw UserError(std::string(flag) + " " + std::to_string(*value) + ": must be at least 1");
}

}  // namespace

Schedule make_schedule(const RunOptions& options, std::optional<int64_t> samples, int64_t batch,
                       uint64_t seed) {
  require_positive("--steps", options.steps);
  require_positive("--epochs", options.epochs);
  if (options.steps && options.epochs) throw UserError("--steps and --epochs: give one of them");
  if (!samples && options.epochs)
    throw UserError("--epochs: made-up numbers have no end", "say how many steps: --steps N");
  const Batches cut = cut_batches(samples.value_or(kSyntheticBatches * batch), batch, /*training=*/true);
  int64_t steps = options.epochs.value_or(1) * cut.steps;
  if (!samples) steps = kSyntheticSteps;
  return {cut, options.steps.value_or(steps), options.shuffle && samples.has_value(), seed};
}

}  // namespace ff
