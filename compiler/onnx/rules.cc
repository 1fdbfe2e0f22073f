// The translation table: one row an ONNX op.

#include "compiler/onnx/rules.h"

#include <cmath>

#include "compiler/base/hash.h"

namespace ff::onnx_import {
namespace {

template <const char* kType>
void import_unary(Node& node) {
  node.result(node.emit(kType, {}, {node.operand(0)}));
}

#define FF_TYPE(name) constexpr char k##name[] = #name
FF_TYPE(Relu);
FF_TYPE(Sigmoid);
FF_TYPE(Tanh);
FF_TYPE(Neg);
FF_TYPE(Exp);
FF_TYPE(Log);
FF_TYPE(Sqrt);
FF_TYPE(Add);
FF_TYPE(Sub);
FF_TYPE(Mul);
FF_TYPE(Div);
#undef FF_TYPE

template <const char* kType>
void import_binary(Node& node) {
  node.result(node.emit(kType, {}, {node.operand(0, Use::elementwise), node.operand(1, Use::elementwise)}));
}

/// A weight keeps what it is under another name: exporters tie weights so.
void import_identity(Node& node) { node.alias(); }

void import_sum(Node& node) {
  TensorId sum = node.operand(0, Use::elementwise);
  if (node.input_count() == 1) return node.result(node.emit("Identity", {}, {sum}));
  for (int i = 1; i < node.input_count(); ++i) {
    const bool last = i + 1 == node.input_count();
    sum =
        node.emit("Add", {}, {sum, node.operand(i, Use::elementwise)}, last ? "" : "add" + std::to_string(i));
  }
  node.result(sum);
}

void import_leaky_relu(Node& node) {
  node.result(node.emit("LeakyRelu", {{"alpha", node.real("alpha", 0.01)}}, {node.operand(0)}));
}

void import_clip(Node& node) {
  double low = node.real("min", -INFINITY);
  double high = node.real("max", INFINITY);
  if (node.has(1)) low = node.required(1, "min").real(0);
  if (node.has(2)) high = node.required(2, "max").real(0);
  node.result(node.emit("Clip", {{"min", low}, {"max", high}}, {node.operand(0)}));
}

void import_cast(Node& node) {
  const int64_t to = node.integer("to", 1);
  constexpr std::pair<int64_t, DType> kTypes[] = {
      {1, DType::f32}, {11, DType::f64}, {7, DType::i64}, {6, DType::i32}, {2, DType::u8}};
  for (const auto& [number, type] : kTypes) {
    if (number != to) continue;
    if (node.dtype(0) == type) return node.result(node.emit("Identity", {}, {node.operand(0)}));
    return node.result(node.emit("Cast", {{"to", static_cast<int64_t>(type)}}, {node.operand(0)}));
  }
  throw Unsupported("a cast to ONNX's type " + std::to_string(to));
}

void import_dropout(Node& node) {
  double ratio = node.real("ratio", 0.5);
  if (node.has(1)) ratio = node.required(1, "the ratio").real(0);
  bool training = true;
  if (node.has(2)) training = node.required(2, "training_mode").integer(0) != 0;
  if (node.output_used(1)) throw Unsupported("its second output, the mask, is used");
  if (node.options().inference || ratio == 0 || !training) {
    if (ratio != 0 && !training && !node.options().inference)
      node.note(node_text(node.proto()) + ": training_mode is 0: no dropout");
    return node.result(node.emit("Identity", {}, {node.operand(0)}));
  }
  const auto key = static_cast<int64_t>(hash_bytes(node.name()) >> 1);
  node.result(node.emit("Dropout", {{"ratio", ratio}, {"op_key", key}}, {node.operand(0)}));
}

void import_matmul(Node& node) {
  if (node.shape(0).size() < 2 || node.shape(1).size() < 2) throw Unsupported("an operand of rank 1");
  node.result(node.emit("MatMul", {{"trans_a", int64_t{0}}, {"trans_b", int64_t{0}}},
                        {node.operand(0, Use::weight), node.operand(1, Use::weight), TensorId()}));
}

void import_gemm(Node& node) {
  const double alpha = node.real("alpha", 1.0);
  const double beta = node.real("beta", 1.0);
  const Attributes attributes{{"trans_a", node.integer("transA", 0)}, {"trans_b", node.integer("transB", 0)}};
  const TensorId a = node.operand(0, Use::weight);
  const TensorId b = node.operand(1, Use::weight);
  const int64_t n = node.shape(1)[node.integer("transB", 0) != 0 ? 0 : 1];
  const bool bias = node.has(2) && node.shape(2) == Shape{n};
  if (alpha == 1 && (!node.has(2) || (bias && beta == 1))) {
    return node.result(node.emit("MatMul", attributes, {a, b, node.operand(2, Use::weight)}));
  }
  TensorId y = node.emit("MatMul", attributes, {a, b, TensorId()}, "product");
  const DType type = node.dtype(0);
  if (alpha != 1)
    y = node.emit("Mul", {}, {y, node.scalar("alpha", alpha, type)},
                  node.has(2) && beta != 0 ? "scaled" : "");
  if (!node.has(2) || beta == 0) return node.result(y);
  TensorId c = node.operand(2, Use::weight);
  if (beta != 1) c = node.emit("Mul", {}, {c, node.scalar("beta", beta, type)}, "c");
  node.result(node.emit("Add", {}, {y, c}));
}

/// Before opset 13 both worked on the tensor flattened to two axes at `axis`, 1 by default.
void import_softmax(Node& node, const char* type) {
  const Shape x = node.shape(0);
  const auto rank = static_cast<int64_t>(x.size());
  int64_t axis = node.integer("axis", node.opset() >= 13 ? -1 : 1);
  if (axis < 0) axis += rank;
  if (node.opset() >= 13 || axis == rank - 1)
    return node.result(node.emit(type, {{"axis", axis}}, {node.operand(0)}));
  int64_t outer = 1;
  for (int64_t i = 0; i < axis; ++i) outer *= x[static_cast<size_t>(i)];
  TensorId y = node.emit("Reshape", {{"shape", Shape{outer, volume(x) / outer}}}, {node.operand(0)}, "flat");
  y = node.emit(type, {{"axis", int64_t{1}}}, {y}, "softmax");
  node.result(node.emit("Reshape", {{"shape", x}}, {y}));
}

void import_plain_softmax(Node& node) { import_softmax(node, "Softmax"); }
void import_log_softmax(Node& node) { import_softmax(node, "LogSoftmax"); }

/// Losses in the model: the loss is a scalar, summed or averaged over the whole batch.
void import_cross_entropy(Node& node, const char* type) {
  const std::string reduction = node.string("reduction", "mean");
  if (reduction == "none") throw Unsupported("reduction 'none'");
  if (node.has(2)) throw Unsupported("class weights");
  if (node.has_attribute("ignore_index") && reduction == "mean")
    throw Unsupported("ignore_index with reduction 'mean'");
  if (node.output_used(1)) throw Unsupported("its second output, the log probabilities, is used");
  const Shape labels = node.shape(1);
  Attributes attributes{{"axis", int64_t{1}},
                        {"classes", node.shape(0).at(1)},
                        {"label_smoothing", 0.0},
                        {"weight", 1.0},
                        {"scale", reduction == "mean" ? 1.0 / static_cast<double>(volume(labels)) : 1.0}};
  if (node.has_attribute("ignore_index")) attributes.set("ignore_index", node.integer("ignore_index", 0));
  node.result(node.emit(type, attributes, {node.operand(0), node.operand(1), TensorId(), TensorId()}));
}

void import_softmax_cross_entropy(Node& node) { import_cross_entropy(node, "SoftmaxCrossEntropy"); }
void import_nll(Node& node) { import_cross_entropy(node, "NegativeLogLikelihood"); }

constexpr NodeRule kRules[] = {
    {"Add", 7, import_binary<kAdd>},
    {"ArgMax", 1, import_arg_max},
    {"ArgMin", 1, import_arg_min},
    {"AveragePool", 1, import_average_pool},
    {"BatchNormalization", 7, import_batch_normalization},
    {"Cast", 6, import_cast},
    {"Clip", 6, import_clip},
    {"Concat", 4, import_concat},
    {"Constant", 1, import_folded_only},
    {"ConstantOfShape", 9, import_folded_only},
    {"Conv", 1, import_conv},
    {"ConvTranspose", 1, import_conv_transpose},
    {"CumSum", 11, import_cumsum},
    {"DepthToSpace", 1, import_depth_to_space},
    {"Div", 7, import_binary<kDiv>},
    {"Dropout", 7, import_dropout},
    {"EyeLike", 9, import_folded_only},
    {"Exp", 6, import_unary<kExp>},
    {"Expand", 8, import_expand},
    {"Flatten", 1, import_flatten},
    {"Gather", 1, import_gather},
    {"GatherElements", 11, import_gather_elements},
    {"GatherND", 11, import_gather_nd},
    {"Gemm", 7, import_gemm},
    {"GlobalAveragePool", 1, import_global_average_pool},
    {"GlobalLpPool", 2, import_global_lp_pool},
    {"GlobalMaxPool", 1, import_global_max_pool},
    {"Identity", 1, import_identity},
    {"LRN", 1, import_lrn},
    {"LeakyRelu", 6, import_leaky_relu},
    {"Log", 6, import_unary<kLog>},
    {"LogSoftmax", 1, import_log_softmax},
    {"LpPool", 2, import_lp_pool},
    {"MatMul", 1, import_matmul},
    {"MaxPool", 1, import_max_pool},
    {"Mul", 7, import_binary<kMul>},
    {"Neg", 6, import_unary<kNeg>},
    {"NegativeLogLikelihoodLoss", 12, import_nll},
    {"NonZero", 9, import_folded_only},
    {"OneHot", 9, import_one_hot},
    {"Pad", 2, import_pad},
    {"Range", 11, import_folded_only},
    {"ReduceMean", 1, import_reduce_mean},
    {"Relu", 6, import_unary<kRelu>},
    {"Reshape", 5, import_reshape},
    {"Resize", 10, import_resize},
    {"Scatter", 9, import_scatter_elements},
    {"ScatterElements", 11, import_scatter_elements},
    {"ScatterND", 11, import_scatter_nd},
    {"Shape", 1, import_folded_only},
    {"Sigmoid", 6, import_unary<kSigmoid>},
    {"Size", 1, import_folded_only},
    {"Slice", 1, import_slice},
    {"Softmax", 1, import_plain_softmax},
    {"SoftmaxCrossEntropyLoss", 12, import_softmax_cross_entropy},
    {"SpaceToDepth", 1, import_space_to_depth},
    {"Split", 2, import_split},
    {"Sqrt", 6, import_unary<kSqrt>},
    {"Squeeze", 1, import_squeeze},
    {"Sub", 7, import_binary<kSub>},
    {"Sum", 8, import_sum},
    {"Tanh", 6, import_unary<kTanh>},
    {"Tile", 6, import_tile},
    {"TopK", 1, import_top_k},
    {"Transpose", 1, import_transpose},
    {"Trilu", 14, import_trilu},
    {"Unsqueeze", 1, import_unsqueeze},
    {"Upsample", 7, import_upsample},
};

}  // namespace

const NodeRule* find_rule(std::string_view type) {
  const auto at = std::find_if(std::begin(kRules), std::end(kRules),
                               [type](const NodeRule& r) { return r.type == type; });
  return at == std::end(kRules) ? nullptr : at;
}

}  // namespace ff::onnx_import
