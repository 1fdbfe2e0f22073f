// Softmax and its logarithm along one axis, fused and staged, and their gradients. The axis is dimension
// `class`, the others are named d<axis>.
//
//   Softmax(d0:S, class:A) x [d0, class] -> y [d0, class]                      axis 1
//
// Where `class` is split, the stages replace it; the vectors between them lack the axis:
//
//   SoftmaxMax x -> max;   SoftmaxSum x, max -> sum of exp(x - max);   SoftmaxOut x, max, sum -> y
//   SoftmaxGradDot y, dy -> dot (of y*dy; with log=1 of dy);   SoftmaxGradOut y, dy, dot -> dx
#include "compiler/base/check.h"
#include "compiler/ops/families.h"
#include "compiler/ops/windows.h"

namespace ff {
namespace {

int axis_of(const Op& op, const Shape& x) {
  const int64_t rank = static_cast<int64_t>(x.size());
  const int64_t axis = op.attributes.integer("axis", -1);
  if (axis < -rank || axis >= rank) {
    throw UserError("axis=" + std::to_string(axis) + " is no axis of the input of shape " + to_string(x));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::vector<TensorType> infer_softmax(const Graph& g, const Op& op) {
  const Shape& x = input_shape(g, op, 0);
  axis_of(op, x);
  return {{x, g.tensor(op.inputs[0]).dtype}};
}

std::vector<TensorType> infer_none(const Graph&, const Op& op) {
  FF_CHECK(false) << op.type << " is made by a gradient or stage rule, which gives its outputs";
  return {};
}

/// All rows: operands of the input's rank have all dimensions, those of a rank less lack `class`. `summed`:
/// the outputs lack it.
OpSpace softmax_space(const Graph& g, const Op& op, bool summed) {
  const Shape& x = input_shape(g, op, 0);
  const int axis = axis_of(op, x);
  OpSpace space;
  for (int d = 0; d < static_cast<int>(x.size()); ++d) {
    const int64_t extent = x[static_cast<size_t>(d)];
    space.dims.push_back({.name = d == axis ? "class" : "d" + std::to_string(d),
                          .role = d == axis && summed ? Role::contracted : Role::attribute,
                          .extent = extent,
                          .max_degree = extent});
  }
  const auto map_of = [&](TensorId id) {
    AccessMap map = identity_map(x.size());
    if (g.tensor(id).shape.size() < x.size()) map.axes.erase(map.axes.begin() + axis);
    return map;
  };
  for (TensorId id : op.inputs) space.inputs.push_back(map_of(id));
  for (TensorId id : op.outputs) space.outputs.push_back(map_of(id));
  return space;
}
OpSpace whole_space(const Graph& g, const Op& op) { return softmax_space(g, op, false); }
OpSpace sum_space(const Graph& g, const Op& op) { return softmax_space(g, op, true); }
OpSpace max_space(const Graph& g, const Op& op) {
  OpSpace space = softmax_space(g, op, true);
  space.outputs[0].combiner = Combiner::max;
  return space;
}

void softmax_gradient(const Op& op, GradientBuilder& b) {
  const TensorId dy = b.output_gradient(op.outputs[0]);
  if (!dy.valid()) return;
  const TensorId dx = b.input_gradient(op.inputs[0]);
  if (!dx.valid()) return;
  b.emit("grad", op.type + "Grad", op.attributes, {op.outputs[0], dy}, {dx});
}

TensorType without_axis(const Graph& g, const Op& op) {
  Shape shape = input_shape(g, op, 0);
  shape.erase(shape.begin() + axis_of(op, shape));
  return {shape, g.tensor(op.inputs[0]).dtype};
}

Attributes stage_attributes(const Op& op, bool log) {
  Attributes attributes{{"axis", op.attributes.integer("axis", -1)}};
  if (log) attributes.set("log", int64_t{1});
  return attributes;
}

void stages(const Op& op, StageBuilder& b, bool log) {
  const Attributes axis = stage_attributes(op, false);
  const TensorType type = without_axis(b.graph(), op);
  const TensorId x = op.inputs[0];
  const TensorId max = b.temporary("max", type);
  const TensorId sum = b.temporary("sum", type);
  b.emit("max", "SoftmaxMax", axis, {x}, {max});
  b.emit("sum", "SoftmaxSum", axis, {x, max}, {sum});
  b.emit("out", "SoftmaxOut", stage_attributes(op, log), {x, max, sum}, {op.outputs[0]});
}
void softmax_stages(const Op& op, StageBuilder& b) { stages(op, b, false); }
void log_softmax_stages(const Op& op, StageBuilder& b) { stages(op, b, true); }

void grad_stages(const Op& op, StageBuilder& b, bool log) {
  const Attributes attributes = stage_attributes(op, log);
  const TensorId dot = b.temporary("dot", without_axis(b.graph(), op));
  b.emit("dot", "SoftmaxGradDot", attributes, {op.inputs[0], op.inputs[1]}, {dot});
  b.emit("out", "SoftmaxGradOut", attributes, {op.inputs[0], op.inputs[1], dot}, {op.outputs[0]});
}
void softmax_grad_stages(const Op& op, StageBuilder& b) { grad_stages(op, b, false); }
void log_softmax_grad_stages(const Op& op, StageBuilder& b) { grad_stages(op, b, true); }

/// An exponential counts as 10.
Work exponential_work(const Graph& g, const Op& op, const Cell& cell) {
  return {.flops = 12 * cells_volume(cell), .bytes = bytes_of(g, op, cell)};
}
Work linear_work(const Graph& g, const Op& op, const Cell& cell) {
  return {.flops = 3 * cells_volume(cell), .bytes = bytes_of(g, op, cell)};
}

OpDef fused_row(std::string_view type, void (*gradient)(const Op&, GradientBuilder&),
                void (*staged)(const Op&, StageBuilder&)) {
  return {.type = type,
          .family = "reduce",
          .infer = gradient != nullptr ? infer_softmax : infer_none,
          .space = whole_space,
          .gradient = gradient,
          .stage_dims = {"class"},
          .stages = staged,
          .work = exponential_work};
}

OpDef stage_row(std::string_view type, OpSpace (*space)(const Graph&, const Op&),
                Work (*work)(const Graph&, const Op&, const Cell&)) {
  return {
      .type = type, .family = "reduce", .infer = infer_none, .space = space, .stage_dims = {}, .work = work};
}

}  // namespace

std::span<const OpDef> softmax_ops() {
  static const OpDef kOps[] = {
      fused_row("Softmax", softmax_gradient, softmax_stages),
      fused_row("LogSoftmax", softmax_gradient, log_softmax_stages),
      fused_row("SoftmaxGrad", nullptr, softmax_grad_stages),
      fused_row("LogSoftmaxGrad", nullptr, log_softmax_grad_stages),
      stage_row("SoftmaxMax", max_space, linear_work),
      stage_row("SoftmaxSum", sum_space, exponential_work),
      stage_row("SoftmaxOut", whole_space, exponential_work),
      stage_row("SoftmaxGradDot", sum_space, linear_work),
      stage_row("SoftmaxGradOut", whole_space, exponential_work),
  };
  return kOps;
}

}  // namespace ff
