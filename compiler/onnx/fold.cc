#include "compiler/onnx/fold.h"

#include <cmath>
#include <set>

#include "compiler/base/model_data.h"

namespace ff::onnx_import {
namespace {

/// Weights of so many elements at most are worked with as values; larger ones stay weights.
constexpr int64_t kLargest = int64_t{1} << 24;

void fold_shape(Node& node) {
  const Shape x = node.shape(0);
  const auto n = static_cast<int64_t>(x.size());
  int64_t start = node.integer("start", 0);
  int64_t end = node.integer("end", n);
  start = std::clamp<int64_t>(start < 0 ? start + n : start, 0, n);
  end = std::clamp<int64_t>(end < 0 ? end + n : end, 0, n);
  std::vector<int64_t> values;
  for (int64_t i = start; i < end; ++i) values.push_back(x[static_cast<size_t>(i)]);
  const auto count = static_cast<int64_t>(values.size());
  node.result(Constant::of_ints({count}, std::move(values)));
}

/// ONNX's value attribute: of a Constant node a constant or a weight.
bool fold_constant(Node& node) {
  if (const auto* a = node.attribute("value")) {
    node.weight(a->t(), node.proto().output(0));
    return true;
  }
  if (node.has_attribute("value_float"))
    return node.result(Constant::of_real(node.real("value_float", 0), DType::f32)), true;
  if (node.has_attribute("value_int"))
    return node.result(Constant::of_ints({}, {node.integer("value_int", 0)})), true;
  if (node.has_attribute("value_ints")) {
    Ints values = node.ints("value_ints", {});
    const auto count = static_cast<int64_t>(values.size());
    return node.result(Constant::of_ints({count}, std::move(values))), true;
  }
  if (const auto* a = node.attribute("value_floats")) {
    Constant c{.dtype = DType::f32, .shape = {a->floats_size()}, .ints = {}, .reals = {}};
    c.reals.assign(a->floats().begin(), a->floats().end());
    return node.result(std::move(c)), true;
  }
  throw Unsupported("a constant that is neither tensor nor number");
}

Constant fill_value(const Node& node) {
  const auto* a = node.attribute("value");
  if (a == nullptr) return Constant::of_real(0, DType::f32);
  Initializer data;
  read_initializer(a->t(), "the model", data);
  return Constant::of_bytes({}, data.dtype, data.bytes);
}

/// Integers are a constant; floats are a weight that is not in the file, until something folds them.
void fold_constant_of_shape(Node& node) {
  const Constant shape = node.required(0, "the shape");
  const Constant value = fill_value(node);
  Shape out;
  for (int64_t i = 0; i < shape.size(); ++i) out.push_back(shape.integer(i));
  if (!is_float(value.dtype)) {
    node.result(generate_integers(value.dtype, out, [&](int64_t) { return value.integer(0); }));
    return;
  }
  auto weight = std::make_shared<Weight>();
  weight->name = node.proto().output(0);
  weight->shape = out;
  weight->dtype = value.dtype;
  weight->source.kind = ParameterSource::Kind::fill;
  weight->source.fill = value.real(0);
  weight->source.model_name = weight->name;
  weight->source.model_shape = out;
  weight->source.model_dtype = value.dtype;
  node.result(Value::of(std::move(weight)));
}

/// Ones on a diagonal, of the shape of the input, whose values do not matter.
void fold_eye_like(Node& node) {
  const Shape shape = node.shape(0);
  if (shape.size() != 2) throw UserError("the input has shape " + to_string(shape) + "; it must be a matrix");
  const auto type = node.has_attribute("dtype") ? dtype_of_onnx(static_cast<int>(node.integer("dtype", 1)))
                                                : std::optional(node.dtype(0));
  if (!type) throw Unsupported("its type");
  const int64_t k = node.integer("k", 0);
  const auto on = [&](int64_t i) { return i % shape[1] - i / shape[1] == k; };
  node.result(is_float(*type) ? generate(*type, shape, [&](int64_t i) { return on(i) ? 1.0 : 0.0; })
                              : generate_integers(*type, shape, [&](int64_t i) { return on(i) ? 1 : 0; }));
}

/// What has no gradient is folded of weights too: a mask is compared, not trained.
bool compares(const std::string& op) {
  static const std::set<std::string_view> ops{
      "And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Not", "Or", "Xor"};
  return ops.contains(op);
}

/// Folded without a constant among the inputs: masks are made of fills, ranges of numbers.
bool folds_fills(const std::string& op) {
  return compares(op) || op == "Cast" || op == "Range" || op == "Trilu" || op == "Where";
}

/// A folded constant, also once an op has read it as data.
bool is_folded(const Value& v) {
  return v.kind == Value::Kind::constant ||
         (v.kind == Value::Kind::weight && v.weight->source.kind == ParameterSource::Kind::inlined);
}

/// What an input is worth now: a folded constant, a number that no rule trains (of rank 0), or a fill. Only
/// what has at least one folded constant is folded: a weight by itself, moved about, stays one.
std::optional<Constant> known_value(const Node& node, int input, bool scales) {
  const Value& v = node.value(input);
  if (is_folded(v)) return node.constant(input, kLargest);
  if (v.kind != Value::Kind::weight) return std::nullopt;
  const bool fill = v.weight->source.kind == ParameterSource::Kind::fill;
  if (fill || scales || v.weight->shape.empty() || compares(node.proto().op_type()))
    return node.constant(input, kLargest);
  return std::nullopt;
}

}  // namespace

Constant generate(DType dtype, Shape shape, const std::function<double(int64_t)>& value) {
  Constant out{.dtype = dtype, .shape = std::move(shape), .ints = {}, .reals = {}};
  for (int64_t i = 0, n = out.size(); i < n; ++i) out.reals.push_back(value(i));
  return out;
}

Constant generate_integers(DType dtype, Shape shape, const std::function<int64_t(int64_t)>& value) {
  Constant out{.dtype = dtype, .shape = std::move(shape), .ints = {}, .reals = {}};
  for (int64_t i = 0, n = out.size(); i < n; ++i) out.ints.push_back(value(i));
  return out;
}

Constant select(const Constant& x, Shape shape, const std::function<int64_t(int64_t)>& from) {
  if (is_float(x.dtype))
    return generate(x.dtype, std::move(shape), [&](int64_t i) { return x.real(from(i)); });
  return generate_integers(x.dtype, std::move(shape), [&](int64_t i) { return x.integer(from(i)); });
}

Shape index_of(int64_t linear, const Shape& shape) {
  Shape index(shape.size());
  for (size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = linear % shape[axis];
    linear /= shape[axis];
  }
  return index;
}

int64_t linear_of(const Shape& index, const Shape& shape) {
  int64_t linear = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) linear = linear * shape[axis] + index[axis];
  return linear;
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()), 1);
  for (const Shape* s : {&a, &b}) {
    for (size_t i = 0; i < s->size(); ++i) {
      int64_t& extent = out[out.size() - s->size() + i];
      if ((*s)[i] == extent || (*s)[i] == 1) continue;
      if (extent != 1)
        throw UserError("shapes " + to_string(a) + " and " + to_string(b) + " do not broadcast");
      extent = (*s)[i];
    }
  }
  return out;
}

int64_t broadcast_place(const Shape& index, const Shape& shape) {
  const size_t shift = index.size() - shape.size();
  int64_t linear = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    linear = linear * shape[axis] + (shape[axis] == 1 ? 0 : index[axis + shift]);
  return linear;
}

bool fold(Node& node) {
  const std::string& op = node.proto().op_type();
  if (op == "Constant") return fold_constant(node);
  if (op == "ConstantOfShape") return fold_constant_of_shape(node), true;
  if (op == "Shape") return fold_shape(node), true;
  if (op == "Size") return node.result(Constant::of_ints({}, {volume(node.shape(0))})), true;
  if (op == "EyeLike") return fold_eye_like(node), true;
  if (op == "Identity" || node.input_count() == 0) return false;  // the rule gives the value another name
  Constants inputs;
  // PyTorch concatenates the scales of a resize.
  const bool scales = op == "Concat" && node.gives_scales();
  bool any = scales || folds_fills(op);
  for (int i = 0; i < node.input_count(); ++i) {
    if (!node.has(i)) continue;
    any |= is_folded(node.value(i));
  }
  const int read = op == "CastLike" ? 1 : node.input_count();  // of its second only the type
  for (int i = 0; any && i < read; ++i) {
    if (!node.has(i)) continue;
    auto value = known_value(node, i, scales);
    if (!value) return false;
    inputs.push_back(std::move(*value));
  }
  return any && (fold_values(node, inputs) || fold_moves(node, inputs));
}

}  // namespace ff::onnx_import
