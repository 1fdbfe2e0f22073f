// Translation of the ops of convolutional networks.

#include "compiler/onnx/rules.h"
#include "compiler/ops/conv.h"

namespace ff::onnx_import {
namespace {

/// Strides, dilations and explicit pads of a window op with these kernel sizes.
Attributes windows(const Node& node, const Ints& kernel) {
  const size_t axes = kernel.size();
  const Ints ones(axes, 1);
  const Ints strides = node.ints("strides", ones);
  const Ints dilations = node.ints("dilations", ones);
  Ints pads = node.ints("pads", Ints(2 * axes, 0));
  const std::string mode = node.string("auto_pad", "NOTSET");
  if (mode != "NOTSET" && !mode.empty())
    pads = resolve_auto_pad(mode, node.shape(0), kernel, strides, dilations);
  return {{"strides", strides}, {"dilations", dilations}, {"pads", pads}};
}

}  // namespace

void import_conv(Node& node) {
  const Shape w = node.shape(1);
  Attributes attributes = windows(node, node.ints("kernel_shape", Ints(w.begin() + 2, w.end())));
  const int64_t group = node.integer("group", 1);
  if (group < 1 || w[0] % group != 0) {
    throw UserError("group=" + std::to_string(group) + " does not divide " + std::to_string(w[0]) +
                    " output channels");
  }
  attributes.set("group", group);
  node.result(node.emit("Conv", attributes,
                        {node.operand(0), node.operand(1, Use::weight), node.operand(2, Use::weight)}));
}

void import_max_pool(Node& node) {
  node.leave_out(1, "its second output, the indices, is used");
  if (node.integer("storage_order", 0) != 0) throw Unsupported("storage_order 1");
  const Ints kernel = node.ints("kernel_shape", {});
  Attributes attributes = windows(node, kernel);
  attributes.set("kernel_shape", kernel);
  attributes.set("ceil_mode", node.integer("ceil_mode", 0));
  node.result(node.emit("MaxPool", attributes, {node.operand(0)}));
}

void import_average_pool(Node& node) {
  const Ints kernel = node.ints("kernel_shape", {});
  Attributes attributes = windows(node, kernel);
  attributes.set("kernel_shape", kernel);
  attributes.set("ceil_mode", node.integer("ceil_mode", 0));
  attributes.set("count_include_pad", node.integer("count_include_pad", 0));
  node.result(node.emit("AveragePool", attributes, {node.operand(0)}));
}

void import_global_average_pool(Node& node) {
  node.result(node.emit("GlobalAveragePool", {}, {node.operand(0)}));
}

/// The mean over exactly the spatial axes is a pooling; others are not built.
void import_batch_normalization(Node& node) {
  const double epsilon = node.real("epsilon", 1e-5);
  const double momentum = node.real("momentum", 0.9);
  // Before opset 14 there was no training_mode: five outputs said it.
  bool training = node.opset() >= 14 ? node.integer("training_mode", 0) != 0 : node.proto().output_size() > 1;
  if (!training && node.options().batchnorm_train && !node.options().inference) training = true;
  if (node.options().inference) training = false;
  const TensorId x = node.operand(0);
  const TensorId scale = node.operand(1, Use::weight);
  const TensorId bias = node.operand(2, Use::weight);
  if (!training) {
    const TensorId mean = node.operand(3, Use::statistics);
    const TensorId variance = node.operand(4, Use::statistics);
    node.result(node.emit("BatchNormInference", {{"epsilon", epsilon}}, {x, scale, bias, mean, variance}));
    if (!node.options().inference) {
      node.note(node_text(node.proto()) +
                ": statistics are frozen (training_mode 0), scale and bias are trained; " +
                "--batchnorm-mode train turns training statistics on");
    }
    return;
  }
  const auto out = node.emit_all("", "BatchNorm", {{"epsilon", epsilon}}, {x, scale, bias});
  node.result(out[0]);
  const TensorId mean = node.operand(3, Use::state);
  const TensorId variance = node.operand(4, Use::state);
  const Shape& shape = node.graph().tensor(x).shape;
  const int64_t count = volume(shape) / shape[1];
  node.emit_update("running", "BatchNormRunning", {{"momentum", momentum}, {"count", count}},
                   {out[1], out[2], mean, variance}, {mean, variance});
}

void import_lrn(Node& node) {
  node.result(node.emit("LRN",
                        {{"size", node.integer("size", 1)},
                         {"alpha", node.real("alpha", 1e-4)},
                         {"beta", node.real("beta", 0.75)},
                         {"bias", node.real("bias", 1.0)}},
                        {node.operand(0)}));
}

}  // namespace ff::onnx_import
