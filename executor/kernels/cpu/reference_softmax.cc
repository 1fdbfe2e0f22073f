// Softmax and its logarithm along one axis, their gradients, and the stages of both, in plain loops. The
// exponent is taken of x - max: never of a positive number.
#include <algorithm>
#include <cmath>

#include "executor/kernels/cpu/class_rows.h"
#include "executor/kernels/cpu/image.h"
#include "executor/kernels/cpu/registry.h"

namespace ff::cpu {
namespace {

using Buffers = std::span<void* const>;

/// Operand `i` as rows along the class axis.
template <typename T>
ClassRows<T> rows_of(const KernelCall& call, Buffers operands, size_t i) {
  return {call.operands[i], operands[i], class_axis_of(call, call.operands[0])};
}
template <typename T>
RowVector<T> vector_of(const KernelCall& call, Buffers operands, size_t i) {
  return {call.operands[i], operands[i]};
}

template <typename T>
void write_out(const ClassRows<T>& x, const ClassRows<T>& y, size_t r, T max, T sum, bool log) {
  if (!log) return exp_of(x, y, r, max, 1 / sum);
  const T log_sum = std::log(sum);
  for (int64_t c = 0; c < x.classes; ++c) y(r, c) = (x(r, c) - max) - log_sum;
}

template <typename T>
T dot_of(const ClassRows<T>& y, const ClassRows<T>& dy, size_t r, bool log) {
  T dot = 0;
  for (int64_t c = 0; c < y.classes; ++c) dot += log ? dy(r, c) : y(r, c) * dy(r, c);
  return dot;
}

template <typename T>
void write_gradient(const ClassRows<T>& y, const ClassRows<T>& dy, const ClassRows<T>& dx, size_t r, T dot,
                    bool log) {
  for (int64_t c = 0; c < y.classes; ++c)
    dx(r, c) = log ? dy(r, c) - std::exp(y(r, c)) * dot : y(r, c) * (dy(r, c) - dot);
}

bool log_of(const KernelCall& call) { return call.attributes.integer("log", 0) != 0; }

template <typename T, bool kLog>
void softmax(const KernelCall& call, Buffers operands) {
  const auto x = rows_of<T>(call, operands, 0), y = rows_of<T>(call, operands, 1);
  for (size_t r = 0; r < x.rows(); ++r) {
    const T max = max_of(x, r);
    write_out(x, y, r, max, sum_of(x, r, max), kLog);
  }
}

template <typename T, bool kLog>
void softmax_grad(const KernelCall& call, Buffers operands) {
  const auto y = rows_of<T>(call, operands, 0), dy = rows_of<T>(call, operands, 1),
             dx = rows_of<T>(call, operands, 2);
  for (size_t r = 0; r < y.rows(); ++r) write_gradient(y, dy, dx, r, dot_of(y, dy, r, kLog), kLog);
}

template <typename T>
void stage_max(const KernelCall& call, Buffers operands) {
  const auto x = rows_of<T>(call, operands, 0);
  const auto max = vector_of<T>(call, operands, 1);
  for (size_t r = 0; r < x.rows(); ++r) max[r] = max_of(x, r);
}

template <typename T>
void stage_sum(const KernelCall& call, Buffers operands) {
  const auto x = rows_of<T>(call, operands, 0);
  const auto max = vector_of<T>(call, operands, 1), sum = vector_of<T>(call, operands, 2);
  for (size_t r = 0; r < x.rows(); ++r) sum[r] = sum_of(x, r, max[r]);
}

template <typename T>
void stage_out(const KernelCall& call, Buffers operands) {
  const auto x = rows_of<T>(call, operands, 0), y = rows_of<T>(call, operands, 3);
  const auto max = vector_of<T>(call, operands, 1), sum = vector_of<T>(call, operands, 2);
  for (size_t r = 0; r < x.rows(); ++r) write_out(x, y, r, max[r], sum[r], log_of(call));
}

template <typename T>
void stage_dot(const KernelCall& call, Buffers operands) {
  const auto y = rows_of<T>(call, operands, 0), dy = rows_of<T>(call, operands, 1);
  const auto dot = vector_of<T>(call, operands, 2);
  for (size_t r = 0; r < y.rows(); ++r) dot[r] = dot_of(y, dy, r, log_of(call));
}

template <typename T>
void stage_gradient(const KernelCall& call, Buffers operands) {
  const auto y = rows_of<T>(call, operands, 0), dy = rows_of<T>(call, operands, 1),
             dx = rows_of<T>(call, operands, 3);
  const auto dot = vector_of<T>(call, operands, 2);
  for (size_t r = 0; r < y.rows(); ++r) write_gradient(y, dy, dx, r, dot[r], log_of(call));
}

template <LoopFunction kFloat, LoopFunction kDouble>
void add(Registry& registry, std::string name) {
  registry.add_reference(std::move(name), make_loop_kernel<kFloat>, make_loop_kernel<kDouble>);
}

}  // namespace

void register_reference_softmax(Registry& registry) {
  add<softmax<float, false>, softmax<double, false>>(registry, "Softmax");
  add<softmax<float, true>, softmax<double, true>>(registry, "LogSoftmax");
  add<softmax_grad<float, false>, softmax_grad<double, false>>(registry, "SoftmaxGrad");
  add<softmax_grad<float, true>, softmax_grad<double, true>>(registry, "LogSoftmaxGrad");
  add<stage_max<float>, stage_max<double>>(registry, "SoftmaxMax");
  add<stage_sum<float>, stage_sum<double>>(registry, "SoftmaxSum");
  add<stage_out<float>, stage_out<double>>(registry, "SoftmaxOut");
  add<stage_dot<float>, stage_dot<double>>(registry, "SoftmaxGradDot");
  add<stage_gradient<float>, stage_gradient<double>>(registry, "SoftmaxGradOut");
}

}  // namespace ff::cpu
