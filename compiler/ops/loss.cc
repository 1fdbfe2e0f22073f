// Losses and their gradients. A cell writes its part of the loss, scaled by 1 over the global count, so that
// the parts add up; class weights and the count that a weighted mean divides by are read whole.
//
//   SoftmaxCrossEntropy(d0:S, class:A) logits [d0, class], labels [d0], weights [:], count [] -> loss [],
//   lse [d0]
//
// Where `class` is split, the stages replace it. A label counts in the cell whose classes it is among:
//
//   SoftmaxMax, SoftmaxSum (softmax.cc);   CrossEntropyTarget logits, labels, weights -> target, sum of
//   logits CrossEntropyLoss labels, max, sum, target, sum of logits, weights, count -> loss, lse
//
// The gradients are those of the training loss, scaled by `weight`, its weight among several. Where other ops
// read the loss, a Mul multiplies them by the gradient that arrives at it.
#include <algorithm>
#include <string_view>

#include "compiler/base/check.h"
#include "compiler/ops/families.h"
#include "compiler/ops/windows.h"

namespace ff {
namespace {

size_t class_axis(const Op& op, size_t rank) {
  const int64_t axis = op.attributes.integer("axis", 1), r = static_cast<int64_t>(rank);
  if (axis < -r || axis >= r) {
    throw UserError("class axis " + std::to_string(axis) + " is no axis of an output of " +
                    std::to_string(rank) + " dimensions");
  }
  return static_cast<size_t>(axis < 0 ? axis + r : axis);
}

std::vector<TensorType> infer_none(const Graph&, const Op& op) {
  FF_CHECK(false) << op.type << " is made by a gradient or stage rule, which gives its outputs";
  return {};
}

/// Checks labels, weights and count (inputs 1 to 3) against the scores; the shape of the labels.
Shape check_labels(const Graph& g, const Op& op) {
  const Shape& x = input_shape(g, op, 0);
  const size_t axis = class_axis(op, x.size());
  Shape expected = x;
  expected.erase(expected.begin() + static_cast<int64_t>(axis));
  if (input_shape(g, op, 1) != expected) {
    throw UserError("the labels have shape " + to_string(input_shape(g, op, 1)) + "; scores of shape " +
                    to_string(x) + " with class axis " + std::to_string(axis) + " take " +
                    to_string(expected));
  }
  const DType type = g.tensor(op.inputs[1]).dtype;
  if (type != DType::i64 && type != DType::i32 && type != DType::u8)
    throw UserError("the labels have type " + std::string(name(type)) + "; they must be i64, i32 or u8");
  if (has_input(op, 2) && input_shape(g, op, 2) != Shape{x[axis]}) {
    throw UserError("the class weights have shape " + to_string(input_shape(g, op, 2)) + "; they must be " +
                    std::to_string(x[axis]) + ", one a class");
  }
  return expected;
}

std::vector<TensorType> infer_cross_entropy(const Graph& g, const Op& op) {
  const Shape labels = check_labels(g, op);
  const DType type = g.tensor(op.inputs[0]).dtype;
  return {{{}, type}, {labels, type}};
}
std::vector<TensorType> infer_likelihood(const Graph& g, const Op& op) {
  check_labels(g, op);
  return {{{}, g.tensor(op.inputs[0]).dtype}};
}
std::vector<TensorType> infer_count(const Graph& g, const Op& op) {
  if (has_input(op, 1)) return {{{}, g.tensor(op.inputs[1]).dtype}};
  return {{{}, op.attributes.integer("float64", 0) != 0 ? DType::f64 : DType::f32}};
}
std::vector<TensorType> infer_pointwise(const Graph& g, const Op& op) {
  const Shape &x = input_shape(g, op, 0), &target = input_shape(g, op, 1);
  if (x != target) {
    throw UserError("the target has shape " + to_string(target) + "; it must be " + to_string(x) +
                    " like the output");
  }
  return {{{}, g.tensor(op.inputs[0]).dtype}};
}

/// The space of an op whose operands are, a letter each: f scores with the class axis, l without it, w a
/// vector read whole, s a scalar. Without an f there is no dimension `class`.
OpSpace loss_space(const Graph& g, const Op& op, std::string_view inputs, std::string_view outputs) {
  const size_t n = op.inputs.size();
  const auto id_of = [&](size_t i) { return i < n ? op.inputs[i] : op.outputs[i - n]; };
  FF_CHECK(n <= inputs.size() && op.outputs.size() <= outputs.size()) << op.name;
  const std::string kinds = std::string(inputs.substr(0, n)) + std::string(outputs);
  const size_t full = kinds.find('f');
  const size_t model = full != std::string::npos ? full : kinds.find('l');
  const Shape& shape = g.tensor(id_of(model)).shape;
  const size_t rank = shape.size() + (full == std::string::npos ? 1 : 0);
  const size_t axis = class_axis(op, rank);

  OpSpace space;
  AccessMap scores, labels;
  for (size_t d = 0; d < rank; ++d) {
    if (d == axis && full == std::string::npos) continue;
    const int64_t extent = shape[full == std::string::npos && d > axis ? d - 1 : d];
    const AxisMap map = AxisMap::identity(static_cast<int>(space.dims.size()));
    scores.axes.push_back(map);
    if (d != axis) labels.axes.push_back(map);
    space.dims.push_back({.name = d == axis ? "class" : "d" + std::to_string(d),
                          .role = d == 0 && d != axis ? Role::sample : Role::attribute,
                          .extent = extent,
                          .max_degree = extent});
  }
  const auto map_of = [&](size_t i, char kind) {
    if (!id_of(i).valid()) return AccessMap{};
    if (kind == 'f') return scores;
    if (kind == 'l') return labels;
    return AccessMap{.axes = kind == 'w' ? std::vector{AxisMap::whole()} : std::vector<AxisMap>{}};
  };
  for (size_t i = 0; i < n; ++i) space.inputs.push_back(map_of(i, kinds[i]));
  for (size_t i = 0; i < op.outputs.size(); ++i) space.outputs.push_back(map_of(n + i, kinds[n + i]));
  return space;
}

OpSpace cross_entropy_space(const Graph& g, const Op& op) { return loss_space(g, op, "flws", "sl"); }
OpSpace cross_entropy_grad_space(const Graph& g, const Op& op) { return loss_space(g, op, "fllws", "f"); }
OpSpace likelihood_grad_space(const Graph& g, const Op& op) { return loss_space(g, op, "lws", "f"); }
OpSpace tail_space(const Graph& g, const Op& op) { return loss_space(g, op, "lllllws", "sl"); }
OpSpace count_space(const Graph& g, const Op& op) { return loss_space(g, op, "lw", "s"); }
/// The rows whose cells sum over their classes.
OpSpace contracted(OpSpace space) {
  space.dims[static_cast<size_t>(space.dim_index("class"))].role = Role::contracted;
  return space;
}
OpSpace target_space(const Graph& g, const Op& op) { return contracted(loss_space(g, op, "flw", "ll")); }
OpSpace likelihood_space(const Graph& g, const Op& op) { return contracted(loss_space(g, op, "flws", "s")); }

/// Losses between tensors of one shape, and their gradients.
OpSpace pointwise_space(const Graph& g, const Op& op) {
  const Shape& x = input_shape(g, op, 0);
  OpSpace space;
  for (size_t d = 0; d < x.size(); ++d) {
    space.dims.push_back({.name = "d" + std::to_string(d),
                          .role = d == 0 ? Role::sample : Role::attribute,
                          .extent = x[d],
                          .max_degree = x[d]});
  }
  const auto map_of = [&](TensorId id) {
    return g.tensor(id).shape.size() == x.size() ? identity_map(x.size()) : AccessMap{};
  };
  for (TensorId id : op.inputs) space.inputs.push_back(map_of(id));
  for (TensorId id : op.outputs) space.outputs.push_back(map_of(id));
  return space;
}

/// `labels`: where among the op's inputs they stand. The call knows where its labels and classes begin in the
/// whole, and how many classes there are.
KernelCall labelled_call(const Graph& g, const Op& op, const Cell& cell, size_t labels) {
  KernelCall call = default_call(g, op, cell);
  const size_t axis = class_axis(op, input_shape(g, op, labels).size() + 1);
  const Box& box = cell.boxes[labels];
  call.attributes.set("axis", static_cast<int64_t>(axis));
  call.attributes.set("sample_offset", box.rank() > 0 ? box[0].lo : int64_t{0});
  const OpSpace space = op_def(op.type).space(g, op);
  if (const int dim = space.dim_index("class"); dim >= 0) {
    call.attributes.set("class_offset", cell.blocks[static_cast<size_t>(dim)].lo);
    call.attributes.set("classes", space.dims[static_cast<size_t>(dim)].extent);
  }
  return call;
}
KernelCall labels_first_call(const Graph& g, const Op& op, const Cell& cell) {
  return labelled_call(g, op, cell, 0);
}
KernelCall scores_first_call(const Graph& g, const Op& op, const Cell& cell) {
  return labelled_call(g, op, cell, 1);
}

TensorId input_or_none(const Op& op, size_t i) { return has_input(op, i) ? op.inputs[i] : TensorId(); }

void emit_gradient(const Op& op, GradientBuilder& b, const std::vector<TensorId>& inputs) {
  const TensorId dx = b.input_gradient(op.inputs[0]);
  if (!dx.valid()) return;
  const TensorId arriving = b.output_gradient(op.outputs[0]);
  const TensorId own = arriving.valid() ? b.temporary("own", op.inputs[0]) : dx;
  b.emit("grad", op.type + "Grad", op.attributes, inputs, {own});
  if (arriving.valid()) b.emit("grad_times", "Mul", {}, {own, arriving}, {dx});
}
void cross_entropy_gradient(const Op& op, GradientBuilder& b) {
  emit_gradient(op, b,
                {op.inputs[0], op.inputs[1], op.outputs[1], input_or_none(op, 2), input_or_none(op, 3)});
}
void likelihood_gradient(const Op& op, GradientBuilder& b) {
  emit_gradient(op, b, {op.inputs[1], input_or_none(op, 2), input_or_none(op, 3)});
}
void pointwise_gradient(const Op& op, GradientBuilder& b) {
  emit_gradient(op, b, {op.inputs[0], op.inputs[1]});
}

void cross_entropy_stages(const Op& op, StageBuilder& b) {
  const Graph& g = b.graph();
  const TensorId logits = op.inputs[0], labels = op.inputs[1], weights = input_or_none(op, 2);
  const Shape x = input_shape(g, op, 0);  // a copy: the graph grows
  const size_t axis = class_axis(op, x.size());
  const TensorType vector{input_shape(g, op, 1), g.tensor(logits).dtype};
  const Attributes only_axis{{"axis", static_cast<int64_t>(axis)}};
  const bool smooth = op.attributes.real("label_smoothing", 0) != 0;
  const TensorId max = b.temporary("max", vector), sum = b.temporary("sum", vector);
  std::vector<TensorId> targets{b.temporary("target", vector)};
  if (smooth) targets.push_back(b.temporary("sum_logits", vector));
  Attributes attributes = op.attributes;
  attributes.set("classes", x[axis]);
  b.emit("max", "SoftmaxMax", only_axis, {logits}, {max});
  b.emit("sum", "SoftmaxSum", only_axis, {logits, max}, {sum});
  b.emit("target", "CrossEntropyTarget", attributes, {logits, labels, weights}, targets);
  b.emit("loss", "CrossEntropyLoss", attributes,
         {labels, max, sum, targets[0], smooth ? targets[1] : TensorId(), weights, input_or_none(op, 3)},
         {op.outputs[0], op.outputs[1]});
}

/// An exponential counts as 10.
Work exponential_work(const Graph& g, const Op& op, const Cell& cell) {
  return {.flops = 14 * cells_volume(cell), .bytes = bytes_of(g, op, cell)};
}
Work linear_work(const Graph& g, const Op& op, const Cell& cell) {
  return {.flops = 3 * cells_volume(cell), .bytes = bytes_of(g, op, cell)};
}

using Infer = std::vector<TensorType> (*)(const Graph&, const Op&);
using Space = OpSpace (*)(const Graph&, const Op&);
using Gradient = void (*)(const Op&, GradientBuilder&);
using Call = KernelCall (*)(const Graph&, const Op&, const Cell&);

OpDef row(std::string_view type, Infer infer, Space space, Gradient gradient, bool exponential, Call call) {
  return {.type = type,
          .family = "loss",
          .infer = infer,
          .space = space,
          .gradient = gradient,
          .stage_dims = {},
          .work = exponential ? exponential_work : linear_work,
          .kernel = call};
}

std::vector<OpDef> rows() {
  std::vector<OpDef> out{
      row("SoftmaxCrossEntropy", infer_cross_entropy, cross_entropy_space, cross_entropy_gradient, true,
          scores_first_call),
      row("SoftmaxCrossEntropyGrad", infer_none, cross_entropy_grad_space, nullptr, true, scores_first_call),
      row("CrossEntropyTarget", infer_none, target_space, nullptr, false, scores_first_call),
      row("CrossEntropyLoss", infer_none, tail_space, nullptr, true, labels_first_call),
      row("NegativeLogLikelihood", infer_likelihood, likelihood_space, likelihood_gradient, false,
          scores_first_call),
      row("NegativeLogLikelihoodGrad", infer_none, likelihood_grad_space, nullptr, false, labels_first_call),
      row("LossCount", infer_count, count_space, nullptr, false, labels_first_call),
      row("MeanSquaredError", infer_pointwise, pointwise_space, pointwise_gradient, false, nullptr),
      row("MeanSquaredErrorGrad", infer_none, pointwise_space, nullptr, false, nullptr),
      row("BinaryCrossEntropy", infer_pointwise, pointwise_space, pointwise_gradient, true, nullptr),
      row("BinaryCrossEntropyGrad", infer_none, pointwise_space, nullptr, true, nullptr),
  };
  out[0].stage_dims = {"class"};
  out[0].stages = cross_entropy_stages;
  return out;
}

}  // namespace

std::span<const OpDef> loss_ops() {
  static const std::vector<OpDef> kOps = rows();
  return kOps;
}

}  // namespace ff
