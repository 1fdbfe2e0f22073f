// Resizing of images by interpolation, and its gradient. Which elements an element is made of is
// compiler/plan/resize_axis.h's.
//
//   Resize(n:S, c:P, h:A) [n, c, h, :] -> [n, c, 2h+2, :]      to twice the rows, by the nearest; columns
//   else ResizeGrad            [n, c, 2h+2, :] -> [n, c, h, :]
//
// An axis whose every element is repeated as often as the others, or that stays as it is, is a dimension;
// others are whole.
#include "compiler/plan/resize_axis.h"

#include "compiler/base/check.h"
#include "compiler/ops/families.h"
#include "compiler/ops/windows.h"

namespace ff {
namespace {

/// How often every element of the axis is repeated; 0: it is not that simple.
int64_t repeats(const Op& op, size_t axis, int64_t from, int64_t to) {
  if (to % from != 0) return 0;
  const int64_t factor = to / from;
  const ResizeAxis map(op.attributes, axis, from);
  for (int64_t o = 0; o < to; ++o) {
    for (const ResizeTap& tap : map.taps(o)) {
      if (tap.weight != 0 && (tap.element != o / factor || tap.weight != 1)) return 0;
    }
  }
  return factor;
}

Ints factors_of(const Op& op, const Shape& x, const Shape& y) {
  Ints out;
  for (size_t a = 2; a < x.size(); ++a) out.push_back(repeats(op, a - 2, x[a], y[a]));
  return out;
}

std::vector<TensorType> infer(const Graph& g, const Op& op) {
  const Shape& x = input_shape(g, op, 0);
  require_image(x, "the input");
  const Ints& sizes = op.attributes.ints("sizes");
  if (sizes.size() + 2 != x.size())
    throw UserError("has " + std::to_string(sizes.size()) + " sizes where the input has shape " +
                    to_string(x));
  Shape y{x[0], x[1]};
  for (int64_t size : sizes) {
    if (size < 1) throw UserError("resizing of " + to_string(x) + " leaves nothing");
    y.push_back(size);
  }
  return {{y, g.tensor(op.inputs[0]).dtype}};
}

OpSpace space_over(const Op& op, const Shape& x, const Shape& y, bool forward) {
  OpSpace space = image_dims(x);
  space.dims.resize(2);
  AccessMap small{.axes = {AxisMap::identity(0), AxisMap::identity(1)}}, large = small;
  const Ints factors = factors_of(op, x, y);
  for (size_t a = 2; a < x.size(); ++a) {
    small.axes.push_back(AxisMap::whole());
    large.axes.push_back(AxisMap::whole());
    if (factors[a - 2] == 0) continue;
    const int dim = static_cast<int>(space.dims.size());
    small.axes.back() = AxisMap::identity(dim);
    large.axes.back() = AxisMap::blocks(dim, factors[a - 2]);
    space.dims.push_back({.name = spatial_name(x.size() - 2, a - 2),
                          .role = Role::attribute,
                          .extent = x[a],
                          .max_degree = x[a]});
  }
  space.inputs = {forward ? small : large};
  space.outputs = {forward ? large : small};
  return space;
}

OpSpace forward_space(const Graph& g, const Op& op) {
  return space_over(op, input_shape(g, op, 0), output_shape(g, op, 0), true);
}
OpSpace backward_space(const Graph& g, const Op& op) {
  return space_over(op, output_shape(g, op, 0), input_shape(g, op, 0), false);
}

void gradient(const Op& op, GradientBuilder& b) {
  const TensorId dy = b.output_gradient(op.outputs[0]), dx = b.input_gradient(op.inputs[0]);
  if (dy.valid() && dx.valid()) b.emit("grad", "ResizeGrad", op.attributes, {dy}, {dx});
}

/// A product and a sum an element of each tap.
Work work(const Graph& g, const Op& op, const Cell& cell) {
  const std::string& mode = op.attributes.string("mode");
  const double taps = mode == "nearest" ? 1 : mode == "linear" ? 2 : 4;
  double flops = 2 * static_cast<double>(std::max(cell.boxes[0].volume(), cell.boxes[1].volume()));
  for (size_t a = 0; a < op.attributes.ints("sizes").size(); ++a) flops *= taps;
  return {.flops = flops, .bytes = bytes_of(g, op, cell)};
}

/// `factors`: the axes whose elements are repeated so often, in a cell as in the whole.
KernelCall call_with(const Graph& g, const Op& op, const Cell& cell, const Ints& factors) {
  KernelCall call = default_call(g, op, cell);
  call.attributes.set("factors", factors);
  return call;
}
KernelCall forward_call(const Graph& g, const Op& op, const Cell& cell) {
  return call_with(g, op, cell, factors_of(op, input_shape(g, op, 0), output_shape(g, op, 0)));
}
KernelCall backward_call(const Graph& g, const Op& op, const Cell& cell) {
  return call_with(g, op, cell, factors_of(op, output_shape(g, op, 0), input_shape(g, op, 0)));
}

}  // namespace

std::span<const OpDef> resize_ops() {
  static const OpDef kOps[] = {
      {.type = "Resize",
       .family = "pool",
       .infer = infer,
       .space = forward_space,
       .gradient = gradient,
       .stage_dims = {},
       .work = work,
       .kernel = forward_call},
      {.type = "ResizeGrad",
       .family = "pool",
       .space = backward_space,
       .stage_dims = {},
       .work = work,
       .kernel = backward_call},
  };
  return kOps;
}

}  // namespace ff
