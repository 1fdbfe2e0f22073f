// Translation of SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss (opset 12). Classes are axis 1; scores
// of more axes have a label at every place of an image.
//
// A sum or a mean is the op table's loss op. With class weights or an ignored label a mean is divided by what
// LossCount gives: the sum of the weights of the labels that count. A loss a label is, of scores [n, c, h]:
//
//   labels [n, h] as [n, 1, h];   Neg(GatherElements(LogSoftmax(scores), labels)) times Gather(weights,
//   labels), 0 where the label is ignored;   as [n, h]

#include <optional>

#include "compiler/onnx/rules.h"

namespace ff::onnx_import {
namespace {

constexpr int64_t kClasses = 1;  // their axis

std::optional<int64_t> ignored_label(const Node& node) {
  if (!node.has_attribute("ignore_index")) return std::nullopt;
  return node.integer("ignore_index", 0);
}

void check_shapes(const Node& node) {
  const Shape scores = node.shape(0);
  if (scores.size() < 2) throw UserError("the scores have shape " + to_string(scores) + ", without classes");
  Shape labels = scores;
  labels.erase(labels.begin() + kClasses);
  if (node.shape(1) != labels)
    throw UserError("the labels have shape " + to_string(node.shape(1)) + "; scores of " + to_string(scores) +
                    " take " + to_string(labels));
  if (node.has(2) && node.shape(2) != Shape{scores[kClasses]})
    throw UserError("the class weights have shape " + to_string(node.shape(2)) + "; scores of " +
                    to_string(scores) + " take " + std::to_string(scores[kClasses]));
}

void import_total(Node& node, const char* type, bool mean) {
  const auto ignored = ignored_label(node);
  const TensorId labels = node.operand(1), weights = node.operand(2);
  Attributes counted{{"float64", int64_t{node.dtype(0) == DType::f64}}};
  if (ignored) counted.set("ignore_index", *ignored);
  const bool divided = mean && (ignored || node.has(2));
  TensorId count;
  if (divided) count = node.emit("LossCount", counted, {labels, weights}, "count");
  Attributes attributes{{"axis", kClasses},
                        {"classes", node.shape(0)[kClasses]},
                        {"label_smoothing", 0.0},
                        {"weight", 1.0},
                        {"scale", mean && !divided ? 1.0 / static_cast<double>(volume(node.shape(1))) : 1.0}};
  if (ignored) attributes.set("ignore_index", *ignored);
  node.emit_output(0, type, attributes, {node.operand(0), labels, weights, count});
}

/// Without a reduction.
void import_each(Node& node, TensorId log_probabilities) {
  const auto ignored = ignored_label(node);
  const DType type = node.graph().tensor(log_probabilities).dtype;
  Shape column = node.shape(1);
  column.insert(column.begin() + kClasses, 1);
  TensorId labels = node.emit("Reshape", {{"shape", column}}, {node.operand(1)}, "labels");
  TensorId is_ignored;
  if (ignored) {  // which may be no class: in its place one is
    Constant label = Constant::of_ints({}, {*ignored}), any = Constant::of_ints({}, {0});
    label.dtype = any.dtype = node.dtype(1);
    is_ignored = node.emit("Equal", {}, {labels, node.frozen("ignored", label)}, "is_ignored");
    labels = node.emit("Where", {}, {is_ignored, node.frozen("any", any), labels}, "classes");
  }
  TensorId loss = node.emit("GatherElements", {{"axis", kClasses}}, {log_probabilities, labels}, "picked");
  loss = node.emit("Neg", {}, {loss}, "likelihood");
  if (node.has(2)) {
    const TensorId weights =
        node.emit("Gather", {{"axis", int64_t{0}}}, {node.operand(2), labels}, "weights");
    loss = node.emit("Mul", {}, {loss, weights}, "weighted");
  }
  if (ignored) loss = node.emit("Where", {}, {is_ignored, node.scalar("none", 0, type), loss}, "counted");
  node.emit_output(0, "Reshape", {{"shape", node.shape(1)}}, {loss});
}

/// Whether the losses are averaged; none: not reduced.
std::optional<bool> averages(const Node& node) {
  const std::string reduction = node.string("reduction", "mean");
  if (reduction == "none") return std::nullopt;
  if (reduction != "mean" && reduction != "sum") throw UserError("has no reduction '" + reduction + "'");
  return reduction == "mean";
}

}  // namespace

void import_nll(Node& node) {
  check_shapes(node);
  const auto mean = averages(node);
  if (!mean) return import_each(node, node.operand(0));
  import_total(node, "NegativeLogLikelihood", *mean);
}

/// The second output is the logarithm of the probabilities.
void import_softmax_cross_entropy(Node& node) {
  check_shapes(node);
  const auto mean = averages(node);
  const Attributes axis{{"axis", kClasses}};
  TensorId logs;
  if (node.output_used(1)) logs = node.emit_output(1, "LogSoftmax", axis, {node.operand(0)});
  if (mean) return import_total(node, "SoftmaxCrossEntropy", *mean);
  if (!logs.valid()) logs = node.emit("LogSoftmax", axis, {node.operand(0)}, "logs");
  import_each(node, logs);
}

}  // namespace ff::onnx_import
