// Losses and their gradients in plain loops. Sums are kept in double precision: a loss is a sum over a batch.
//
// With smoothing e, class weights w and C classes, a label y of a row with scores x costs, as in PyTorch,
//   (1 - e) * w[y] * (lse - x[y])  +  e / C * sum over c of w[c] * (lse - x[c]).
#include <algorithm>
#include <cmath>

#include "executor/kernels/cpu/class_rows.h"
#include "executor/kernels/cpu/image.h"
#include "executor/kernels/cpu/registry.h"

namespace ff::cpu {
namespace {

using Buffers = std::span<void* const>;

/// Smoothing and class weights.
template <typename T>
struct Cost {
  double smoothing, classes;
  const T* weights;
  double total_weight;

  Cost(const KernelCall& call, const void* w)
      : smoothing(call.attributes.real("label_smoothing", 0)),
        classes(static_cast<double>(call.attributes.integer("classes", 1))),
        weights(static_cast<const T*>(w)),
        total_weight(classes) {
    if (weights == nullptr) return;
    total_weight = 0;
    for (int64_t c = 0; c < call.attributes.integer("classes"); ++c) total_weight += double{weights[c]};
  }

  double weight(int64_t c) const { return weights == nullptr ? 1 : double{weights[c]}; }
  double share() const { return smoothing / classes; }
  /// `lse`, the label's score and the weighted sum of all scores, all less one number.
  double of(int64_t label, double lse, double target, double sum_scores) const {
    double cost = (1 - smoothing) * weight(label) * (lse - target);
    if (smoothing != 0) cost += share() * (total_weight * lse - sum_scores);
    return cost;
  }
};

/// What the loss is multiplied by; `count`: null, or what it is divided by. Nothing counted: 0.
template <typename T>
double scale_of(const KernelCall& call, const void* count) {
  const double scale = call.attributes.real("scale", 1);
  if (count == nullptr) return scale;
  const double n = double{*static_cast<const T*>(count)};
  return n == 0 ? 0 : scale / n;
}
template <typename T>
double gradient_scale_of(const KernelCall& call, const void* count) {
  return scale_of<T>(call, count) * call.attributes.real("weight", 1);
}

void* optional(Buffers operands, size_t i) { return i < operands.size() ? operands[i] : nullptr; }

template <typename T>
void store(void* scalar, double value) {
  if (scalar != nullptr) *static_cast<T*>(scalar) = static_cast<T>(value);
}

/// Operands: logits, labels, weights, count, loss, lse.
template <typename T>
void cross_entropy(const KernelCall& call, Buffers operands) {
  const ClassRows<T> x(call.operands[0], operands[0], class_axis_of(call, call.operands[0]));
  const Labels labels(call, 1, operands);
  const size_t loss = call.operands.size() - 2;
  const RowVector<T> lse(call.operands[loss + 1], operands[loss + 1]);
  const Cost<T> cost(call, loss > 2 ? operands[2] : nullptr);
  double total = 0;
  for (size_t r = 0; r < x.rows(); ++r) {
    const T max = max_of(x, r), sum = sum_of(x, r, max);
    if (lse) lse[r] = max + std::log(sum);
    const int64_t label = labels.get(r);
    if (labels.ignore(label)) continue;
    double scores = 0;
    for (int64_t c = 0; cost.smoothing != 0 && c < x.classes; ++c)
      scores += cost.weight(c) * double{x(r, c) - max};
    total += cost.of(label, std::log(double{sum}), double{x(r, label) - max}, scores);
  }
  store<T>(operands[loss], total * scale_of<T>(call, loss > 3 ? operands[3] : nullptr));
}

/// Operands: logits, labels, lse, weights, count, dlogits. The cell may have part of the classes.
template <typename T>
void cross_entropy_grad(const KernelCall& call, Buffers operands) {
  const int axis = class_axis_of(call, call.operands[0]);
  const ClassRows<T> x(call.operands[0], operands[0], axis), dx(call.operands[5], operands[5], axis);
  const Labels labels(call, 1, operands);
  const RowVector<T> lse(call.operands[2], operands[2]);
  const Cost<T> cost(call, operands[3]);
  const double scale = gradient_scale_of<T>(call, operands[4]);
  for (size_t r = 0; r < x.rows(); ++r) {
    const int64_t label = labels.get(r);
    if (labels.ignore(label)) {
      for (int64_t c = 0; c < x.classes; ++c) dx(r, c) = T(0);
      continue;
    }
    const double sure = (1 - cost.smoothing) * cost.weight(label);
    const T row_scale = static_cast<T>(scale * (sure + cost.share() * cost.total_weight));
    exp_of(x, dx, r, lse[r], row_scale);
    for (int64_t c = 0; cost.smoothing != 0 && c < x.classes; ++c)
      dx(r, c) -= static_cast<T>(scale * cost.share() * cost.weight(c + labels.class_offset));
    const int64_t own = label - labels.class_offset;
    if (own >= 0 && own < x.classes) dx(r, own) -= static_cast<T>(scale * sure);
  }
}

/// Operands: logits, labels, weights, target, sum of logits (smoothing only): the cell's part.
template <typename T>
void cross_entropy_target(const KernelCall& call, Buffers operands) {
  const ClassRows<T> x(call.operands[0], operands[0], class_axis_of(call, call.operands[0]));
  const Labels labels(call, 1, operands);
  const RowVector<T> target(call.operands[3], operands[3]);
  const bool has_sums = call.operands.size() > 4;
  const RowVector<T> sums(call.operands[has_sums ? 4 : 3], optional(operands, 4));
  const Cost<T> cost(call, operands[2]);
  for (size_t r = 0; r < x.rows(); ++r) {
    const int64_t label = labels.get(r), own = label - labels.class_offset;
    target[r] = !labels.ignore(label) && own >= 0 && own < x.classes ? x(r, own) : T(0);
    if (!sums) continue;
    double sum = 0;
    for (int64_t c = 0; c < x.classes; ++c) sum += cost.weight(c + labels.class_offset) * double{x(r, c)};
    sums[r] = static_cast<T>(sum);
  }
}

/// Operands: labels, max, sum, target, sum of logits, weights, count, loss, lse.
template <typename T>
void cross_entropy_loss(const KernelCall& call, Buffers operands) {
  const Labels labels(call, 0, operands);
  const RowVector<T> max(call.operands[1], operands[1]), sum(call.operands[2], operands[2]),
      target(call.operands[3], operands[3]), scores(call.operands[4], operands[4]),
      lse(call.operands[8], operands[8]);
  const Cost<T> cost(call, operands[5]);
  double total = 0;
  for (size_t r = 0; r < labels.rows(); ++r) {
    if (lse) lse[r] = max[r] + std::log(sum[r]);
    const int64_t label = labels.get(r);
    if (labels.ignore(label)) continue;
    const double row_max = double{max[r]};
    const double row_scores = scores ? double{scores[r]} - cost.total_weight * row_max : 0;
    total += cost.of(label, std::log(double{sum[r]}), double{target[r]} - row_max, row_scores);
  }
  store<T>(operands[7], total * scale_of<T>(call, operands[6]));
}

/// Operands: log-probabilities, labels, weights, count, loss. A label of another cell's classes costs nothing
/// here.
template <typename T>
void likelihood(const KernelCall& call, Buffers operands) {
  const ClassRows<T> x(call.operands[0], operands[0], class_axis_of(call, call.operands[0]));
  const Labels labels(call, 1, operands);
  const size_t loss = call.operands.size() - 1;
  const Cost<T> cost(call, loss > 2 ? operands[2] : nullptr);
  double total = 0;
  for (size_t r = 0; r < x.rows(); ++r) {
    const int64_t label = labels.get(r), own = label - labels.class_offset;
    if (labels.ignore(label)) continue;
    if (own >= 0 && own < x.classes) total -= (1 - cost.smoothing) * cost.weight(label) * double{x(r, own)};
    for (int64_t c = 0; cost.smoothing != 0 && c < x.classes; ++c)
      total -= cost.share() * cost.weight(c + labels.class_offset) * double{x(r, c)};
  }
  store<T>(operands[loss], total * scale_of<T>(call, loss > 3 ? operands[3] : nullptr));
}

/// Operands: labels, weights, count, the gradient.
template <typename T>
void likelihood_grad(const KernelCall& call, Buffers operands) {
  const ClassRows<T> dx(call.operands[3], operands[3], class_axis_of(call, call.operands[3]));
  const Labels labels(call, 0, operands);
  const Cost<T> cost(call, operands[1]);
  const double scale = gradient_scale_of<T>(call, operands[2]);
  for (size_t r = 0; r < dx.rows(); ++r) {
    const int64_t label = labels.get(r), own = label - labels.class_offset;
    const bool counts = !labels.ignore(label);
    for (int64_t c = 0; c < dx.classes; ++c) {
      const double share = counts ? cost.share() * cost.weight(c + labels.class_offset) : 0;
      dx(r, c) = static_cast<T>(-scale * share);
    }
    if (counts && own >= 0 && own < dx.classes)
      dx(r, own) -= static_cast<T>(scale * (1 - cost.smoothing) * cost.weight(label));
  }
}

/// Operands: labels, weights, count.
template <typename T>
void loss_count(const KernelCall& call, Buffers operands) {
  Labels labels(call, 0, operands);
  const size_t last = call.operands.size() - 1;
  const T* weights = last > 1 ? static_cast<const T*>(operands[1]) : nullptr;
  if (weights != nullptr) labels.classes = call.operands[1].shape[0];
  double count = 0;
  for (size_t r = 0; r < labels.rows(); ++r) {
    const int64_t label = labels.get(r);
    if (!labels.ignore(label)) count += weights == nullptr ? 1 : double{weights[label]};
  }
  store<T>(operands[last], count);
}

/// Calls body(i, j) for every element's offsets in two operands of one shape.
template <typename Body>
void for_each_pair(const Operand& a, const Operand& b, Body&& body) {
  if (a.layout == b.layout) {
    const int64_t n = volume(a.shape);
    for (int64_t i = 0; i < n; ++i) body(i, i);
    return;
  }
  const std::vector<int64_t> in_a = row_offsets(a, -1), in_b = row_offsets(b, -1);
  for (size_t i = 0; i < in_a.size(); ++i) body(in_a[i], in_b[i]);
}

/// The loss of one output and its target, and its derivative.
struct SquaredError {
  static double of(double x, double t) { return (x - t) * (x - t); }
  static double derivative(double x, double t) { return 2 * (x - t); }
};
/// x is a logit: -t log s(x) - (1 - t) log(1 - s(x)), without overflow.
struct BinaryEntropy {
  static double of(double x, double t) {
    return std::max(x, 0.0) - x * t + std::log1p(std::exp(-std::abs(x)));
  }
  static double derivative(double x, double t) {
    const double e = std::exp(-std::abs(x));
    return (x >= 0 ? 1 / (1 + e) : e / (1 + e)) - t;
  }
};

template <typename T, typename Loss>
void pointwise(const KernelCall& call, Buffers operands) {
  const T* x = static_cast<const T*>(operands[0]);
  const T* target = static_cast<const T*>(operands[1]);
  double total = 0;
  for_each_pair(call.operands[0], call.operands[1],
                [&](int64_t i, int64_t j) { total += Loss::of(double{x[i]}, double{target[j]}); });
  store<T>(operands[2], total * scale_of<T>(call, nullptr));
}

template <typename T, typename Loss>
void pointwise_grad(const KernelCall& call, Buffers operands) {
  const T* x = static_cast<const T*>(operands[0]);
  const T* target = static_cast<const T*>(operands[1]);
  T* dx = static_cast<T*>(operands[2]);
  FF_CHECK(call.operands[2].layout == call.operands[0].layout) << to_string(call);
  const double scale = gradient_scale_of<T>(call, nullptr);
  for_each_pair(call.operands[0], call.operands[1], [&](int64_t i, int64_t j) {
    dx[i] = static_cast<T>(scale * Loss::derivative(double{x[i]}, double{target[j]}));
  });
}

template <LoopFunction kFloat, LoopFunction kDouble>
void add(Registry& registry, std::string name) {
  registry.add_reference(std::move(name), make_loop_kernel<kFloat>, make_loop_kernel<kDouble>);
}

}  // namespace

void register_reference_loss(Registry& registry) {
  add<cross_entropy<float>, cross_entropy<double>>(registry, "SoftmaxCrossEntropy");
  add<cross_entropy_grad<float>, cross_entropy_grad<double>>(registry, "SoftmaxCrossEntropyGrad");
  add<cross_entropy_target<float>, cross_entropy_target<double>>(registry, "CrossEntropyTarget");
  add<cross_entropy_loss<float>, cross_entropy_loss<double>>(registry, "CrossEntropyLoss");
  add<likelihood<float>, likelihood<double>>(registry, "NegativeLogLikelihood");
  add<likelihood_grad<float>, likelihood_grad<double>>(registry, "NegativeLogLikelihoodGrad");
  add<loss_count<float>, loss_count<double>>(registry, "LossCount");
  add<pointwise<float, SquaredError>, pointwise<double, SquaredError>>(registry, "MeanSquaredError");
  add<pointwise_grad<float, SquaredError>, pointwise_grad<double, SquaredError>>(registry,
                                                                                 "MeanSquaredErrorGrad");
  add<pointwise<float, BinaryEntropy>, pointwise<double, BinaryEntropy>>(registry, "BinaryCrossEntropy");
  add<pointwise_grad<float, BinaryEntropy>, pointwise_grad<double, BinaryEntropy>>(registry,
                                                                                   "BinaryCrossEntropyGrad");
}

}  // namespace ff::cpu
