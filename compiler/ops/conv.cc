// Convolution and its gradients. All rows have the forward op's dimensions, so that one config serves them:
//
//   Conv(n:S, co:P, h:A, w:A, ci:C) [n, ci, 2h-3+7, 2w-3+7], [co, ci, :, :], [co]@ci -> [n, co, h, w]
//   ConvGradData    [n, co, h, w], [co, ci, :, :] -> [n, ci, 2h-3+7, 2w-3+7]       sums over co, and
//   overlapping windows ConvGradWeight  [n, ci, 2h-3+7, 2w-3+7], [n, co, h, w] -> [co, ci, :, :], [co]@ci
//   sums over n, h, w
//
// With groups: n, g and the spatial dimensions; g maps to blocks of channels, and a group is never cut.
#include "compiler/base/check.h"
#include "compiler/ops/convolution.h"
#include "compiler/ops/families.h"

namespace ff {
namespace {

Convolution forward_of(const Graph& g, const Op& op) {
  return make_convolution(op, input_shape(g, op, 0), input_shape(g, op, 1), output_shape(g, op, 0));
}
Convolution data_of(const Graph& g, const Op& op) {
  return make_convolution(op, output_shape(g, op, 0), input_shape(g, op, 1), input_shape(g, op, 0));
}
Convolution weight_of(const Graph& g, const Op& op) {
  return make_convolution(op, input_shape(g, op, 0), output_shape(g, op, 0), input_shape(g, op, 1));
}

std::vector<TensorType> infer_conv(const Graph& g, const Op& op) {
  const Shape& x = input_shape(g, op, 0);
  const Shape& w = input_shape(g, op, 1);
  require_image(x, "the input");
  if (w.size() != x.size())
    throw UserError("the weight has shape " + to_string(w) + " where the input has shape " + to_string(x));
  const int64_t group = op.attributes.integer("group", 1);
  if (group < 1 || w[0] % group != 0) {
    throw UserError("group=" + std::to_string(group) + " does not divide " + std::to_string(w[0]) +
                    " output channels");
  }
  if (x[1] != w[1] * group) {
    throw UserError("the input has " + std::to_string(x[1]) + " channels; the weight of shape " +
                    to_string(w) + " with group=" + std::to_string(group) + " takes " +
                    std::to_string(w[1] * group));
  }
  if (has_input(op, 2) && input_shape(g, op, 2) != Shape{w[0]}) {
    throw UserError("the bias has shape " + to_string(input_shape(g, op, 2)) + "; it must be " +
                    std::to_string(w[0]));
  }
  const Ints kernel(w.begin() + 2, w.end());
  if (op.attributes.ints("kernel_shape", kernel) != kernel) {
    throw UserError("kernel_shape does not agree with the weight's shape " + to_string(w));
  }
  Shape y{x[0], w[0]};
  for (int64_t extent : output_extents(windows_of(op.attributes, kernel), x)) y.push_back(extent);
  return {{y, g.tensor(op.inputs[0]).dtype}};
}

OpSpace conv_space(const Graph& g, const Op& op) {
  Convolution c = forward_of(g, op);
  c.dims.inputs = {c.x_map, c.w_map};
  if (op.inputs.size() > 2) c.dims.inputs.push_back(has_input(op, 2) ? c.b_map : AccessMap{});
  c.dims.outputs = {c.y_map};
  return c.dims;
}

OpSpace data_space(const Graph& g, const Op& op) {
  Convolution c = data_of(g, op);
  c.dims.inputs = {c.y_map, c.w_map};
  c.dims.outputs = {c.x_map};
  return c.dims;
}

OpSpace weight_space(const Graph& g, const Op& op) {
  Convolution c = weight_of(g, op);
  c.dims.inputs = {c.x_map, c.y_map};
  c.dims.outputs = {c.w_map};
  if (op.outputs.size() > 1) c.dims.outputs.push_back(has_output(op, 1) ? c.b_map : AccessMap{});
  return c.dims;
}

/// The mask of a fused ReLU: elementwise, under the convolution's names.
OpSpace relu_space(const Graph& g, const Op& op) {
  const Shape& y = input_shape(g, op, 0);
  const int64_t group = op.attributes.integer("group", 1);
  OpSpace space = image_dims(y, group > 1 ? "g" : "co");
  AccessMap map = identity_map(y.size());
  if (group > 1) {
    space.dims[1].extent = space.dims[1].max_degree = group;
    map.axes[1] = AxisMap::blocks(1, y[1] / group);
  }
  space.inputs = {map, map};
  space.outputs = {map};
  return space;
}

std::vector<TensorType> infer_none(const Graph&, const Op& op) {
  FF_CHECK(false) << op.type << " is made by a gradient rule, which gives its outputs";
  return {};
}

void conv_gradient(const Op& op, GradientBuilder& b) {
  TensorId dy = b.output_gradient(op.outputs[0]);
  if (!dy.valid()) return;
  Attributes attributes = op.attributes;
  if (op.attributes.integer("relu", 0) != 0) {
    const TensorId dz = b.temporary("relu_grad", op.outputs[0]);
    b.emit("relu_grad", "ConvReluGrad", {{"group", op.attributes.integer("group", 1)}}, {op.outputs[0], dy},
           {dz});
    dy = dz;
    attributes.erase("relu");
  }
  const TensorId dw = b.input_gradient(op.inputs[1]);
  const TensorId db = has_input(op, 2) ? b.input_gradient(op.inputs[2]) : TensorId();
  if (dw.valid() || db.valid()) {
    // A bias without its weight trained: the weight's gradient is made all the same, and nobody reads it.
    const TensorId weight = dw.valid() ? dw : b.temporary("unused_weight_grad", op.inputs[1]);
    std::vector<TensorId> outputs{weight};
    if (db.valid()) outputs.push_back(db);
    b.emit("weight_grad", "ConvGradWeight", attributes, {op.inputs[0], dy}, std::move(outputs));
  }
  if (const TensorId dx = b.input_gradient(op.inputs[0]); dx.valid()) {
    b.emit("data_grad", "ConvGradData", attributes, {dy, op.inputs[1]}, {dx});
  }
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
  return conv_call(g, op, cell, op.type, forward_of(g, op), 0);
}
KernelCall data_call(const Graph& g, const Op& op, const Cell& cell) {
  return conv_call(g, op, cell, op.type, data_of(g, op), 2);
}
KernelCall weight_call(const Graph& g, const Op& op, const Cell& cell) {
  return conv_call(g, op, cell, op.type, weight_of(g, op), 0);
}
KernelCall relu_call(const Graph& g, const Op& op, const Cell& cell) {
  return call_of(g, op, cell, "ReluGrad");
}

}  // namespace

std::span<const OpDef> conv_ops() {
  static const OpDef kOps[] = {
      {.type = "Conv",
       .family = "conv",
       .infer = infer_conv,
       .space = conv_space,
       .gradient = conv_gradient,
       .stage_dims = {},
       .work = forward_work,
       .kernel = forward_call},
      {.type = "ConvGradData",
       .family = "conv",
       .infer = infer_none,
       .space = data_space,
       .stage_dims = {},
       .work = data_work,
       .kernel = data_call},
      {.type = "ConvGradWeight",
       .family = "conv",
       .infer = infer_none,
       .space = weight_space,
       .stage_dims = {},
       .work = weight_work,
       .kernel = weight_call},
      {.type = "ConvReluGrad",
       .family = "elementwise",
       .infer = infer_none,
       .space = relu_space,
       .stage_dims = {},
       .kernel = relu_call},
  };
  return kOps;
}

}  // namespace ff
