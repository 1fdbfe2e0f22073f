// Ops whose dimensions are the axes of the result: Expand (broadcasting alone) and Trilu (a triangle, the
// rest zero).
//
//   Expand(d0:S, d1:A) x [d0, :] -> y [d0, d1]       x of 32x1 to 32x8; dx is the sum of dy over d1
//   Trilu(d0:S, d1:A, d2:A) x [d0, d1, d2] -> y [d0, d1, d2]
#include <algorithm>

#include "compiler/base/check.h"
#include "compiler/ops/families.h"
#include "compiler/ops/windows.h"

namespace ff {
namespace {

OpSpace result_space(const Graph& g, const Op& op) {
  const Shape& y = output_shape(g, op, 0);
  const Shape& x = input_shape(g, op, 0);
  OpSpace space;
  for (size_t d = 0; d < y.size(); ++d) {
    space.dims.push_back({.name = "d" + std::to_string(d),
                          .role = d == 0 ? Role::sample : Role::attribute,
                          .extent = y[d],
                          .max_degree = y[d]});
  }
  AccessMap map;
  for (size_t axis = 0; axis < x.size(); ++axis) {
    const size_t d = axis + y.size() - x.size();
    map.axes.push_back(x[axis] == y[d] ? AxisMap::identity(static_cast<int>(d)) : AxisMap::whole());
  }
  space.inputs = {map};
  space.outputs = {identity_map(y.size())};
  return space;
}

std::vector<TensorType> infer_expand(const Graph& g, const Op& op) {
  const Shape& x = input_shape(g, op, 0);
  const Shape y = op.attributes.ints("shape");
  bool fits = x.size() <= y.size();
  for (size_t back = 1; fits && back <= x.size(); ++back)
    fits = x[x.size() - back] == 1 || x[x.size() - back] == y[y.size() - back];
  if (!fits) throw UserError("a tensor of " + to_string(x) + " cannot be expanded to " + to_string(y));
  return {{y, g.tensor(op.inputs[0]).dtype}};
}

KernelCall expand_call(const Graph& g, const Op& op, const Cell& cell) {
  return call_of(g, op, cell, "Expand");
}

void expand_gradient(const Op& op, GradientBuilder& b) {
  const TensorId dx = b.input_gradient(op.inputs[0]);
  if (dx.valid()) b.emit("grad", "ReduceSum", {{"scale", 1.0}}, {b.output_gradient(op.outputs[0])}, {dx});
}

std::vector<TensorType> infer_trilu(const Graph& g, const Op& op) {
  const Tensor& x = g.tensor(op.inputs.at(0));
  if (x.shape.size() < 2)
    throw UserError("the input has shape " + to_string(x.shape) + "; a triangle has two axes at least");
  return {{x.shape, x.dtype}};
}

/// `k` of the cell: its rows and columns are not the first ones.
KernelCall trilu_call(const Graph& g, const Op& op, const Cell& cell) {
  KernelCall call = call_of(g, op, cell, "Trilu");
  const Box& box = cell.boxes.back();
  const int rank = box.rank();
  call.attributes.set("upper", op.attributes.integer("upper"));
  call.attributes.set("k", op.attributes.integer("k") + box[rank - 2].lo - box[rank - 1].lo);
  return call;
}

/// What was set to zero has no gradient.
void trilu_gradient(const Op& op, GradientBuilder& b) {
  const TensorId dx = b.input_gradient(op.inputs[0]);
  if (dx.valid()) b.emit("grad", "Trilu", op.attributes, {b.output_gradient(op.outputs[0])}, {dx});
}

}  // namespace

std::span<const OpDef> expand_ops() {
  static const OpDef kOps[] = {
      {.type = "Expand",
       .family = "copy",
       .infer = infer_expand,
       .space = result_space,
       .gradient = expand_gradient,
       .stage_dims = {},
       .kernel = expand_call},
      {.type = "Trilu",
       .family = "copy",
       .infer = infer_trilu,
       .space = result_space,
       .gradient = trilu_gradient,
       .stage_dims = {},
       .kernel = trilu_call},
  };
  return kOps;
}

}  // namespace ff
