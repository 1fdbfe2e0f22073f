// Gather: slices of a tensor along one axis, picked by integer indices of any shape; an embedding is rows of
// a weight picked by the tokens of a batch.
//
//   Gather(v:C, e0:P, i0:S, i1:A) data [v, e0], indices [i0, i1] -> [i0, i1, e0]
//   GatherGrad                    indices [i0, i1], dy [i0, i1, e0] -> ddata [v, e0]
//
// A cell that has part of `v` (the vocabulary) writes zeros for indices of other parts: the cells of all
// parts add up. Integers are not added, so their `v` is whole. The gradient of an entry is the sum over the
// places that picked it. Axes of the data before the gathered one are o0, o1, ..., those behind it e0, e1,
// ...
#include <algorithm>

#include "compiler/base/check.h"
#include "compiler/ops/families.h"
#include "compiler/ops/indices.h"
#include "compiler/ops/windows.h"

namespace ff {
namespace {

struct Operands {
  const Shape& data;
  TensorId indices;
  bool sums;  // float data
};

Operands operands_of(const Graph& g, const Op& op) {
  if (op.type == "Gather")
    return {input_shape(g, op, 0), op.inputs[1], is_float(g.tensor(op.inputs[0]).dtype)};
  return {output_shape(g, op, 0), op.inputs[0], true};
}

OpSpace gather_space(const Graph& g, const Op& op) {
  const Operands x = operands_of(g, op);
  const Shape& indices = g.tensor(x.indices).shape;
  const auto axis = static_cast<size_t>(op.attributes.integer("axis"));
  OpSpace space;
  AccessMap data, picked, index;
  const auto add = [&](std::string name, Role role, int64_t extent, bool split = true) {
    space.dims.push_back(
        {.name = std::move(name), .role = role, .extent = extent, .max_degree = split ? extent : 1});
    return AxisMap::identity(static_cast<int>(space.dims.size()) - 1);
  };
  for (size_t d = 0; d < axis; ++d) {
    data.axes.push_back(add("o" + std::to_string(d), Role::attribute, x.data[d]));
    picked.axes.push_back(data.axes.back());
  }
  data.axes.push_back(add("v", Role::contracted, x.data[axis], x.sums));
  for (size_t d = 0; d < indices.size(); ++d) {
    index.axes.push_back(add("i" + std::to_string(d), d == 0 ? Role::sample : Role::attribute, indices[d]));
    picked.axes.push_back(index.axes.back());
  }
  for (size_t d = axis + 1; d < x.data.size(); ++d) {
    data.axes.push_back(add("e" + std::to_string(d - axis - 1), Role::parameter, x.data[d]));
    picked.axes.push_back(data.axes.back());
  }
  if (op.type == "Gather") {
    space.inputs = {data, index};
    space.outputs = {picked};
  } else {
    space.inputs = {index, picked};
    space.outputs = {data};
  }
  return space;
}

std::vector<TensorType> infer_gather(const Graph& g, const Op& op) {
  const Shape& data = input_shape(g, op, 0);
  const Shape& indices = input_shape(g, op, 1);
  require_index_type(g.tensor(op.inputs[1]).dtype);
  const int64_t axis = op.attributes.integer("axis");
  if (axis < 0 || axis >= static_cast<int64_t>(data.size()))
    throw UserError("axis " + std::to_string(axis) + " is no axis of the data of shape " + to_string(data));
  Shape out(data.begin(), data.begin() + axis);
  out.insert(out.end(), indices.begin(), indices.end());
  out.insert(out.end(), data.begin() + axis + 1, data.end());
  return {{out, g.tensor(op.inputs[0]).dtype}};
}

KernelCall gather_call(const Graph& g, const Op& op, const Cell& cell) {
  KernelCall call = default_call(g, op, cell);
  const Operands x = operands_of(g, op);
  const auto axis = static_cast<int>(op.attributes.integer("axis"));
  const size_t data = op.type == "Gather" ? 0 : 2;
  call.attributes.set("offset", cell.boxes[data][axis].lo);
  call.attributes.set("limit", x.data[static_cast<size_t>(axis)]);
  set_sample(call.attributes, g.tensor(x.indices), cell.boxes[op.type == "Gather" ? 1 : 0]);
  return call;
}

void gather_gradient(const Op& op, GradientBuilder& b) {
  const TensorId dx = b.input_gradient(op.inputs[0]);
  if (dx.valid())
    b.emit("grad", "GatherGrad", op.attributes, {op.inputs[1], b.output_gradient(op.outputs[0])}, {dx});
}

/// What is picked is read and written; of the rest of the table only zeros are.
Work gather_work(const Graph& g, const Op& op, const Cell& cell) {
  const bool grad = op.type == "GatherGrad";
  const double picked = static_cast<double>(cell.boxes[grad ? 1 : 2].volume());
  const auto element = static_cast<double>(size_of(g.tensor(op.outputs[0]).dtype));
  double bytes = 2 * picked * element;
  bytes += static_cast<double>(cell.boxes[grad ? 0 : 1].volume() *
                               size_of(g.tensor(op.inputs[grad ? 0 : 1]).dtype));
  if (grad) bytes += static_cast<double>(cell.boxes[2].volume()) * element;
  return {.flops = grad ? picked : 0, .bytes = bytes};
}

}  // namespace

std::span<const OpDef> gather_ops() {
  static const OpDef kOps[] = {
      {.type = "Gather",
       .family = "copy",
       .infer = infer_gather,
       .space = gather_space,
       .gradient = gather_gradient,
       .stage_dims = {},
       .work = gather_work,
       .kernel = gather_call},
      {.type = "GatherGrad",
       .family = "copy",
       .space = gather_space,
       .stage_dims = {},
       .work = gather_work,
       .kernel = gather_call},
  };
  return kOps;
}

}  // namespace ff
