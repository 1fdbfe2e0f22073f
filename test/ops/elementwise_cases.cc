// Cases of ops over broadcast operands: arithmetic, functions, logic, reductions, and the normalisation of
// positions.
#include "test/ops/op_cases.h"

namespace ff::test {
namespace {

constexpr const char* kSeldom = "random floats seldom differ in this";
constexpr const char* kOneMaximum = "a maximum is one element of those that are read";
const std::pair<Shape, Shape> kBroadcasts[] = {
    {{2, 3}, {2, 3}}, {{2, 1, 3}, {4, 1}}, {{3, 2, 2, 2}, {2, 1, 1}}, {{}, {3, 2}}, {{1, 3}, {2, 3}}};

void add_arithmetic(std::vector<OpCase>& out) {
  for (const char* type : {"Add", "Sub", "Mul", "Div", "Pow"}) {
    for (const auto& [a, b] : kBroadcasts)
      out.push_back({.op = {type, {}, {{"a", a}, {"b", b}}}, .wanted = {0, 1}, .positive = true});
  }
  // Around 0: ties, slopes and signs that differ.
  for (const char* type : {"Max", "Min"}) {
    for (const auto& [a, b] : kBroadcasts)
      out.push_back({.op = {type, {}, {{"a", a}, {"b", b}}}, .wanted = {0, 1}});
  }
  for (const Shape& slope : {Shape{2, 3, 2}, Shape{3, 1}, Shape{}})
    out.push_back({.op = {"PRelu", {}, {{"x", {2, 3, 2}}, {"slope", slope}}}, .wanted = {0, 1}});
  for (int64_t fmod : {0, 1})
    out.push_back({.op = {"Mod", {{"fmod", fmod}}, {{"a", {3, 4}}, {"b", {4}}}}, .wanted = {}});
  out.push_back({.op = {"Add", {{"relu", int64_t{1}}}, {{"a", {3, 4}}, {"b", {3, 1}}}}, .wanted = {0, 1}});
}

void add_functions(std::vector<OpCase>& out) {
  const auto add = [&](const char* type, const Attributes& attributes, bool positive = false) {
    out.push_back({.op = {type, attributes, {{"x", {2, 3, 2}}}}, .wanted = {0}, .positive = positive});
  };
  for (const char* type : {"Identity", "Neg",  "Relu", "Sigmoid",  "Tanh",     "Exp",    "Abs",
                           "Asinh",    "Atan", "Cos",  "Cosh",     "Erf",      "Gelu",   "HardSwish",
                           "Mish",     "Sin",  "Sinh", "Softplus", "Softsign", "Square", "Tan"})
    add(type, {});
  for (const char* type : {"Ceil", "Floor", "Round", "Sign"})
    out.push_back({.op = {type, {}, {{"x", {3, 4}}}}, .wanted = {}});
  for (const char* type : {"Sqrt", "Log", "Reciprocal"}) add(type, {}, true);
  add("Gelu", {{"tanh", int64_t{1}}});
  add("LeakyRelu", {{"alpha", 0.3}});
  add("Clip", {{"min", -0.5}, {"max", 0.75}});
  add("Elu", {{"alpha", 0.7}});
  add("Celu", {{"alpha", 0.7}});
  add("Selu", {{"alpha", 1.6}, {"gamma", 1.1}});
  add("HardSigmoid", {{"alpha", 0.3}, {"beta", 0.4}});
  add("Swish", {{"alpha", 1.3}});
  add("ThresholdedRelu", {{"alpha", 0.4}});
  add("Shrink", {{"alpha", 0.5}, {"beta", 0.2}});
  // Inside of (-1, 1), and beyond 1.
  for (const char* type : {"Asin", "Acos", "Atanh"})
    out.push_back({.op = {type, {}, {{"x", {2, 3, 2}}}}, .wanted = {0}, .scale = 0.2});
  out.push_back({.op = {"Acosh", {}, {{"x", {2, 3, 2}}}}, .wanted = {0}, .positive = true, .scale = 3});
}

void add_logic(std::vector<OpCase>& out) {
  for (const char* type : {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"}) {
    out.push_back({.op = {type, {}, {{"a", {3, 4}}, {"b", {4}}}},
                   .wanted = {},
                   .inexact = std::string_view(type) == "Equal" ? kSeldom : ""});
    out.push_back({.op = {type, {}, {{"a", {3, 1}, DType::i64}, {"b", {3, 4}, DType::i64}}},
                   .wanted = {},
                   .classes = 3});
  }
  for (const char* type : {"And", "Or", "Xor"})
    out.push_back({.op = {type, {}, {{"a", {3, 1}, DType::boolean}, {"b", {4}, DType::boolean}}},
                   .wanted = {},
                   .classes = 2});
  out.push_back({.op = {"Not", {}, {{"x", {3, 4}, DType::boolean}}}, .wanted = {}, .classes = 2});
  for (const char* type : {"IsNaN", "IsInf"})
    out.push_back({.op = {type, {}, {{"x", {3, 4}}}}, .wanted = {}, .inexact = kSeldom});
  const auto where = [&](const Shape& condition, const Shape& a, const Shape& b) {
    out.push_back({.op = {"Where", {}, {{"c", condition, DType::boolean}, {"a", a}, {"b", b}}},
                   .wanted = {1, 2},
                   .classes = 2});
  };
  where({3, 4}, {3, 4}, {3, 4});
  where({3, 1}, {4}, {2, 3, 4});
  where({2, 3}, {}, {3});
}

}  // namespace

void add_elementwise(std::vector<OpCase>& out) {
  add_arithmetic(out);
  add_functions(out);
  add_logic(out);
  const auto to = [](DType type) { return Attributes{{"to", static_cast<int64_t>(type)}}; };
  for (DType type : {DType::f32, DType::i64, DType::boolean})
    out.push_back({.op = {"Cast", to(type), {{"x", {3, 4}}}},
                   .wanted = {},
                   .inexact = type == DType::f32 ? "" : kSeldom});
  out.push_back({.op = {"Cast", to(DType::f64), {{"x", {3, 4}}}}, .wanted = {0}});
  for (const Shape& x : {Shape{2, 3, 3, 2}, Shape{12}})
    out.push_back({.op = {"Dropout", {{"ratio", 0.4}, {"op_key", int64_t{7}}}, {{"x", x}}}, .wanted = {0}});
}

void add_reductions(std::vector<OpCase>& out) {
  for (const Ints& axes : {Ints{0}, Ints{1, 3}, Ints{0, 1, 2, 3}, Ints{3}, Ints{}}) {
    const std::vector<Input> x{{"x", {2, 3, 2, 3}}};
    out.push_back({.op = {"ReduceSum", {{"axes", axes}, {"scale", 0.25}}, x}, .wanted = {0}});
    out.push_back({.op = {"ReduceMax", {{"axes", axes}}, x}, .wanted = {0}, .inexact = kOneMaximum});
    if (!axes.empty())
      out.push_back({.op = {"ReduceProd", {{"axes", axes}}, x}, .wanted = {0}, .positive = true});
  }
  for (const auto& [axis, inner] : {std::pair{2, Shape{4}}, {1, Shape{3, 4}}}) {
    for (bool affine : {true, false}) {
      const Attributes attributes{{"axis", int64_t{axis}}, {"epsilon", 1e-3}};
      const std::vector<size_t> wanted = affine ? std::vector<size_t>{0, 1, 2} : std::vector<size_t>{0};
      const Input x{"x", {2, 3, 4}}, scale{affine ? "scale" : "", inner}, bias{affine ? "bias" : "", inner};
      out.push_back({.op = {"LayerNorm", attributes, {x, scale, bias}}, .wanted = wanted});
      std::vector<size_t> without_bias = wanted;
      if (affine) without_bias.pop_back();
      out.push_back({.op = {"RMSNorm", attributes, {x, scale}}, .wanted = without_bias});
    }
  }
}

}  // namespace ff::test
