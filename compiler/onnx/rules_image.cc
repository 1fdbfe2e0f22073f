// Translation of the ops of convolutional networks.

#include "compiler/onnx/rules.h"
#include "compiler/ops/conv.h"
#include "compiler/ops/windows.h"

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

/// Kernels over windows compute in floats.
void require_float(const Node& node) {
  if (!is_float(node.dtype(0)))
    throw Unsupported("an input of type " + std::string(name(node.dtype(0))) + ", which is no float type");
}

/// One window over the whole image.
Attributes whole_image(const Node& node) {
  const Shape x = node.shape(0);
  if (x.size() < 3) throw UserError("the input has shape " + to_string(x) + ", which is no image");
  const Ints kernel(x.begin() + 2, x.end());
  const size_t axes = kernel.size();
  return {{"kernel_shape", kernel},
          {"strides", Ints(axes, 1)},
          {"dilations", Ints(axes, 1)},
          {"pads", Ints(2 * axes, 0)}};
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

namespace {

/// What a ConvTranspose node gives on one spatial axis.
struct TransposedAxis {
  int64_t extent = 0;          // of the op's result
  int64_t begin = 0, end = 0;  // pads
  int64_t zeros = 0;           // that follow the op's result
};

/// `windows`: the extent that all windows cover. The result has `wanted` elements (-1: as the pads say); what
/// no window reaches is 0: up to a stride less one of that is the op's own.
TransposedAxis transposed_axis(int64_t windows, int64_t stride, int64_t wanted, int64_t output_padding,
                               bool more_at_end, int64_t begin, int64_t end) {
  if (wanted < 0) {
    wanted = windows + output_padding - begin - end;
  } else {
    const int64_t total = std::max<int64_t>(0, windows + output_padding - wanted);
    begin = more_at_end ? total / 2 : total - total / 2;
  }
  TransposedAxis out{.extent = wanted, .begin = begin, .end = std::max<int64_t>(0, windows - begin - wanted)};
  out.zeros = std::max<int64_t>(0, wanted + begin - windows - (stride - 1));
  out.extent -= out.zeros;
  return out;
}

/// The attributes of the op, and the pads of zeros that follow it.
std::pair<Attributes, Ints> transposed(const Node& node, const Shape& x, const Ints& kernel) {
  const size_t axes = kernel.size();
  const Ints strides = node.ints("strides", Ints(axes, 1)), dilations = node.ints("dilations", Ints(axes, 1)),
             more = node.ints("output_padding", Ints(axes, 0)), given = node.ints("pads", Ints(2 * axes, 0));
  const std::string mode = node.string("auto_pad", "NOTSET");
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  if (!same && mode != "NOTSET" && mode != "VALID" && !mode.empty())
    throw UserError("auto_pad has the value '" + mode + "'");
  Ints wanted = node.ints("output_shape", Ints(axes, -1));
  if (wanted.size() == axes + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  for (const auto& [values, size] : {std::pair(&strides, axes),
                                     {&dilations, axes},
                                     {&more, axes},
                                     {&wanted, axes},
                                     {&given, 2 * axes},
                                     {&x, axes + 2}}) {
    if (values->size() != size)
      throw UserError("has " + to_string(*values) + " where a kernel of " + to_string(kernel) + " needs " +
                      std::to_string(size) + " values");
  }
  Ints extents, pads(2 * axes, 0), zeros(2 * x.size(), 0);
  for (size_t a = 0; a < axes; ++a) {
    if (same && wanted[a] < 0) wanted[a] = x[2 + a] * strides[a];
    const bool explicit_pads = mode != "VALID";
    const TransposedAxis axis = transposed_axis(
        (x[2 + a] - 1) * strides[a] + (kernel[a] - 1) * dilations[a] + 1, strides[a], wanted[a], more[a],
        mode == "SAME_UPPER", explicit_pads ? given[a] : 0, explicit_pads ? given[axes + a] : 0);
    extents.push_back(axis.extent);
    pads[a] = axis.begin;
    pads[axes + a] = axis.end;
    zeros[x.size() + 2 + a] = axis.zeros;
  }
  return {{{"strides", strides}, {"dilations", dilations}, {"pads", pads}, {"output_shape", extents}}, zeros};
}

}  // namespace

/// The bias is an Add: it is no sum over windows.
void import_conv_transpose(Node& node) {
  require_float(node);
  const Shape x = node.shape(0), w = node.shape(1);
  if (w.size() < 3) throw UserError("the weight has shape " + to_string(w));
  const Ints kernel(w.begin() + 2, w.end());
  if (node.ints("kernel_shape", kernel) != kernel)
    throw UserError("kernel_shape does not agree with the weight's shape " + to_string(w));
  auto [attributes, zeros] = transposed(node, x, kernel);
  attributes.set("group", node.integer("group", 1));
  const bool pad = std::any_of(zeros.begin(), zeros.end(), [](int64_t z) { return z > 0; }),
             bias = node.has(2);
  TensorId y = node.emit("ConvTranspose", attributes, {node.operand(0), node.operand(1, Use::weight)},
                         pad || bias ? "product" : "");
  if (pad) y = node.emit("Pad", {{"pads", zeros}, {"value", 0.0}}, {y}, bias ? "padded" : "");
  if (bias) {
    Shape broadcast(kernel.size() + 1, 1);
    broadcast[0] = node.graph().tensor(y).shape[1];
    if (node.shape(2) != Shape{broadcast[0]})
      throw UserError("the bias has shape " + to_string(node.shape(2)) + "; it must be " +
                      std::to_string(broadcast[0]));
    const TensorId b = node.emit("Reshape", {{"shape", broadcast}}, {node.operand(2, Use::weight)}, "bias");
    y = node.emit("Add", {}, {y, b});
  }
  node.result(y);
}

void import_max_pool(Node& node) {
  require_float(node);
  node.leave_out(1, "its second output, the indices, is used");
  const Ints kernel = node.ints("kernel_shape", {});
  Attributes attributes = windows(node, kernel);
  attributes.set("kernel_shape", kernel);
  attributes.set("ceil_mode", node.integer("ceil_mode", 0));
  node.result(node.emit("MaxPool", attributes, {node.operand(0)}));
}

/// Programs do not agree on what a dilated window that ends beyond the padding is divided by.
static void refuse_undefined_divisor(const Node& node, const Attributes& attributes, const Ints& kernel) {
  if (attributes.integer("ceil_mode") == 0 || attributes.integer("count_include_pad") == 0) return;
  const Shape x = node.shape(0);
  const Windows w = windows_of(attributes, kernel);
  const Ints out = output_extents(w, x, true);
  for (size_t a = 0; a < w.axes(); ++a) {
    const int64_t end = (out[a] - 1) * w.strides[a] + w.reach(a);
    if (w.dilations[a] > 1 && end > x[a + 2] + w.pad_begin(a) + w.pad_end(a))
      throw Unsupported("a dilated window beyond the padding, with ceil_mode and count_include_pad");
  }
}

void import_average_pool(Node& node) {
  require_float(node);
  const Ints kernel = node.ints("kernel_shape", {});
  Attributes attributes = windows(node, kernel);
  attributes.set("kernel_shape", kernel);
  attributes.set("ceil_mode", node.integer("ceil_mode", 0));
  attributes.set("count_include_pad", node.integer("count_include_pad", 0));
  refuse_undefined_divisor(node, attributes, kernel);
  node.result(node.emit("AveragePool", attributes, {node.operand(0)}));
}

void import_global_average_pool(Node& node) {
  require_float(node);
  node.result(node.emit("GlobalAveragePool", {}, {node.operand(0)}));
}

void import_global_max_pool(Node& node) {
  require_float(node);
  Attributes attributes = whole_image(node);
  attributes.set("ceil_mode", int64_t{0});
  node.result(node.emit("MaxPool", attributes, {node.operand(0)}));
}

void import_lp_pool(Node& node) {
  require_float(node);
  const Ints kernel = node.ints("kernel_shape", {});
  Attributes attributes = windows(node, kernel);
  attributes.set("kernel_shape", kernel);
  attributes.set("ceil_mode", node.integer("ceil_mode", 0));
  attributes.set("p", node.integer("p", 2));
  node.result(node.emit("LpPool", attributes, {node.operand(0)}));
}

void import_global_lp_pool(Node& node) {
  require_float(node);
  Attributes attributes = whole_image(node);
  attributes.set("p", node.integer("p", 2));
  node.result(node.emit("LpPool", attributes, {node.operand(0)}));
}

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
