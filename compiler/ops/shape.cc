// Ops that only move elements. All of a cell's moves are one box with steps from one dense buffer to another
// (kernel CopyBox), a transposition, a reshape, or a concatenation.

#include <algorithm>
#include <numeric>

#include "compiler/base/check.h"
#include "compiler/ops/families.h"

namespace ff {
namespace {

const Shape& shape_of(const Graph& graph, TensorId id) { return graph.tensor(id).shape; }

OpSpace dims_over(const Shape& shape) {
  OpSpace out;
  for (size_t d = 0; d < shape.size(); ++d) {
    out.dims.push_back(
        {"d" + std::to_string(d), d == 0 ? Role::sample : Role::attribute, shape[d], shape[d]});
  }
  return out;
}

AccessMap identity_map(size_t rank) {
  AccessMap map;
  for (size_t d = 0; d < rank; ++d) map.axes.push_back(AxisMap::identity(static_cast<int>(d)));
  return map;
}

// Reshape. Both shapes are cut into minimal groups of equal product; a group has one dimension, as long as
// both its leading axes can be cut alike, mapped to blocks of them; its other axes are whole.

/// The leading axis of each side of a group (-1: the side has only axes of extent 1 there) and the size of
/// its dimension.
struct Group {
  int in = -1;
  int out = -1;
  int64_t extent = 1;
};

std::vector<Group> groups_of(const Shape& in, const Shape& out) {
  std::vector<Group> groups;
  size_t i = 0;
  size_t o = 0;
  while (i < in.size() || o < out.size()) {
    // Axes of extent 1 belong to no group.
    if (i < in.size() && in[i] == 1) {
      ++i;
      continue;
    }
    if (o < out.size() && out[o] == 1) {
      ++o;
      continue;
    }
    FF_CHECK(i < in.size() && o < out.size()) << to_string(in) << " to " << to_string(out);
    Group group{static_cast<int>(i), static_cast<int>(o), std::gcd(in[i], out[o])};
    int64_t a = in[i++];
    int64_t b = out[o++];
    while (a != b) {
      if (a < b) {
        a *= in.at(i++);
      } else {
        b *= out.at(o++);
      }
    }
    groups.push_back(group);
  }
  return groups;
}

AccessMap grouped_map(const Shape& shape, const std::vector<Group>& groups, int Group::*axis) {
  AccessMap map;
  map.axes.assign(shape.size(), AxisMap::whole());
  for (size_t g = 0; g < groups.size(); ++g) {
    const auto at = static_cast<size_t>(groups[g].*axis);
    map.axes[at] = AxisMap::blocks(static_cast<int>(g), shape[at] / groups[g].extent);
  }
  return map;
}

OpSpace reshape_space(const Graph& graph, const Op& op) {
  const Shape& in = shape_of(graph, op.inputs[0]);
  const Shape& out = shape_of(graph, op.outputs[0]);
  const auto groups = groups_of(in, out);
  OpSpace space;
  for (size_t g = 0; g < groups.size(); ++g) {
    space.dims.push_back({"g" + std::to_string(g), g == 0 ? Role::sample : Role::attribute, groups[g].extent,
                          groups[g].extent});
  }
  space.inputs.push_back(grouped_map(in, groups, &Group::in));
  space.outputs.push_back(grouped_map(out, groups, &Group::out));
  return space;
}

std::vector<TensorType> infer_reshape(const Graph& graph, const Op& op) {
  const Tensor& x = graph.tensor(op.inputs.at(0));
  const Shape& to = op.attributes.ints("shape");
  if (volume(to) != volume(x.shape))
    throw UserError("cannot reshape " + to_string(x.shape) + " to " + to_string(to));
  return {{to, x.dtype}};
}

KernelCall reshape_call(const Graph& graph, const Op& op, const Cell& cell) {
  KernelCall call = default_call(graph, op, cell);
  call.attributes = {};
  return call;
}

void reshape_gradient(const Op& op, GradientBuilder& out) {
  const TensorId dx = out.input_gradient(op.inputs[0]);
  if (!dx.valid()) return;
  out.emit("grad", "Reshape", {{"shape", out.graph().tensor(dx).shape}}, {out.output_gradient(op.outputs[0])},
           {dx});
}

// Transpose: dimension d<i> is axis i of the result and axis perm[i] of the operand. The gradient keeps the
// names.

OpSpace transpose_space(const Graph& graph, const Op& op) {
  const bool grad = op.type == "TransposeGrad";
  const Shape& full = shape_of(graph, grad ? op.inputs[0] : op.outputs[0]);
  const Ints& perm = op.attributes.ints("perm");
  OpSpace space = dims_over(full);
  AccessMap moved;
  moved.axes.resize(full.size());
  for (size_t i = 0; i < full.size(); ++i)
    moved.axes[static_cast<size_t>(perm[i])] = AxisMap::identity(static_cast<int>(i));
  space.inputs.push_back(grad ? identity_map(full.size()) : moved);
  space.outputs.push_back(grad ? moved : identity_map(full.size()));
  return space;
}

std::vector<TensorType> infer_transpose(const Graph& graph, const Op& op) {
  const Tensor& x = graph.tensor(op.inputs.at(0));
  const Ints& perm = op.attributes.ints("perm");
  if (perm.size() != x.shape.size())
    throw UserError("perm has " + std::to_string(perm.size()) + " axes, the tensor " + to_string(x.shape));
  Shape out;
  for (int64_t p : perm) out.push_back(x.shape.at(static_cast<size_t>(p)));
  return {{out, x.dtype}};
}

void transpose_gradient(const Op& op, GradientBuilder& out) {
  const TensorId dx = out.input_gradient(op.inputs[0]);
  if (dx.valid())
    out.emit("grad", "TransposeGrad", op.attributes, {out.output_gradient(op.outputs[0])}, {dx});
}

KernelCall transpose_call(const Graph& graph, const Op& op, const Cell& cell) {
  KernelCall call = default_call(graph, op, cell);
  call.kernel = "Transpose";
  if (op.type != "TransposeGrad") return call;
  const Ints& perm = op.attributes.ints("perm");
  Ints inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  call.attributes.set("perm", inverse);
  return call;
}

// Ops of one big operand and one that is a part of it, `starts` and `steps` apart: Pad, Slice, ConcatGrad and
// their gradients. Dimensions are those of the forward op's result.

/// Axis map from the dimensions of the result to a tensor whose element i stands at (i - start) / step of it.
AccessMap placed(const Ints& starts, const Ints& steps) {
  AccessMap map;
  for (size_t d = 0; d < starts.size(); ++d) {
    map.axes.push_back({.dim = static_cast<int>(d), .stride = steps[d], .offset = starts[d], .span = 1});
  }
  return map;
}

Ints starts_of(const Op& op, size_t rank) {
  if (op.type == "Slice" || op.type == "SliceGrad") return op.attributes.ints("starts");
  Ints out(rank, 0);
  if (op.type == "ConcatGrad") {
    out[static_cast<size_t>(op.attributes.integer("axis"))] = -op.attributes.integer("offset");
  } else {
    const Ints& pads = op.attributes.ints("pads");
    for (size_t d = 0; d < rank; ++d) out[d] = -pads[d];
  }
  return out;
}

Ints steps_of(const Op& op, size_t rank) { return op.attributes.ints("steps", Ints(rank, 1)); }

bool is_grad(const Op& op) { return op.type.ends_with("Grad"); }

OpSpace placed_space(const Graph& graph, const Op& op) {
  const Shape& result = shape_of(graph, is_grad(op) ? op.inputs[0] : op.outputs[0]);
  OpSpace space = dims_over(result);
  const AccessMap other = placed(starts_of(op, result.size()), steps_of(op, result.size()));
  space.inputs.push_back(is_grad(op) ? identity_map(result.size()) : other);
  space.outputs.push_back(is_grad(op) ? other : identity_map(result.size()));
  return space;
}

/// Moves element r of the result to or from element r * step + start of the operand.
KernelCall placed_call(const Graph& graph, const Op& op, const Cell& cell) {
  KernelCall call = default_call(graph, op, cell);
  call.kernel = "CopyBox";
  const auto rank = static_cast<size_t>(cell.boxes[0].rank());
  const Ints starts = starts_of(op, rank);
  const Ints steps = steps_of(op, rank);
  const Box& result = cell.boxes[is_grad(op) ? 0 : 1];
  const Box& operand = cell.boxes[is_grad(op) ? 1 : 0];
  Ints result_lo;
  Ints operand_lo;
  Ints extent;
  for (size_t d = 0; d < rank; ++d) {
    const auto axis = static_cast<int>(d);
    // The elements of the result that have a counterpart in the operand's box.
    int64_t lo = result[axis].lo;
    int64_t hi = result[axis].hi;
    while (lo < hi && lo * steps[d] + starts[d] < operand[axis].lo) ++lo;
    while (hi > lo && (hi - 1) * steps[d] + starts[d] >= operand[axis].hi) --hi;
    result_lo.push_back(lo - result[axis].lo);
    operand_lo.push_back(lo * steps[d] + starts[d] - operand[axis].lo);
    extent.push_back(hi - lo);
  }
  const Ints ones(rank, 1);
  const double fill = op.attributes.real("value", 0.0);
  call.attributes = {{"extent", extent},
                     {"src_lo", is_grad(op) ? result_lo : operand_lo},
                     {"dst_lo", is_grad(op) ? operand_lo : result_lo},
                     {"src_step", is_grad(op) ? ones : steps},
                     {"dst_step", is_grad(op) ? steps : ones},
                     {"fill", fill}};
  return call;
}

std::vector<TensorType> infer_pad(const Graph& graph, const Op& op) {
  const Tensor& x = graph.tensor(op.inputs.at(0));
  const Ints& pads = op.attributes.ints("pads");
  Shape out = x.shape;
  for (size_t d = 0; d < out.size(); ++d) out[d] += pads.at(d) + pads.at(out.size() + d);
  for (int64_t extent : out) {
    if (extent <= 0) throw UserError("padding of " + to_string(x.shape) + " leaves nothing");
  }
  return {{out, x.dtype}};
}

std::vector<TensorType> infer_slice(const Graph& graph, const Op& op) {
  const Tensor& x = graph.tensor(op.inputs.at(0));
  const Ints& starts = op.attributes.ints("starts");
  const Ints& ends = op.attributes.ints("ends");
  const Ints& steps = op.attributes.ints("steps");
  Shape out;
  for (size_t d = 0; d < x.shape.size(); ++d)
    out.push_back(std::max<int64_t>(0, (ends.at(d) - starts.at(d) + steps.at(d) - 1) / steps.at(d)));
  if (volume(out) == 0) throw UserError("slice of " + to_string(x.shape) + " leaves nothing");
  return {{out, x.dtype}};
}

void placed_gradient(const Op& op, GradientBuilder& out) {
  const TensorId dx = out.input_gradient(op.inputs[0]);
  if (!dx.valid()) return;
  Attributes attributes = op.attributes;
  attributes.erase("value");
  out.emit("grad", op.type + "Grad", attributes, {out.output_gradient(op.outputs[0])}, {dx});
}

// Concat: each operand stands `offset` further along the axis.

OpSpace concat_space(const Graph& graph, const Op& op) {
  const Shape& full = shape_of(graph, op.outputs[0]);
  const auto axis = static_cast<size_t>(op.attributes.integer("axis"));
  OpSpace space = dims_over(full);
  int64_t offset = 0;
  for (TensorId id : op.inputs) {
    AccessMap map = identity_map(full.size());
    map.axes[axis].offset = -offset;
    offset += shape_of(graph, id)[axis];
    space.inputs.push_back(map);
  }
  space.outputs.push_back(identity_map(full.size()));
  return space;
}

std::vector<TensorType> infer_concat(const Graph& graph, const Op& op) {
  const Tensor& first = graph.tensor(op.inputs.at(0));
  const auto axis = static_cast<size_t>(op.attributes.integer("axis"));
  Shape out = first.shape;
  for (size_t i = 1; i < op.inputs.size(); ++i) {
    const Shape& shape = shape_of(graph, op.inputs[i]);
    bool fits = shape.size() == out.size();
    for (size_t d = 0; fits && d < out.size(); ++d) fits = d == axis || shape[d] == out[d];
    if (!fits)
      throw UserError("shapes " + to_string(first.shape) + " and " + to_string(shape) +
                      " cannot be concatenated on axis " + std::to_string(axis));
    out[axis] += shape[axis];
  }
  return {{out, first.dtype}};
}

/// `offsets`: where each operand begins in this cell's result, along the axis.
KernelCall concat_call(const Graph& graph, const Op& op, const Cell& cell) {
  KernelCall call = default_call(graph, op, cell);
  const auto axis = static_cast<size_t>(op.attributes.integer("axis"));
  Ints offsets;
  int64_t offset = 0;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    offsets.push_back(std::max<int64_t>(0, offset - cell.boxes.back()[static_cast<int>(axis)].lo));
    offset += shape_of(graph, op.inputs[i])[axis];
  }
  call.attributes.set("offsets", offsets);
  return call;
}

void concat_gradient(const Op& op, GradientBuilder& out) {
  const auto axis = op.attributes.integer("axis");
  int64_t offset = 0;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const TensorId dx = out.input_gradient(op.inputs[i]);
    if (dx.valid()) {
      out.emit("grad_" + std::to_string(i), "ConcatGrad", {{"axis", axis}, {"offset", offset}},
               {out.output_gradient(op.outputs[0])}, {dx});
    }
    offset += out.graph().tensor(op.inputs[i]).shape[static_cast<size_t>(axis)];
  }
}

OpDef row(std::string_view type, decltype(OpDef::infer) infer, decltype(OpDef::space) space,
          decltype(OpDef::gradient) gradient, decltype(OpDef::kernel) kernel) {
  OpDef def;
  def.type = type;
  def.family = "copy";
  def.infer = infer;
  def.space = space;
  def.gradient = gradient;
  def.kernel = kernel;
  return def;
}

}  // namespace

std::span<const OpDef> shape_ops() {
  static const std::vector<OpDef> rows{
      row("Reshape", infer_reshape, reshape_space, reshape_gradient, reshape_call),
      row("Transpose", infer_transpose, transpose_space, transpose_gradient, transpose_call),
      row("TransposeGrad", nullptr, transpose_space, nullptr, transpose_call),
      row("Pad", infer_pad, placed_space, placed_gradient, placed_call),
      row("PadGrad", nullptr, placed_space, nullptr, placed_call),
      row("Slice", infer_slice, placed_space, placed_gradient, placed_call),
      row("SliceGrad", nullptr, placed_space, nullptr, placed_call),
      row("Concat", infer_concat, concat_space, concat_gradient, concat_call),
      row("ConcatGrad", nullptr, placed_space, nullptr, placed_call),
  };
  return rows;
}

}  // namespace ff
