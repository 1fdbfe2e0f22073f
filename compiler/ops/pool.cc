// Pooling over windows and over the whole image, and its gradients.
//
//   MaxPool(n:S, c:P, h:A, w:A) [n, c, 2h-1+3, 2w-1+3] -> [n, c, h, w], [n, c, h, w]    the second: index
//   inside the window MaxPoolGrad                 [n, c, h, w], [n, c, h, w] -> [n, c, 2h-1+3, 2w-1+3]
//   overlapping windows are summed GlobalAveragePool(n:S, c:P, h:C, w:C) [n, c, h, w] -> [n, c, :, :] partial
//   sums, times 1/N of all
//   LpPool is as AveragePool; LpPoolGrad [n, c, 2h-1+3, 2w-1+3], [n, c, h, w], [n, c, h, w] -> as the first
//
// Windows are never cut, so the first of equal maxima is the same under every split.
#include <algorithm>

#include "compiler/base/check.h"
#include "compiler/ops/families.h"
#include "compiler/ops/windows.h"

namespace ff {
namespace {

Windows pool_windows(const Op& op) { return windows_of(op.attributes, op.attributes.ints("kernel_shape")); }

Shape pooled_shape(const Graph& g, const Op& op) {
  const Shape& x = input_shape(g, op, 0);
  require_image(x, "the input");
  const Windows windows = pool_windows(op);
  if (windows.axes() + 2 != x.size()) {
    throw UserError("kernel_shape has " + std::to_string(windows.axes()) +
                    " values where the input has shape " + to_string(x));
  }
  for (size_t a = 0; a < windows.axes(); ++a) {
    if (std::max(windows.pad_begin(a), windows.pad_end(a)) >= windows.reach(a)) {
      throw UserError("a pad is as large as the window of " + std::to_string(windows.reach(a)));
    }
  }
  Shape y{x[0], x[1]};
  for (int64_t e : output_extents(windows, x, op.attributes.integer("ceil_mode", 0) != 0)) y.push_back(e);
  return y;
}

std::vector<TensorType> infer_max(const Graph& g, const Op& op) {
  const Shape y = pooled_shape(g, op);
  return {{y, g.tensor(op.inputs[0]).dtype}, {y, DType::i32}};
}

std::vector<TensorType> infer_average(const Graph& g, const Op& op) {
  return {{pooled_shape(g, op), g.tensor(op.inputs[0]).dtype}};
}

std::vector<TensorType> infer_none(const Graph&, const Op& op) {
  FF_CHECK(false) << op.type << " is made by a gradient rule, which gives its outputs";
  return {};
}

AccessMap windows_map(const Windows& windows, const Shape& x, const Shape& y) {
  AccessMap map{.axes = {AxisMap::identity(0), AxisMap::identity(1)}};
  for (size_t a = 0; a < windows.axes(); ++a) {
    map.axes.push_back(window_map(static_cast<int>(2 + a), windows, a, x[2 + a], y[2 + a]));
  }
  return map;
}

/// Pooled operands are on the dimensions' own axes, the image is read or written through windows.
OpSpace pool_space(const Op& op, const Shape& x, const Shape& y, bool forward) {
  OpSpace space = image_dims(y);
  const AccessMap image = windows_map(pool_windows(op), x, y), pooled = identity_map(y.size());
  const auto maps = [&](const std::vector<TensorId>& ids, const AccessMap& map) {
    std::vector<AccessMap> out;
    for (TensorId id : ids) out.push_back(id.valid() ? map : AccessMap{});
    return out;
  };
  space.inputs = maps(op.inputs, forward ? image : pooled);
  space.outputs = maps(op.outputs, forward ? pooled : image);
  return space;
}

OpSpace forward_space(const Graph& g, const Op& op) {
  return pool_space(op, input_shape(g, op, 0), output_shape(g, op, 0), true);
}
OpSpace backward_space(const Graph& g, const Op& op) {
  return pool_space(op, output_shape(g, op, 0), input_shape(g, op, op.inputs.size() - 1), false);
}

std::vector<TensorType> infer_lp(const Graph& g, const Op& op) {
  if (const int64_t p = op.attributes.integer("p"); p < 1)
    throw UserError("attribute p has the value " + std::to_string(p));
  return infer_average(g, op);
}

/// x is read, and its gradient written, through windows; y and dy are pooled.
OpSpace lp_backward_space(const Graph& g, const Op& op) {
  OpSpace space = backward_space(g, op);
  space.inputs[0] = space.outputs[0];
  return space;
}

void lp_gradient(const Op& op, GradientBuilder& b) {
  const TensorId dy = b.output_gradient(op.outputs[0]), dx = b.input_gradient(op.inputs[0]);
  if (dy.valid() && dx.valid())
    b.emit("grad", "LpPoolGrad", op.attributes, {op.inputs[0], op.outputs[0], dy}, {dx});
}

void max_gradient(const Op& op, GradientBuilder& b) {
  const TensorId dy = b.output_gradient(op.outputs[0]), dx = b.input_gradient(op.inputs[0]);
  if (!dy.valid() || !dx.valid()) return;
  FF_CHECK(has_output(op, 1)) << "MaxPool " << op.name << " has no index output, which its gradient needs";
  b.emit("grad", "MaxPoolGrad", op.attributes, {dy, op.outputs[1]}, {dx});
}

void average_gradient(const Op& op, GradientBuilder& b) {
  const TensorId dy = b.output_gradient(op.outputs[0]), dx = b.input_gradient(op.inputs[0]);
  if (dy.valid() && dx.valid()) b.emit("grad", op.type + "Grad", op.attributes, {dy}, {dx});
}

Work pool_work(const Graph& g, const Op& op, const Cell& cell) {
  double flops = cells_volume(cell);
  for (int64_t k : op.attributes.ints("kernel_shape")) flops *= static_cast<double>(k);
  return {.flops = flops, .bytes = bytes_of(g, op, cell)};
}

KernelCall pool_call(const Graph& g, const Op& op, const Cell& cell, const AccessMap& image, const Box& box) {
  KernelCall call = call_of(g, op, cell, op.type);
  const Windows windows = pool_windows(op);
  set_windows(call.attributes, windows, local_pads(image, cell, box));
  call.attributes.set("kernel_shape", windows.kernel);
  return call;
}

/// Average pooling divides by the window's elements in a range of rows: the input's, or the input's and its
/// padding's. The range is given from the first row of the cell's own input, cut to what the cell's windows
/// can reach.
KernelCall average_call(const Graph& g, const Op& op, const Cell& cell, const AccessMap& image,
                        const Box& box, const Shape& x) {
  KernelCall call = pool_call(g, op, cell, image, box);
  const Windows windows = pool_windows(op);
  const bool padding = op.attributes.integer("count_include_pad", 0) != 0;
  const Ints& pads = call.attributes.ints("pads");
  Ints begin, end;
  for (size_t a = 0; a < windows.axes(); ++a) {
    const Range rows = box[static_cast<int>(2 + a)];
    const int64_t lo = padding ? -windows.pad_begin(a) : 0,
                  hi = x[2 + a] + (padding ? windows.pad_end(a) : 0);
    begin.push_back(std::max(lo - rows.lo, -pads[a]));
    end.push_back(std::min(hi - rows.lo, rows.size() + pads[windows.axes() + a]));
  }
  call.attributes.set("count_begin", begin);
  call.attributes.set("count_end", end);
  return call;
}

KernelCall max_call(const Graph& g, const Op& op, const Cell& cell) {
  return pool_call(g, op, cell, forward_space(g, op).inputs[0], cell.boxes[0]);
}
KernelCall max_grad_call(const Graph& g, const Op& op, const Cell& cell) {
  return pool_call(g, op, cell, backward_space(g, op).outputs[0], cell.boxes[2]);
}
KernelCall lp_call(const Graph& g, const Op& op, const Cell& cell) {
  KernelCall call = max_call(g, op, cell);
  call.attributes.set("p", op.attributes.integer("p"));
  return call;
}
KernelCall lp_grad_call(const Graph& g, const Op& op, const Cell& cell) {
  KernelCall call = pool_call(g, op, cell, lp_backward_space(g, op).outputs[0], cell.boxes[3]);
  call.attributes.set("p", op.attributes.integer("p"));
  return call;
}
KernelCall average_forward_call(const Graph& g, const Op& op, const Cell& cell) {
  return average_call(g, op, cell, forward_space(g, op).inputs[0], cell.boxes[0], input_shape(g, op, 0));
}
KernelCall average_grad_call(const Graph& g, const Op& op, const Cell& cell) {
  return average_call(g, op, cell, backward_space(g, op).outputs[0], cell.boxes[1], output_shape(g, op, 0));
}

// Over the whole image.

std::vector<TensorType> infer_global(const Graph& g, const Op& op) {
  Shape y = input_shape(g, op, 0);
  require_image(y, "the input");
  std::fill(y.begin() + 2, y.end(), 1);
  return {{y, g.tensor(op.inputs[0]).dtype}};
}

/// The dimensions of the image; the one pooled element is read or written by all its cells.
OpSpace global_space(const Shape& x, bool forward) {
  OpSpace space = image_dims(x);
  const AccessMap image = identity_map(x.size());
  AccessMap pooled{.axes = {AxisMap::identity(0), AxisMap::identity(1)}};
  for (size_t a = 2; a < x.size(); ++a) {
    if (forward) space.dims[a].role = Role::contracted;
    pooled.axes.push_back(AxisMap::whole());
  }
  space.inputs = {forward ? image : pooled};
  space.outputs = {forward ? pooled : image};
  return space;
}

OpSpace global_forward_space(const Graph& g, const Op& op) {
  return global_space(input_shape(g, op, 0), true);
}
OpSpace global_backward_space(const Graph& g, const Op& op) {
  return global_space(output_shape(g, op, 0), false);
}

KernelCall global_call(const Graph& g, const Op& op, const Cell& cell, const Shape& x) {
  KernelCall call = call_of(g, op, cell, op.type);
  call.attributes.set("scale", 1.0 / static_cast<double>(volume(Shape(x.begin() + 2, x.end()))));
  return call;
}
KernelCall global_forward_call(const Graph& g, const Op& op, const Cell& cell) {
  return global_call(g, op, cell, input_shape(g, op, 0));
}
KernelCall global_backward_call(const Graph& g, const Op& op, const Cell& cell) {
  return global_call(g, op, cell, output_shape(g, op, 0));
}

}  // namespace

std::span<const OpDef> pool_ops() {
  static const OpDef kOps[] = {
      {.type = "MaxPool",
       .family = "pool",
       .infer = infer_max,
       .space = forward_space,
       .gradient = max_gradient,
       .stage_dims = {},
       .work = pool_work,
       .kernel = max_call},
      {.type = "MaxPoolGrad",
       .family = "pool",
       .infer = infer_none,
       .space = backward_space,
       .stage_dims = {},
       .work = pool_work,
       .kernel = max_grad_call},
      {.type = "AveragePool",
       .family = "pool",
       .infer = infer_average,
       .space = forward_space,
       .gradient = average_gradient,
       .stage_dims = {},
       .work = pool_work,
       .kernel = average_forward_call},
      {.type = "AveragePoolGrad",
       .family = "pool",
       .infer = infer_none,
       .space = backward_space,
       .stage_dims = {},
       .work = pool_work,
       .kernel = average_grad_call},
      {.type = "LpPool",
       .family = "pool",
       .infer = infer_lp,
       .space = forward_space,
       .gradient = lp_gradient,
       .stage_dims = {},
       .work = pool_work,
       .kernel = lp_call},
      {.type = "LpPoolGrad",
       .family = "pool",
       .infer = infer_none,
       .space = lp_backward_space,
       .stage_dims = {},
       .work = pool_work,
       .kernel = lp_grad_call},
      {.type = "GlobalAveragePool",
       .family = "pool",
       .infer = infer_global,
       .space = global_forward_space,
       .gradient = average_gradient,
       .stage_dims = {},
       .kernel = global_forward_call},
      {.type = "GlobalAveragePoolGrad",
       .family = "pool",
       .infer = infer_none,
       .space = global_backward_space,
       .stage_dims = {},
       .kernel = global_backward_call},
  };
  return kOps;
}

}  // namespace ff
