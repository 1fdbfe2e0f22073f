// The translation table: one row an ONNX op.

#include "compiler/onnx/rules.h"

#include <cmath>

#include "compiler/base/hash.h"

namespace ff::onnx_import {
namespace {

/// A weight keeps what it is under another name: exporters tie weights so.
void import_identity(Node& node) { node.alias(); }

void import_dropout(Node& node) {
  double ratio = node.real("ratio", 0.5);
  if (node.has(1)) ratio = node.required(1, "the ratio").real(0);
  // Since opset 12 a node says whether it drops; before, training did.
  bool training = node.opset() < 12;
  if (node.has(2)) training = node.required(2, "training_mode").integer(0) != 0;
  node.leave_out(1, "its second output, the mask, is used");
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

/// What `emit` makes of the input along its axis of classes. Before opset 13 that was all axes from `axis`
/// on, 1 by default, as one.
void import_along_classes(Node& node,
                          const std::function<TensorId(TensorId, int64_t, const std::string&)>& emit) {
  const Shape x = node.shape(0);
  const int64_t axis = positive_axis(node.integer("axis", node.opset() >= 13 ? -1 : 1), x.size());
  if (node.opset() >= 13 || axis + 1 == static_cast<int64_t>(x.size()))
    return node.result(emit(node.operand(0), axis, ""));
  int64_t outer = 1;
  for (int64_t i = 0; i < axis; ++i) outer *= x[static_cast<size_t>(i)];
  TensorId y = node.emit("Reshape", {{"shape", Shape{outer, volume(x) / outer}}}, {node.operand(0)}, "flat");
  y = emit(y, 1, "along");
  node.result(node.emit("Reshape", {{"shape", x}}, {y}));
}

void import_softmax(Node& node, const char* type) {
  import_along_classes(node, [&](TensorId x, int64_t axis, const std::string& part) {
    return node.emit(type, {{"axis", axis}}, {x}, part);
  });
}

void import_plain_softmax(Node& node) { import_softmax(node, "Softmax"); }
void import_log_softmax(Node& node) { import_softmax(node, "LogSoftmax"); }

/// The first of the largest elements is 1.
void import_hardmax(Node& node) {
  const auto type = static_cast<int64_t>(node.dtype(0));
  import_along_classes(node, [&](TensorId x, int64_t axis, const std::string& part) {
    const int64_t classes = node.graph().tensor(x).shape[static_cast<size_t>(axis)];
    const TensorId largest = node.emit("ArgMax", {{"axis", axis}, {"keepdims", int64_t{0}}}, {x}, "largest");
    return node.emit("OneHot",
                     {{"axis", axis}, {"depth", classes}, {"off", 0.0}, {"on", 1.0}, {"dtype", type}},
                     {largest}, part);
  });
}

constexpr NodeRule kRules[] = {
    {"Abs", 6, import_function},
    {"Acos", 7, import_function},
    {"Acosh", 9, import_function},
    {"Add", 7, import_binary},
    {"And", 7, import_binary},
    {"ArgMax", 1, import_arg_max},
    {"ArgMin", 1, import_arg_min},
    {"Asin", 7, import_function},
    {"Asinh", 9, import_function},
    {"Atan", 7, import_function},
    {"Atanh", 9, import_function},
    {"Attention", 23, import_attention},
    {"AveragePool", 1, import_average_pool},
    {"BatchNormalization", 7, import_batch_normalization},
    {"Cast", 6, import_cast},
    {"CastLike", 15, import_cast_like},
    {"Ceil", 6, import_function},
    {"Celu", 12, import_parametrised},
    {"Clip", 6, import_clip},
    {"Concat", 4, import_concat},
    {"Constant", 1, import_folded_only},
    {"ConstantOfShape", 9, import_folded_only},
    {"Conv", 1, import_conv},
    {"ConvTranspose", 1, import_conv_transpose},
    {"Cos", 7, import_function},
    {"Cosh", 9, import_function},
    {"CumSum", 11, import_cumsum},
    {"DepthToSpace", 1, import_depth_to_space},
    {"Div", 7, import_binary},
    {"Dropout", 7, import_dropout},
    {"Einsum", 12, import_einsum},
    {"Elu", 6, import_parametrised},
    {"Equal", 7, import_binary},
    {"Erf", 9, import_function},
    {"Exp", 6, import_function},
    {"Expand", 8, import_expand},
    {"EyeLike", 9, import_folded_only},
    {"Flatten", 1, import_flatten},
    {"Floor", 6, import_function},
    {"Gather", 1, import_gather},
    {"GatherElements", 11, import_gather_elements},
    {"GRU", 7, import_recurrent},
    {"GatherND", 11, import_gather_nd},
    {"Gelu", 20, import_gelu},
    {"Gemm", 7, import_gemm},
    {"GlobalAveragePool", 1, import_global_average_pool},
    {"GlobalLpPool", 2, import_global_lp_pool},
    {"GlobalMaxPool", 1, import_global_max_pool},
    {"Greater", 7, import_binary},
    {"GreaterOrEqual", 12, import_binary},
    {"GroupNormalization", 18, import_group_normalization},
    {"HardSigmoid", 6, import_parametrised},
    {"HardSwish", 14, import_function},
    {"Hardmax", 1, import_hardmax},
    {"Identity", 1, import_identity},
    {"If", 1, import_if},
    {"InstanceNormalization", 6, import_instance_normalization},
    {"IsInf", 10, import_is_infinite},
    {"IsNaN", 9, import_function},
    {"LRN", 1, import_lrn},
    {"LayerNormalization", 17, import_layer_normalization},
    {"LSTM", 7, import_recurrent},
    {"LeakyRelu", 6, import_parametrised},
    {"Less", 7, import_binary},
    {"LessOrEqual", 12, import_binary},
    {"Log", 6, import_function},
    {"LogSoftmax", 1, import_log_softmax},
    {"LpNormalization", 1, import_lp_normalization},
    {"LpPool", 2, import_lp_pool},
    {"MatMul", 1, import_matmul},
    {"Loop", 1, import_loop},
    {"Max", 8, import_extremum},
    {"MaxPool", 1, import_max_pool},
    {"Mean", 8, import_mean},
    {"MeanVarianceNormalization", 9, import_mean_variance_normalization},
    {"Min", 8, import_extremum},
    {"Mish", 18, import_function},
    {"Mod", 10, import_mod},
    {"Mul", 7, import_binary},
    {"Neg", 6, import_function},
    {"NegativeLogLikelihoodLoss", 12, import_nll},
    {"NonZero", 9, import_folded_only},
    {"Not", 1, import_function},
    {"OneHot", 9, import_one_hot},
    {"Or", 7, import_binary},
    {"PRelu", 7, import_binary},
    {"Pad", 2, import_pad},
    {"Pow", 7, import_pow},
    {"RMSNormalization", 23, import_layer_normalization},
    {"RNN", 7, import_recurrent},
    {"Range", 11, import_folded_only},
    {"Reciprocal", 6, import_function},
    {"ReduceL1", 1, import_reduce_l1},
    {"ReduceL2", 1, import_reduce_l2},
    {"ReduceLogSum", 1, import_reduce_log_sum},
    {"ReduceLogSumExp", 1, import_reduce_log_sum_exp},
    {"ReduceMax", 1, import_reduce_max},
    {"ReduceMean", 1, import_reduce_mean},
    {"ReduceMin", 1, import_reduce_min},
    {"ReduceProd", 1, import_reduce_prod},
    {"ReduceSum", 1, import_reduce_sum},
    {"ReduceSumSquare", 1, import_reduce_sum_square},
    {"Relu", 6, import_function},
    {"Reshape", 5, import_reshape},
    {"Resize", 10, import_resize},
    {"ReverseSequence", 10, import_reverse_sequence},
    {"RotaryEmbedding", 23, import_rotary_embedding},
    {"Round", 11, import_function},
    {"Scatter", 9, import_scatter_elements},
    {"ScatterElements", 11, import_scatter_elements},
    {"ScatterND", 11, import_scatter_nd},
    {"Selu", 6, import_parametrised},
    {"Shape", 1, import_folded_only},
    {"Shrink", 9, import_shrink},
    {"Sigmoid", 6, import_function},
    {"Sign", 9, import_function},
    {"Sin", 7, import_function},
    {"Sinh", 9, import_function},
    {"Size", 1, import_folded_only},
    {"Slice", 1, import_slice},
    {"Softmax", 1, import_plain_softmax},
    {"SoftmaxCrossEntropyLoss", 12, import_softmax_cross_entropy},
    {"Softplus", 1, import_function},
    {"Softsign", 1, import_function},
    {"SpaceToDepth", 1, import_space_to_depth},
    {"Split", 2, import_split},
    {"Sqrt", 6, import_function},
    {"Squeeze", 1, import_squeeze},
    {"Sub", 7, import_binary},
    {"Sum", 8, import_sum},
    {"Swish", 24, import_parametrised},
    {"Tan", 7, import_function},
    {"Tanh", 6, import_function},
    {"ThresholdedRelu", 10, import_parametrised},
    {"Tile", 6, import_tile},
    {"TopK", 1, import_top_k},
    {"Transpose", 1, import_transpose},
    {"Trilu", 14, import_trilu},
    {"Unsqueeze", 1, import_unsqueeze},
    {"Upsample", 7, import_upsample},
    {"Where", 9, import_where},
    {"Xor", 7, import_binary},
};

/// Ops that are refused whatever is built: why.
constexpr std::pair<std::string_view, std::string_view> kRefused[] = {
    {"BitShift", "of bits"},
    {"BitwiseAnd", "of bits"},
    {"BitwiseNot", "of bits"},
    {"BitwiseOr", "of bits"},
    {"BitwiseXor", "of bits"},
    {"ConvInteger", "quantised integers are not trained"},
    {"DequantizeLinear", "quantised integers are not trained"},
    {"DynamicQuantizeLinear", "quantised integers are not trained"},
    {"MatMulInteger", "quantised integers are not trained"},
    {"NonMaxSuppression", "the shape of its result depends on the data"},
    {"QLinearConv", "quantised integers are not trained"},
    {"QLinearMatMul", "quantised integers are not trained"},
    {"QuantizeLinear", "quantised integers are not trained"},
    {"Compress", "the shape of its result depends on the data"},
    {"Scan", "control flow: only If and Loop are unrolled"},
    {"StringNormalizer", "of strings"},
    {"TfIdfVectorizer", "of strings"},
    {"Unique", "the shape of its result depends on the data"},
};

}  // namespace

std::string refusal_of(std::string_view type) {
  for (const auto& [refused, why] : kRefused) {
    if (refused == type) return std::string(why);
  }
  if (type.starts_with("Sequence") || type.starts_with("Optional") || type == "ConcatFromSequence" ||
      type == "SplitToSequence")
    return "of sequences and optional values, not of tensors";
  return "unknown operator";
}

const NodeRule* find_rule(std::string_view type) {
  const auto at = std::find_if(std::begin(kRules), std::end(kRules),
                               [type](const NodeRule& r) { return r.type == type; });
  return at == std::end(kRules) ? nullptr : at;
}

}  // namespace ff::onnx_import
