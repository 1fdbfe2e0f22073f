// Translation of reductions, and of normalisations that are made of them or of LayerNorm.
//
// Those with a function around the sum are that function and a sum:
//   ReduceL2 x = Sqrt(ReduceSum(Square(x)))
//   InstanceNormalization x [n, c, h, w] = LayerNorm over axis 2 of x as [n, c, h*w], times scale [c], plus
//   bias

#include "compiler/onnx/rules.h"

namespace ff::onnx_import {
namespace {

/// What a reduction node says, and the ops that it becomes.
class Reduction {
 public:
  explicit Reduction(Node& node) : node_(node), x_(node.shape(0)) {
    if (!is_float(node.dtype(0)))
      throw Unsupported("a reduction of type " + std::string(ff::name(node.dtype(0))));
    const auto given = node.ints_of("axes", 1);
    if (given) {
      for (int64_t axis : *given) axes_.push_back(positive_axis(axis, x_.size()));
    }
    if (axes_.empty() && node.integer("noop_with_empty_axes", 0) == 0) {
      for (size_t d = 0; d < x_.size(); ++d) axes_.push_back(static_cast<int64_t>(d));
    }
    std::sort(axes_.begin(), axes_.end());
    keep_ = node.integer("keepdims", 1) != 0;
  }

  const Ints& axes() const { return axes_; }
  bool keeps() const { return keep_; }
  double count() const {
    double n = 1;
    for (int64_t axis : axes_) n *= static_cast<double>(x_[static_cast<size_t>(axis)]);
    return n;
  }
  /// Reduces `x`. Where no op follows, it is the node's own.
  TensorId reduce(const std::string& type, TensorId x, bool last, double scale = 1) {
    Attributes attributes{{"axes", axes_}};
    if (type == "ReduceSum") attributes.set("scale", scale);
    return node_.emit(type, attributes, {x}, last && keep_ ? "" : "reduced");
  }
  TensorId apply(const std::string& type, TensorId x, bool last) {
    return node_.emit(type, {}, {x}, last && keep_ ? "" : part());
  }
  /// The node's result, without the reduced axes if it does not keep them.
  void finish(TensorId y) {
    if (keep_) return node_.result(y);
    Shape shape;
    for (size_t d = 0; d < x_.size(); ++d) {
      if (!std::binary_search(axes_.begin(), axes_.end(), static_cast<int64_t>(d))) shape.push_back(x_[d]);
    }
    node_.result(node_.emit("Reshape", {{"shape", shape}}, {y}));
  }

 private:
  std::string part() { return "step" + std::to_string(parts_++); }

  Node& node_;
  Shape x_;
  Ints axes_;
  bool keep_ = true;
  int parts_ = 0;
};

/// y times scale plus bias, each of a channel.
TensorId scale_channels(Node& node, TensorId y, TensorId scale, TensorId bias, const Shape& channels) {
  const auto spread = [&](TensorId vector, const std::string& part) {
    return node.emit("Reshape", {{"shape", channels}}, {vector}, part);
  };
  y = node.emit("Mul", {}, {y, spread(scale, "scale")}, "scaled");
  return node.emit("Add", {}, {y, spread(bias, "bias")});
}

/// x as [n, groups, rest], each group of a sample normalised.
TensorId normalize_groups(Node& node, int64_t groups, double epsilon) {
  const Shape x = node.shape(0);
  const Shape grouped{x[0], groups, volume(x) / (x[0] * groups)};
  TensorId y = node.operand(0);
  if (grouped != x) y = node.emit("Reshape", {{"shape", grouped}}, {y}, "grouped");
  const Attributes attributes{{"axis", int64_t{2}}, {"epsilon", epsilon}};
  return node.emit_all("normalized", "LayerNorm", attributes, {y, TensorId(), TensorId()})[0];
}

void require_spatial(const Shape& x) {
  if (x.size() < 2) throw UserError("the input has shape " + to_string(x) + "; it must have channels");
}

}  // namespace

void import_reduce_sum(Node& node) {
  Reduction r(node);
  r.finish(r.reduce("ReduceSum", node.operand(0, Use::elementwise), true));
}

/// A mean over all spatial axes is a pooling, in whatever layout the image lies.
void import_reduce_mean(Node& node) {
  Reduction r(node);
  const Shape x = node.shape(0);
  Ints spatial;
  for (size_t a = 2; a < x.size(); ++a) spatial.push_back(static_cast<int64_t>(a));
  if (x.size() > 3 && x.size() < 6 && r.axes() == spatial) {
    const TensorId pooled = node.emit("GlobalAveragePool", {}, {node.operand(0)}, r.keeps() ? "" : "pool");
    return r.finish(pooled);
  }
  r.finish(r.reduce("ReduceSum", node.operand(0, Use::elementwise), true, 1 / r.count()));
}

void import_reduce_max(Node& node) {
  Reduction r(node);
  r.finish(r.reduce("ReduceMax", node.operand(0, Use::elementwise), true));
}

void import_reduce_min(Node& node) {
  Reduction r(node);
  const TensorId most = r.reduce("ReduceMax", node.emit("Neg", {}, {node.operand(0)}, "negative"), false);
  r.finish(r.apply("Neg", most, true));
}

void import_reduce_prod(Node& node) {
  Reduction r(node);
  r.finish(r.reduce("ReduceProd", node.operand(0, Use::elementwise), true));
}

void import_reduce_l1(Node& node) {
  Reduction r(node);
  r.finish(r.reduce("ReduceSum", node.emit("Abs", {}, {node.operand(0, Use::elementwise)}, "abs"), true));
}

void import_reduce_sum_square(Node& node) {
  Reduction r(node);
  r.finish(
      r.reduce("ReduceSum", node.emit("Square", {}, {node.operand(0, Use::elementwise)}, "square"), true));
}

void import_reduce_l2(Node& node) {
  Reduction r(node);
  const TensorId squares = node.emit("Square", {}, {node.operand(0, Use::elementwise)}, "square");
  r.finish(r.apply("Sqrt", r.reduce("ReduceSum", squares, false), true));
}

void import_reduce_log_sum(Node& node) {
  Reduction r(node);
  r.finish(r.apply("Log", r.reduce("ReduceSum", node.operand(0), false), true));
}

/// max + log(sum(exp(x - max))): no exponential overflows.
void import_reduce_log_sum_exp(Node& node) {
  Reduction r(node);
  const TensorId x = node.operand(0);
  const TensorId max = node.emit("ReduceMax", {{"axes", r.axes()}}, {x}, "max");
  const TensorId shifted = node.emit("Sub", {}, {x, max}, "shifted");
  const TensorId sum = r.reduce("ReduceSum", node.emit("Exp", {}, {shifted}, "exp"), false);
  const TensorId log = node.emit("Log", {}, {sum}, "log");
  r.finish(node.emit("Add", {}, {log, max}, r.keeps() ? "" : "shifted_back"));
}

/// The outputs Mean and InvStdDev are those of the op.
void import_layer_normalization(Node& node) {
  if (node.integer("stash_type", 1) != 1) throw Unsupported("statistics of another type than float");
  const Shape x = node.shape(0);
  const int64_t axis = positive_axis(node.integer("axis", -1), x.size());
  const bool rms = node.proto().op_type() == "RMSNormalization";
  const Shape inner(x.begin() + axis, x.end());
  bool affine = true;
  for (int i = 1; i < node.input_count(); ++i) affine &= !node.has(i) || node.shape(i) == inner;
  std::vector<TensorId> inputs{node.operand(0), {}};
  if (!rms) inputs.push_back({});
  for (int i = 1; affine && i < static_cast<int>(inputs.size()); ++i)
    inputs[static_cast<size_t>(i)] = node.operand(i, Use::weight);
  const Attributes attributes{{"axis", axis}, {"epsilon", node.real("epsilon", 1e-5)}};
  const auto out =
      node.emit_all(affine ? "" : "normalized", rms ? "RMSNorm" : "LayerNorm", attributes, inputs);
  TensorId y = out[0];
  // A scale or bias that is broadcast is an op of its own.
  if (!affine) {
    const bool bias = !rms && node.has(2);
    y = node.emit("Mul", {}, {y, node.operand(1, Use::weight)}, bias ? "scaled" : "");
    if (bias) y = node.emit("Add", {}, {y, node.operand(2, Use::weight)});
  }
  node.result(y);
  for (int i = 1; !rms && i < node.output_count(); ++i) node.result(out.at(static_cast<size_t>(i)), i);
}

/// Scale and bias are those of a group before opset 21, of a channel since.
void import_group_normalization(Node& node) {
  const Shape x = node.shape(0);
  require_spatial(x);
  const int64_t groups = node.integer("num_groups", 1);
  if (groups < 1 || x[1] % groups != 0)
    throw UserError(std::to_string(x[1]) + " channels are no multiple of " + std::to_string(groups) +
                    " groups");
  TensorId y = normalize_groups(node, groups, node.real("epsilon", 1e-5));
  const TensorId scale = node.operand(1, Use::weight), bias = node.operand(2, Use::weight);
  if (node.opset() < 21 && groups != x[1]) {
    const auto spread = [&](TensorId vector, const std::string& part) {
      return node.emit("Reshape", {{"shape", Shape{groups, 1}}}, {vector}, part);
    };
    y = node.emit("Mul", {}, {y, spread(scale, "scale")}, "scaled");
    y = node.emit("Add", {}, {y, spread(bias, "bias")}, "shifted");
    return node.result(node.emit("Reshape", {{"shape", x}}, {y}));
  }
  y = node.emit("Reshape", {{"shape", x}}, {y}, "as_before");
  Shape channels(x.size() - 1, 1);
  channels[0] = x[1];
  node.result(scale_channels(node, y, scale, bias, channels));
}

void import_instance_normalization(Node& node) {
  const Shape x = node.shape(0);
  require_spatial(x);
  TensorId y = normalize_groups(node, x[1], node.real("epsilon", 1e-5));
  y = node.emit("Reshape", {{"shape", x}}, {y}, "as_before");
  Shape channels(x.size() - 1, 1);
  channels[0] = x[1];
  node.result(scale_channels(node, y, node.operand(1, Use::weight), node.operand(2, Use::weight), channels));
}

/// (x - mean) / (deviation + 1e-9), over all axes but the channels by default.
void import_mean_variance_normalization(Node& node) {
  Ints axes = node.ints("axes", {0, 2, 3});
  double count = 1;
  for (int64_t& axis : axes) {
    axis = positive_axis(axis, node.shape(0).size());
    count *= static_cast<double>(node.shape(0)[static_cast<size_t>(axis)]);
  }
  const Attributes mean_of{{"axes", axes}, {"scale", 1 / count}};
  const TensorId x = node.operand(0);
  const TensorId centred = node.emit("Sub", {}, {x, node.emit("ReduceSum", mean_of, {x}, "mean")}, "centred");
  const TensorId square = node.emit("Square", {}, {centred}, "square");
  const TensorId deviation =
      node.emit("Sqrt", {}, {node.emit("ReduceSum", mean_of, {square}, "variance")}, "deviation");
  const TensorId small = node.scalar("small", 1e-9, node.graph().tensor(x).dtype);
  node.result(node.emit("Div", {}, {centred, node.emit("Add", {}, {deviation, small}, "divisor")}));
}

/// x over its norm along one axis.
void import_lp_normalization(Node& node) {
  const int64_t p = node.integer("p", 2);
  if (p != 1 && p != 2) throw Unsupported("p=" + std::to_string(p));
  const Ints axes{positive_axis(node.integer("axis", -1), node.shape(0).size())};
  const TensorId x = node.operand(0);
  TensorId norm = node.emit(p == 1 ? "Abs" : "Square", {}, {x}, "power");
  norm = node.emit("ReduceSum", {{"axes", axes}, {"scale", 1.0}}, {norm}, "sum");
  if (p == 2) norm = node.emit("Sqrt", {}, {norm}, "norm");
  node.result(node.emit("Div", {}, {x, norm}));
}

}  // namespace ff::onnx_import
