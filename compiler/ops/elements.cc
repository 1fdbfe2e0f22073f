// Ops that pick or set single elements along one axis, by indices of the data's rank. Dimensions are the axes
// d<k> of the others, `i` along the axis of the indices and `v` along that of the data:
//
//   GatherElements(d0:S, i:A, v:C)  data [d0, v], indices [d0, i] -> [d0, i]        axis 1
//   GatherElementsGrad              indices [d0, i], dy [d0, i] -> ddata [d0, v]    sums over i
//   ScatterElements(d0:S, v:A)      data [d0, v], indices [d0, :], updates [d0, :] -> [d0, v]
//   ScatterElementsGrad             indices [d0, :], dy [d0, v] -> ddata [d0, v]    zero where it was set
//
// A cell that has part of `v` gathers zeros for indices of other parts, and scatters none of them. Indices
// may be shorter than the data along the other axes: they belong to its first part.
#include <algorithm>

#include "compiler/base/check.h"
#include "compiler/ops/families.h"
#include "compiler/ops/indices.h"
#include "compiler/ops/windows.h"

namespace ff {
namespace {

size_t axis_of(const Op& op) { return static_cast<size_t>(op.attributes.integer("axis")); }

/// A map of the other axes to their dimensions, of the op's axis to `along` (-1: whole).
AccessMap map_along(const OpSpace& space, size_t rank, size_t axis, int along) {
  AccessMap map;
  for (size_t d = 0; d < rank; ++d) {
    const int dim = d == axis ? along : space.dim_index("d" + std::to_string(d));
    map.axes.push_back(dim < 0 ? AxisMap::whole() : AxisMap::identity(dim));
  }
  return map;
}

/// The dimensions of the axes of `shape` but the op's.
OpSpace other_axes(const Shape& shape, size_t axis) {
  OpSpace space;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d == axis) continue;
    space.dims.push_back({.name = "d" + std::to_string(d),
                          .role = d == 0 ? Role::sample : Role::attribute,
                          .extent = shape[d],
                          .max_degree = shape[d]});
  }
  return space;
}

int add_dim(OpSpace& space, std::string name, Role role, int64_t extent, bool split) {
  space.dims.push_back(
      {.name = std::move(name), .role = role, .extent = extent, .max_degree = split ? extent : 1});
  return static_cast<int>(space.dims.size()) - 1;
}

OpSpace gather_space(const Graph& g, const Op& op) {
  const bool grad = op.type == "GatherElementsGrad";
  const TensorId data = grad ? op.outputs[0] : op.inputs[0];
  const Shape& indices = input_shape(g, op, grad ? 0 : 1);
  const size_t axis = axis_of(op), rank = indices.size();
  OpSpace space = other_axes(indices, axis);
  const int i = add_dim(space, "i", Role::attribute, indices[axis], true);
  const int v =
      add_dim(space, "v", Role::contracted, g.tensor(data).shape[axis], is_float(g.tensor(data).dtype));
  const AccessMap at_i = map_along(space, rank, axis, i), at_v = map_along(space, rank, axis, v);
  space.inputs = grad ? std::vector{at_i, at_i} : std::vector{at_v, at_i};
  space.outputs = {grad ? at_v : at_i};
  return space;
}

OpSpace scatter_space(const Graph& g, const Op& op) {
  const Shape& data = output_shape(g, op, 0);
  const size_t axis = axis_of(op), rank = data.size();
  OpSpace space = other_axes(data, axis);
  const int v = add_dim(space, "v", Role::attribute, data[axis], true);
  const AccessMap whole = map_along(space, rank, axis, -1), at_v = map_along(space, rank, axis, v);
  space.inputs = op.type == "ScatterElements" ? std::vector{at_v, whole, whole} : std::vector{whole, at_v};
  space.outputs = {at_v};
  return space;
}

void check_indices(const Graph& g, const Op& op) {
  const Shape& data = input_shape(g, op, 0);
  const Shape& indices = input_shape(g, op, 1);
  require_index_type(g.tensor(op.inputs[1]).dtype);
  bool fits = indices.size() == data.size() && axis_of(op) < data.size();
  for (size_t d = 0; fits && d < data.size(); ++d) fits = d == axis_of(op) || indices[d] <= data[d];
  if (!fits)
    throw UserError("the indices have shape " + to_string(indices) + "; data of " + to_string(data) +
                    " takes as many axes, none longer but axis " + std::to_string(axis_of(op)));
}

std::vector<TensorType> infer_gather(const Graph& g, const Op& op) {
  check_indices(g, op);
  return {{input_shape(g, op, 1), g.tensor(op.inputs[0]).dtype}};
}

std::vector<TensorType> infer_scatter(const Graph& g, const Op& op) {
  check_indices(g, op);
  if (input_shape(g, op, 2) != input_shape(g, op, 1))
    throw UserError("the updates have shape " + to_string(input_shape(g, op, 2)) + ", the indices " +
                    to_string(input_shape(g, op, 1)));
  return {{input_shape(g, op, 0), g.tensor(op.inputs[0]).dtype}};
}

/// The call knows where its part of the data begins and how long the whole axis is.
KernelCall elements_call(const Graph& g, const Op& op, const Cell& cell) {
  KernelCall call = default_call(g, op, cell);
  const bool grad = op.type.ends_with("Grad");
  const size_t data = grad ? op.inputs.size() : 0, indices = grad ? 0 : 1;
  const TensorId whole = grad ? op.outputs[0] : op.inputs[0];
  const auto axis = static_cast<int>(axis_of(op));
  call.attributes.set("offset", cell.boxes[data][axis].lo);
  call.attributes.set("limit", g.tensor(whole).shape[axis_of(op)]);
  set_sample(call.attributes, g.tensor(op.inputs[indices]), cell.boxes[indices]);
  return call;
}

Attributes only_axis(const Op& op) { return {{"axis", op.attributes.integer("axis")}}; }

void gather_gradient(const Op& op, GradientBuilder& b) {
  const TensorId dx = b.input_gradient(op.inputs[0]);
  if (dx.valid())
    b.emit("grad", "GatherElementsGrad", only_axis(op), {op.inputs[1], b.output_gradient(op.outputs[0])},
           {dx});
}

/// Of several updates of one element without a sum the last counts; its gradient is given to all of them, as
/// PyTorch's is.
void scatter_gradient(const Op& op, GradientBuilder& b) {
  const std::string reduction = op.attributes.string("reduction", "none");
  const TensorId dy = b.output_gradient(op.outputs[0]);
  const TensorId dx = b.input_gradient(op.inputs[0]), du = b.input_gradient(op.inputs[2]);
  if (reduction != "none" && reduction != "add")
    throw UserError("node '" + op.name + "' (" + op.type + "): no gradient is known for reduction " +
                    reduction);
  if (dx.valid() && reduction == "add") b.emit("grad_data", "Identity", {}, {dy}, {dx});
  if (dx.valid() && reduction == "none")
    b.emit("grad_data", "ScatterElementsGrad", only_axis(op), {op.inputs[1], dy}, {dx});
  if (du.valid()) b.emit("grad_updates", "GatherElements", only_axis(op), {dy, op.inputs[1]}, {du});
}

OpDef row(std::string_view type, decltype(OpDef::infer) infer, decltype(OpDef::space) space,
          decltype(OpDef::gradient) gradient) {
  return {.type = type,
          .family = "copy",
          .infer = infer,
          .space = space,
          .gradient = gradient,
          .stage_dims = {},
          .kernel = elements_call};
}

}  // namespace

std::span<const OpDef> element_ops() {
  static const OpDef kOps[] = {
      row("GatherElements", infer_gather, gather_space, gather_gradient),
      row("GatherElementsGrad", nullptr, gather_space, nullptr),
      row("ScatterElements", infer_scatter, scatter_space, scatter_gradient),
      row("ScatterElementsGrad", nullptr, scatter_space, nullptr),
  };
  return kOps;
}

}  // namespace ff
