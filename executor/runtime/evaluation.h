// Accuracy: how often the largest score along the class axis (axis 1) is the label's.
//
//   scores of 2 samples, 3 classes: {{.1, .7, .2}, {.5, .1, .4}}, labels {1, 2}: 1 of 2
#pragma once

#include <cstdint>
#include <string>

#include "compiler/plan/plan.h"
#include "executor/comm/communicator.h"
#include "executor/runtime/input_feed.h"
#include "executor/runtime/interpreter.h"

namespace ff {

struct Accuracy {
  int64_t correct = 0;
  int64_t counted = 0;
  double fraction() const {
    return counted == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(counted);
  }
};

/// Counts one batch. `scores` are dense and row-major with the classes along axis 1; `labels` are whole
/// numbers over the other axes, negative ones are ignored. Positions of the batch from `real` on hold no
/// sample.
Accuracy count_correct(const std::string& scores, DType score_type, const Shape& score_shape,
                       const std::string& labels, const Input& label_input, int64_t real);

/// Runs eval_step over all samples of `feed`; rank 0 gets the counts. Called by all ranks. UserError if the
/// plan has no such entry, no whole-number labels, or no scores with classes.
Accuracy evaluate(const Plan& plan, Interpreter& interpreter, InputFeed& feed, Communicator& comm,
                  const RunContext& context);

}  // namespace ff
