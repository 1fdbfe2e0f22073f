// Transposed convolution (ONNX's ConvTranspose, without its bias) and its gradients. It is the data gradient
// of the convolution whose image is the result, and has that convolution's dimensions with the channels'
// names changed over: co counts the result's channels, ci, which is summed over, the input's.
//
//   Kernel 3, stride 2, padding 1:
//   ConvTranspose            [n, ci, h, w], [ci, co, :, :] -> [n, co, 2h-1+3, 2w-1+3]   overlaps are summed
//   ConvTransposeGradData    [n, co, 2h-1+3, 2w-1+3], [ci, co, :, :] -> [n, ci, h, w]   sums over co
//   ConvTransposeGradWeight  [n, co, 2h-1+3, 2w-1+3], [n, ci, h, w] -> [ci, co, :, :]   sums over n, h, w
//
// Cells next to each other write the rows between their windows too (kernel 2, stride 3), and the rows of
// output_padding: 0 for all of them. A bias would be added once a window: it is an Add of its own.
#include <algorithm>

#include "compiler/base/check.h"
#include "compiler/ops/convolution.h"
#include "compiler/ops/families.h"

namespace ff {
namespace {

/// Of the three tensors: the result (a convolution's x), the weight, the input (a convolution's y).
Convolution transposed(const Op& op, const Shape& result, const Shape& w, const Shape& input) {
  Convolution c = make_convolution(op, result, w, input);
  if (c.group == 1) {
    IterDim &summed = c.dims.dims[1], &kept = c.dims.dims.back();
    summed.name = "ci", summed.role = Role::contracted;
    kept.name = "co", kept.role = Role::parameter;
  }
  for (size_t a = 0; a < c.windows.axes(); ++a) {
    AxisMap& map = c.x_map.axes[2 + a];
    map.span = std::max(map.span, map.stride);
  }
  return c;
}

Convolution forward_of(const Graph& g, const Op& op) {
  return transposed(op, output_shape(g, op, 0), input_shape(g, op, 1), input_shape(g, op, 0));
}
Convolution data_of(const Graph& g, const Op& op) {
  return transposed(op, input_shape(g, op, 0), input_shape(g, op, 1), output_shape(g, op, 0));
}
Convolution weight_of(const Graph& g, const Op& op) {
  return transposed(op, input_shape(g, op, 0), output_shape(g, op, 0), input_shape(g, op, 1));
}

/// `output_shape` has the result's spatial extents: those that `pads` leave of all windows, and up to a
/// stride less one of rows that no window writes.
Shape result_shape(const Op& op, const Shape& x, const Shape& w, int64_t group) {
  const Windows windows = windows_of(op.attributes, Ints(w.begin() + 2, w.end()));
  const Ints& extents = op.attributes.ints("output_shape");
  FF_CHECK_EQ(extents.size(), windows.axes());
  Shape y{x[0], w[1] * group};
  for (size_t a = 0; a < windows.axes(); ++a) {
    const int64_t padded = extents[a] + windows.pad_begin(a) + windows.pad_end(a);
    const int64_t rest = padded - windows.reach(a) - (x[2 + a] - 1) * windows.strides[a];
    if (extents[a] < 1 || rest < 0 || rest >= windows.strides[a]) {
      throw UserError("an image of " + to_string(x) + " and a kernel of " + to_string(w) + " give no " +
                      std::to_string(extents[a]) + " elements on spatial axis " + std::to_string(a));
    }
    y.push_back(extents[a]);
  }
  return y;
}

std::vector<TensorType> infer(const Graph& g, const Op& op) {
  const Shape& x = input_shape(g, op, 0);
  const Shape& w = input_shape(g, op, 1);
  require_image(x, "the input");
  const int64_t group = op.attributes.integer("group", 1);
  if (w.size() != x.size() || w[0] != x[1])
    throw UserError("the weight has shape " + to_string(w) + " where the input has shape " + to_string(x));
  if (group < 1 || w[0] % group != 0) {
    throw UserError("group=" + std::to_string(group) + " does not divide " + std::to_string(w[0]) +
                    " input channels");
  }
  return {{result_shape(op, x, w, group), g.tensor(op.inputs[0]).dtype}};
}

OpSpace forward_space(const Graph& g, const Op& op) {
  Convolution c = forward_of(g, op);
  c.dims.inputs = {c.y_map, c.w_map};
  c.dims.outputs = {c.x_map};
  return c.dims;
}

OpSpace data_space(const Graph& g, const Op& op) {
  Convolution c = data_of(g, op);
  c.dims.inputs = {c.x_map, c.w_map};
  c.dims.outputs = {c.y_map};
  return c.dims;
}

OpSpace weight_space(const Graph& g, const Op& op) {
  Convolution c = weight_of(g, op);
  c.dims.inputs = {c.x_map, c.y_map};
  c.dims.outputs = {c.w_map};
  return c.dims;
}

void gradient(const Op& op, GradientBuilder& b) {
  const TensorId dy = b.output_gradient(op.outputs[0]);
  if (!dy.valid()) return;
  if (const TensorId dw = b.input_gradient(op.inputs[1]); dw.valid())
    b.emit("weight_grad", "ConvTransposeGradWeight", op.attributes, {dy, op.inputs[0]}, {dw});
  if (const TensorId dx = b.input_gradient(op.inputs[0]); dx.valid())
    b.emit("data_grad", "ConvTransposeGradData", op.attributes, {dy, op.inputs[1]}, {dx});
}

Work forward_work(const Graph& g, const Op& op, const Cell& cell) {
  return conv_work_of(g, op, cell, forward_of(g, op));
}
Work data_work(const Graph& g, const Op& op, const Cell& cell) {
  return conv_work_of(g, op, cell, data_of(g, op));
}
Work weight_work(const Graph& g, const Op& op, const Cell& cell) {
  return conv_work_of(g, op, cell, weight_of(g, op));
}

KernelCall forward_call(const Graph& g, const Op& op, const Cell& cell) {
  return conv_call(g, op, cell, "ConvGradData", forward_of(g, op), 2);
}
KernelCall data_call(const Graph& g, const Op& op, const Cell& cell) {
  return conv_call(g, op, cell, "Conv", data_of(g, op), 0);
}
KernelCall weight_call(const Graph& g, const Op& op, const Cell& cell) {
  return conv_call(g, op, cell, "ConvGradWeight", weight_of(g, op), 0);
}

}  // namespace

std::span<const OpDef> conv_transpose_ops() {
  static const OpDef kOps[] = {
      {.type = "ConvTranspose",
       .family = "conv",
       .infer = infer,
       .space = forward_space,
       .gradient = gradient,
       .stage_dims = {},
       .work = forward_work,
       .kernel = forward_call},
      {.type = "ConvTransposeGradData",
       .family = "conv",
       .space = data_space,
       .stage_dims = {},
       .work = data_work,
       .kernel = data_call},
      {.type = "ConvTransposeGradWeight",
       .family = "conv",
       .space = weight_space,
       .stage_dims = {},
       .work = weight_work,
       .kernel = weight_call},
  };
  return kOps;
}

}  // namespace ff
