// Translation of elementwise nodes: functions, arithmetic, logic, choices, casts. Their names are those of
// the op table, but for exponents that are constant.

#include <cmath>
#include <limits>

#include "compiler/base/model_data.h"
#include "compiler/onnx/rules.h"

namespace ff::onnx_import {

void import_function(Node& node) {
  node.result(node.emit(node.proto().op_type(), {}, {node.operand(0, Use::elementwise)}));
}

/// With alpha, beta or gamma, each as the attribute says or ONNX's default.
void import_parametrised(Node& node) {
  struct Defaults {
    std::string_view type;
    double alpha, beta, gamma;
  };
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  constexpr Defaults kDefaults[] = {
      {"Celu", 1, kNone, kNone},
      {"Elu", 1, kNone, kNone},
      {"HardSigmoid", 0.2, 0.5, kNone},
      {"LeakyRelu", 0.01, kNone, kNone},
      {"Selu", 1.67326319217681884765625, kNone, 1.05070102214813232421875},
      {"Swish", 1, kNone, kNone},
      {"ThresholdedRelu", 1, kNone, kNone},
  };
  Attributes attributes;
  for (const Defaults& d : kDefaults) {
    if (d.type != node.proto().op_type()) continue;
    attributes.set("alpha", node.real("alpha", d.alpha));
    if (!std::isnan(d.beta)) attributes.set("beta", node.real("beta", d.beta));
    if (!std::isnan(d.gamma)) attributes.set("gamma", node.real("gamma", d.gamma));
  }
  node.result(node.emit(node.proto().op_type(), attributes, {node.operand(0, Use::elementwise)}));
}

void import_shrink(Node& node) {
  const Attributes attributes{{"alpha", node.real("lambd", 0.5)}, {"beta", node.real("bias", 0)}};
  node.result(node.emit("Shrink", attributes, {node.operand(0)}));
}

void import_gelu(Node& node) {
  const std::string form = node.string("approximate", "none");
  if (form != "none" && form != "tanh") throw UserError("has no approximation '" + form + "'");
  Attributes attributes;
  if (form == "tanh") attributes.set("tanh", int64_t{1});
  node.result(node.emit("Gelu", attributes, {node.operand(0)}));
}

void import_is_infinite(Node& node) {
  const Attributes attributes{{"detect_positive", node.integer("detect_positive", 1)},
                              {"detect_negative", node.integer("detect_negative", 1)}};
  node.result(node.emit("IsInf", attributes, {node.operand(0)}));
}

void import_clip(Node& node) {
  double low = node.real("min", -INFINITY);
  double high = node.real("max", INFINITY);
  if (node.has(1)) low = node.required(1, "min").real(0);
  if (node.has(2)) high = node.required(2, "max").real(0);
  node.result(node.emit("Clip", {{"min", low}, {"max", high}}, {node.operand(0, Use::elementwise)}));
}

void import_binary(Node& node) {
  node.result(node.emit(node.proto().op_type(), {},
                        {node.operand(0, Use::elementwise), node.operand(1, Use::elementwise)}));
}

void import_mod(Node& node) {
  if (node.integer("fmod", 0) == 0 && is_float(node.dtype(0))) throw UserError("of floats must say fmod=1");
  node.result(node.emit("Mod", {{"fmod", node.integer("fmod", 0)}}, {node.operand(0), node.operand(1)}));
}

/// Squares, roots and reciprocals are functions of their own.
void import_pow(Node& node) {
  const TensorId x = node.operand(0, Use::elementwise);
  const DType type = node.graph().tensor(x).dtype;
  if (const auto exponent = node.constant(1); exponent && exponent->size() == 1 && is_float(type)) {
    const double e = exponent->real(0);
    if (exponent->shape.size() <= node.shape(0).size()) {
      const char* name = e == 2 ? "Square" : e == 0.5 ? "Sqrt" : e == -1 ? "Reciprocal" : nullptr;
      if (name != nullptr) return node.result(node.emit(name, {}, {x}));
    }
  }
  TensorId exponent = node.operand(1, Use::elementwise);
  if (node.graph().tensor(exponent).dtype != type)
    exponent = node.emit("Cast", {{"to", static_cast<int64_t>(type)}}, {exponent}, "exponent");
  node.result(node.emit("Pow", {}, {x, exponent}));
}

/// Of any number of operands, two at a time.
TensorId fold_operands(Node& node, const std::string& type, const std::string& last) {
  TensorId out = node.operand(0, Use::elementwise);
  if (node.input_count() == 1) return node.emit("Identity", {}, {out}, last);
  for (int i = 1; i < node.input_count(); ++i) {
    const std::string part = i + 1 == node.input_count() ? last : "part" + std::to_string(i);
    out = node.emit(type, {}, {out, node.operand(i, Use::elementwise)}, part);
  }
  return out;
}

void import_sum(Node& node) { node.result(fold_operands(node, "Add", "")); }
void import_extremum(Node& node) { node.result(fold_operands(node, node.proto().op_type(), "")); }
void import_mean(Node& node) {
  const TensorId sum = fold_operands(node, "Add", "sum");
  const TensorId factor = node.scalar("factor", 1.0 / node.input_count(), node.graph().tensor(sum).dtype);
  node.result(node.emit("Mul", {}, {sum, factor}));
}

void import_where(Node& node) {
  node.result(node.emit(
      "Where", {}, {node.operand(0), node.operand(1, Use::elementwise), node.operand(2, Use::elementwise)}));
}

namespace {

/// Halves and bfloat16 are computed as float32: to them there is nothing to do.
void cast_to(Node& node, DType type) {
  if (type == DType::f16 || type == DType::bf16) type = DType::f32;
  const bool weight = node.value(0).kind == Value::Kind::weight;
  if (weight && is_float(type) && type != DType::f64) return node.alias();
  if (node.dtype(0) == type) return node.result(node.emit("Identity", {}, {node.operand(0)}));
  node.result(node.emit("Cast", {{"to", static_cast<int64_t>(type)}}, {node.operand(0)}));
}

}  // namespace

void import_cast(Node& node) {
  const int64_t to = node.integer("to", 1);
  const auto type = dtype_of_onnx(static_cast<int>(to));
  if (!type) throw Unsupported("a cast to ONNX's type " + std::to_string(to));
  cast_to(node, *type);
}

void import_cast_like(Node& node) { cast_to(node, node.dtype(1)); }

}  // namespace ff::onnx_import
