// Ops that pick or set slices by tuples of indices: the last axis of the indices is a place in the first axes
// of the data (behind the batch axes that both share, for GatherND).
//
//   GatherND(b0:S, i0:A, e0:P)  data [b0, :, :, e0], indices [b0, i0, :] -> [b0, i0, e0]     tuples of 2
//   GatherNDGrad                indices, dy [b0, i0, e0] -> ddata [b0, :, :, e0]            sums over i0
//   ScatterND(v:A, e0:P)        data [v, :, e0], indices [:, :], updates [:, e0] -> [v, :, e0]
//   ScatterNDGrad               indices [:, :], dy [v, :, e0] -> ddata [v, :, e0]           zero where it was
//   set
#include <algorithm>

#include "compiler/base/check.h"
#include "compiler/ops/families.h"
#include "compiler/ops/indices.h"
#include "compiler/ops/windows.h"

namespace ff {
namespace {

size_t batch_dims(const Op& op) { return static_cast<size_t>(op.attributes.integer("batch_dims", 0)); }

AxisMap add_dim(OpSpace& space, std::string name, Role role, int64_t extent) {
  space.dims.push_back({.name = std::move(name), .role = role, .extent = extent, .max_degree = extent});
  return AxisMap::identity(static_cast<int>(space.dims.size()) - 1);
}

OpSpace gather_space(const Graph& g, const Op& op) {
  const bool grad = op.type == "GatherNDGrad";
  const Shape& data = grad ? output_shape(g, op, 0) : input_shape(g, op, 0);
  const Shape& indices = input_shape(g, op, grad ? 0 : 1);
  const size_t batch = batch_dims(op), depth = static_cast<size_t>(indices.back());
  OpSpace space;
  AccessMap from, index, out;
  for (size_t d = 0; d + 1 < indices.size(); ++d) {
    const bool shared = d < batch;
    const AxisMap map = add_dim(space, (shared ? "b" : "i") + std::to_string(shared ? d : d - batch),
                                d == 0 ? Role::sample : Role::attribute, indices[d]);
    index.axes.push_back(map);
    out.axes.push_back(map);
    if (shared) from.axes.push_back(map);
  }
  index.axes.push_back(AxisMap::whole());
  from.axes.resize(batch + depth, AxisMap::whole());
  for (size_t d = batch + depth; d < data.size(); ++d) {
    const AxisMap map = add_dim(space, "e" + std::to_string(d - batch - depth), Role::parameter, data[d]);
    from.axes.push_back(map);
    out.axes.push_back(map);
  }
  space.inputs = grad ? std::vector{index, out} : std::vector{from, index};
  space.outputs = {grad ? from : out};
  return space;
}

OpSpace scatter_space(const Graph& g, const Op& op) {
  const bool grad = op.type == "ScatterNDGrad";
  const Shape& data = output_shape(g, op, 0);
  const Shape& indices = input_shape(g, op, grad ? 0 : 1);
  const auto depth = static_cast<size_t>(indices.back());
  OpSpace space;
  AccessMap whole, updates, index;
  index.axes.resize(indices.size(), AxisMap::whole());
  updates.axes.resize(indices.size() - 1, AxisMap::whole());
  whole.axes.resize(depth, AxisMap::whole());
  whole.axes[0] = add_dim(space, "v", Role::attribute, data[0]);
  for (size_t d = depth; d < data.size(); ++d) {
    whole.axes.push_back(add_dim(space, "e" + std::to_string(d - depth), Role::parameter, data[d]));
    updates.axes.push_back(whole.axes.back());
  }
  space.inputs = grad ? std::vector{index, whole} : std::vector{whole, index, updates};
  space.outputs = {whole};
  return space;
}

/// Checks the indices; the shape of what they pick.
Shape picked_shape(const Graph& g, const Op& op) {
  const Shape& data = input_shape(g, op, 0);
  const Shape& indices = input_shape(g, op, 1);
  const size_t batch = batch_dims(op);
  require_index_type(g.tensor(op.inputs[1]).dtype);
  const int64_t depth = indices.empty() ? 0 : indices.back();
  bool fits = depth >= 1 && batch < indices.size() && batch + static_cast<size_t>(depth) <= data.size();
  for (size_t d = 0; fits && d < batch; ++d) fits = data[d] == indices[d];
  if (!fits)
    throw UserError("indices of shape " + to_string(indices) + " do not fit data of shape " +
                    to_string(data) + " with " + std::to_string(batch) + " batch axes");
  Shape out(indices.begin(), indices.end() - 1);
  out.insert(out.end(), data.begin() + static_cast<int64_t>(batch) + depth, data.end());
  return out;
}

std::vector<TensorType> infer_gather(const Graph& g, const Op& op) {
  return {{picked_shape(g, op), g.tensor(op.inputs[0]).dtype}};
}

std::vector<TensorType> infer_scatter(const Graph& g, const Op& op) {
  const Shape expected = picked_shape(g, op);
  if (input_shape(g, op, 2) != expected)
    throw UserError("the updates have shape " + to_string(input_shape(g, op, 2)) + "; they must have " +
                    to_string(expected));
  return {{input_shape(g, op, 0), g.tensor(op.inputs[0]).dtype}};
}

/// The call knows where its part of the first axis begins and how long the whole is.
KernelCall nd_call(const Graph& g, const Op& op, const Cell& cell) {
  KernelCall call = default_call(g, op, cell);
  const bool grad = op.type.ends_with("Grad");
  const size_t data = grad ? op.inputs.size() : 0, indices = grad ? 0 : 1;
  const TensorId whole = grad ? op.outputs[0] : op.inputs[0];
  if (op.type.starts_with("Scatter")) {
    call.attributes.set("offset", cell.boxes[data][0].lo);
    call.attributes.set("limit", g.tensor(whole).shape[0]);
  }
  set_sample(call.attributes, g.tensor(op.inputs[indices]), cell.boxes[indices]);
  return call;
}

void gather_gradient(const Op& op, GradientBuilder& b) {
  const TensorId dx = b.input_gradient(op.inputs[0]);
  if (dx.valid())
    b.emit("grad", "GatherNDGrad", op.attributes, {op.inputs[1], b.output_gradient(op.outputs[0])}, {dx});
}

/// As ScatterElements'.
void scatter_gradient(const Op& op, GradientBuilder& b) {
  const std::string reduction = op.attributes.string("reduction", "none");
  const TensorId dy = b.output_gradient(op.outputs[0]);
  const TensorId dx = b.input_gradient(op.inputs[0]), du = b.input_gradient(op.inputs[2]);
  if (reduction != "none" && reduction != "add")
    throw UserError("node '" + op.name + "' (" + op.type + "): no gradient is known for reduction " +
                    reduction);
  if (dx.valid() && reduction == "add") b.emit("grad_data", "Identity", {}, {dy}, {dx});
  if (dx.valid() && reduction == "none") b.emit("grad_data", "ScatterNDGrad", {}, {op.inputs[1], dy}, {dx});
  if (du.valid()) b.emit("grad_updates", "GatherND", {}, {dy, op.inputs[1]}, {du});
}

OpDef row(std::string_view type, decltype(OpDef::infer) infer, decltype(OpDef::space) space,
          decltype(OpDef::gradient) gradient) {
  return {.type = type,
          .family = "copy",
          .infer = infer,
          .space = space,
          .gradient = gradient,
          .stage_dims = {},
          .kernel = nd_call};
}

}  // namespace

std::span<const OpDef> gather_nd_ops() {
  static const OpDef kOps[] = {
      row("GatherND", infer_gather, gather_space, gather_gradient),
      row("GatherNDGrad", nullptr, gather_space, nullptr),
      row("ScatterND", infer_scatter, scatter_space, scatter_gradient),
      row("ScatterNDGrad", nullptr, scatter_space, nullptr),
  };
  return kOps;
}

}  // namespace ff
