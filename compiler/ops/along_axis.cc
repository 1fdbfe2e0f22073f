// Ops that look at one axis whole: running sums, the places of the largest elements, one-hot vectors. The
// other axes d<k> are dimensions.
//
//   CumSum(d0:S)        x [d0, :] -> y [d0, :]                          axis 1
//   ArgMax(d0:S)        x [d0, :] -> i64 [d0] or [d0, :]
//   TopK(d0:S)          x [d0, :] -> values [d0, :], i64 indices [d0, :]
//   OneHot(d0:S, class:A)  indices [d0] -> [d0, class]
#include <algorithm>

#include "compiler/base/check.h"
#include "compiler/ops/families.h"
#include "compiler/ops/indices.h"
#include "compiler/ops/windows.h"

namespace ff {
namespace {

size_t axis_of(const Op& op) { return static_cast<size_t>(op.attributes.integer("axis")); }

/// All operands have the other axes; those of a rank less lack the op's own.
OpSpace whole_axis_space(const Graph& g, const Op& op) {
  const Shape& x = input_shape(g, op, 0);
  OpSpace space;
  AccessMap full;
  for (size_t d = 0; d < x.size(); ++d) {
    full.axes.push_back(AxisMap::whole());
    if (d == axis_of(op)) continue;
    full.axes.back() = AxisMap::identity(static_cast<int>(space.dims.size()));
    space.dims.push_back({.name = "d" + std::to_string(d),
                          .role = d == 0 ? Role::sample : Role::attribute,
                          .extent = x[d],
                          .max_degree = x[d]});
  }
  AccessMap less = full;
  less.axes.erase(less.axes.begin() + static_cast<int64_t>(axis_of(op)));
  space.inputs = {full};
  for (TensorId id : op.outputs) space.outputs.push_back(g.tensor(id).shape.size() < x.size() ? less : full);
  return space;
}

void check_axis(const Graph& g, const Op& op) {
  const Shape& x = input_shape(g, op, 0);
  if (axis_of(op) >= x.size())
    throw UserError("axis " + std::to_string(axis_of(op)) + " of a tensor of " + to_string(x));
}

std::vector<TensorType> infer_cumsum(const Graph& g, const Op& op) {
  check_axis(g, op);
  return {{input_shape(g, op, 0), g.tensor(op.inputs[0]).dtype}};
}

/// The gradient of a running sum is the sum of what comes after.
void cumsum_gradient(const Op& op, GradientBuilder& b) {
  const TensorId dx = b.input_gradient(op.inputs[0]);
  if (!dx.valid()) return;
  Attributes attributes = op.attributes;
  attributes.set("reverse", int64_t{1} - op.attributes.integer("reverse"));
  b.emit("grad", "CumSum", attributes, {b.output_gradient(op.outputs[0])}, {dx});
}

std::vector<TensorType> infer_arg(const Graph& g, const Op& op) {
  check_axis(g, op);
  Shape shape = input_shape(g, op, 0);
  if (op.attributes.integer("keepdims") != 0) {
    shape[axis_of(op)] = 1;
  } else {
    shape.erase(shape.begin() + static_cast<int64_t>(axis_of(op)));
  }
  return {{shape, DType::i64}};
}

std::vector<TensorType> infer_top_k(const Graph& g, const Op& op) {
  check_axis(g, op);
  Shape shape = input_shape(g, op, 0);
  const int64_t k = op.attributes.integer("k");
  if (k < 1 || k > shape[axis_of(op)])
    throw UserError("takes " + std::to_string(k) + " elements of an axis of " +
                    std::to_string(shape[axis_of(op)]));
  shape[axis_of(op)] = k;
  return {{shape, g.tensor(op.inputs[0]).dtype}, {shape, DType::i64}};
}

/// Each value's gradient goes to where it came from.
void top_k_gradient(const Op& op, GradientBuilder& b) {
  const TensorId dx = b.input_gradient(op.inputs[0]);
  const TensorId dy = b.output_gradient(op.outputs[0]);
  if (dx.valid() && dy.valid())
    b.emit("grad", "GatherElementsGrad", {{"axis", op.attributes.integer("axis")}}, {op.outputs[1], dy},
           {dx});
}

std::vector<TensorType> infer_one_hot(const Graph& g, const Op& op) {
  Shape shape = input_shape(g, op, 0);
  require_index_type(g.tensor(op.inputs[0]).dtype);
  if (axis_of(op) > shape.size())
    throw UserError("axis " + std::to_string(axis_of(op)) + " of one-hot vectors of indices of " +
                    to_string(shape));
  shape.insert(shape.begin() + static_cast<int64_t>(axis_of(op)), op.attributes.integer("depth"));
  return {{shape, static_cast<DType>(op.attributes.integer("dtype"))}};
}

OpSpace one_hot_space(const Graph& g, const Op& op) {
  const Shape& y = output_shape(g, op, 0);
  OpSpace space;
  AccessMap indices;
  for (size_t d = 0; d < y.size(); ++d) {
    const bool hot = d == axis_of(op);
    space.dims.push_back({.name = hot ? "class" : "d" + std::to_string(d),
                          .role = d == 0 && !hot ? Role::sample : Role::attribute,
                          .extent = y[d],
                          .max_degree = y[d]});
    if (!hot) indices.axes.push_back(AxisMap::identity(static_cast<int>(d)));
  }
  space.inputs = {indices};
  space.outputs = {identity_map(y.size())};
  return space;
}

KernelCall one_hot_call(const Graph& g, const Op& op, const Cell& cell) {
  KernelCall call = default_call(g, op, cell);
  call.attributes.set("offset", cell.boxes[1][static_cast<int>(axis_of(op))].lo);
  return call;
}

Work axis_work(const Graph& g, const Op& op, const Cell& cell) {
  return {.flops = 2 * static_cast<double>(cell.boxes[0].volume()), .bytes = bytes_of(g, op, cell)};
}

OpDef row(std::string_view type, decltype(OpDef::infer) infer, decltype(OpDef::gradient) gradient) {
  return {.type = type,
          .family = "reduce",
          .infer = infer,
          .space = whole_axis_space,
          .gradient = gradient,
          .stage_dims = {},
          .work = axis_work};
}

}  // namespace

std::span<const OpDef> along_axis_ops() {
  static const OpDef kOps[] = {
      row("CumSum", infer_cumsum, cumsum_gradient),
      row("ArgMax", infer_arg, nullptr),
      row("ArgMin", infer_arg, nullptr),
      row("TopK", infer_top_k, top_k_gradient),
      {.type = "OneHot",
       .family = "copy",
       .infer = infer_one_hot,
       .space = one_hot_space,
       .stage_dims = {},
       .kernel = one_hot_call},
  };
  return kOps;
}

}  // namespace ff
