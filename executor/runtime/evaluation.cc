#include "executor/runtime/evaluation.h"

#include <algorithm>

#include "compiler/base/check.h"
#include "compiler/base/model_data.h"
#include "executor/runtime/parameters.h"

namespace ff {
namespace {

const Input& labels_of(const Plan& plan) {
  if (plan.inputs.empty() || plan.inputs.back().name.rfind("labels", 0) != 0)
    throw UserError("--eval-data: the plan has no labels to compare with");
  if (is_float(plan.inputs.back().dtype)) {
    throw UserError("--eval-data: accuracy compares classes, and input '" + plan.inputs.back().name +
                    "' is " + std::string(name(plan.inputs.back().dtype)));
  }
  return plan.inputs.back();
}

/// The buffer of the plan's first output, whole on rank 0.
int32_t score_buffer(const Plan& plan, const Program& program, const Entry& entry) {
  for (const int32_t b : entry.outputs) {
    const Buffer& buffer = program.buffers[static_cast<size_t>(b)];
    if (!plan.outputs.empty() && buffer.tensor == plan.outputs[0]) return b;
  }
  FF_CHECK(false) << "eval_step leaves no output on rank 0";
  return -1;
}

std::string row_major(const Buffer& buffer, void* data) {
  std::string out(static_cast<size_t>(buffer.bytes), '\0');
  const Shape shape = buffer.box.shape();
  copy_region(out.data(), shape, Box::whole(shape), static_cast<char*>(data), buffer.layout,
              size_of(buffer.dtype),
              /*to_whole=*/true);
  return out;
}

}  // namespace

Accuracy count_correct(const std::string& scores, DType score_type, const Shape& shape,
                       const std::string& labels, const Input& label_input, int64_t real) {
  if (shape.size() < 2) throw UserError("--eval-data: the output " + to_string(shape) + " has no class axis");
  int64_t inner = 1;  // positions behind the class axis
  for (size_t axis = 2; axis < shape.size(); ++axis) inner *= shape[axis];
  const int64_t positions = shape[0] * inner;
  if (positions != volume(label_input.shape)) {
    throw UserError("--eval-data: an output of " + to_string(shape) + " does not fit labels of " +
                    to_string(label_input.shape));
  }
  int64_t behind_batch = 1;
  for (size_t axis = static_cast<size_t>(label_input.batch_axis) + 1; axis < label_input.shape.size(); ++axis)
    behind_batch *= label_input.shape[axis];
  const int64_t batch = label_input.shape[static_cast<size_t>(label_input.batch_axis)];
  Accuracy out;
  for (int64_t i = 0; i < positions; ++i) {
    if (i / behind_batch % batch >= real) continue;
    const auto label = static_cast<int64_t>(element_as_double(labels, label_input.dtype, i));
    if (label < 0) continue;
    const int64_t first = i / inner * shape[1] * inner + i % inner;
    int64_t best = 0;
    double highest = element_as_double(scores, score_type, first);
    for (int64_t c = 1; c < shape[1]; ++c) {
      const double score = element_as_double(scores, score_type, first + c * inner);
      if (score > highest) {
        highest = score;
        best = c;
      }
    }
    ++out.counted;
    out.correct += best == label ? 1 : 0;
  }
  return out;
}

Accuracy evaluate(const Plan& plan, Interpreter& interpreter, InputFeed& feed, Communicator& comm,
                  const RunContext& context) {
  const Entry& entry = interpreter.entry("eval_step");
  const Input& labels = labels_of(plan);
  if (!feed.samples()) throw UserError("--eval-data: made-up numbers have nothing to be accurate about");
  const Batches cut = cut_batches(*feed.samples(), plan.batch, /*training=*/false);
  SampleOrder order(cut.samples, /*shuffle=*/false, 0);
  Accuracy out;
  for (int64_t step = 0; step < cut.steps; ++step) {
    const Batch batch = order.batch(cut, 0, step);
    feed.fill(interpreter, entry.name, batch);
    interpreter.execute(entry.name, context);
    if (comm.rank() != 0) continue;
    const int32_t b = score_buffer(plan, interpreter.program(), entry);
    const Buffer& buffer = interpreter.program().buffers[static_cast<size_t>(b)];
    const Accuracy one =
        count_correct(row_major(buffer, interpreter.data(b)), buffer.dtype, buffer.box.shape(),
                      feed.whole(labels.name, batch), labels, batch.real);
    out.correct += one.correct;
    out.counted += one.counted;
  }
  return out;
}

}  // namespace ff
