// Constant folding: shapes and axes that exporters compute in the graph, and constants.

#include <cmath>

#include "compiler/base/model_data.h"
#include "compiler/onnx/rules.h"

namespace ff::onnx_import {
namespace {

Constant integers(Shape shape, std::vector<int64_t> values) {
  return Constant::of_ints(std::move(shape), std::move(values));
}

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
  node.result(integers({count}, std::move(values)));
}

/// An arithmetic op on two broadcastable constants.
bool fold_arithmetic(Node& node, const Constant& a, const Constant& b) {
  const std::string& op = node.proto().op_type();
  const auto count = std::max(a.size(), b.size());
  if ((a.size() != count && a.size() != 1) || (b.size() != count && b.size() != 1)) return false;
  Constant out{.dtype = a.dtype, .shape = a.size() >= b.size() ? a.shape : b.shape, .ints = {}, .reals = {}};
  for (int64_t i = 0; i < count; ++i) {
    const int64_t ia = a.size() == 1 ? 0 : i;
    const int64_t ib = b.size() == 1 ? 0 : i;
    if (is_float(a.dtype)) {
      const double x = a.real(ia);
      const double y = b.real(ib);
      out.reals.push_back(op == "Add" ? x + y : op == "Sub" ? x - y : op == "Mul" ? x * y : x / y);
    } else {
      const int64_t x = a.integer(ia);
      const int64_t y = b.integer(ib);
      if (op == "Div" && y == 0) throw UserError("divides by zero");
      out.ints.push_back(op == "Add" ? x + y : op == "Sub" ? x - y : op == "Mul" ? x * y : x / y);
    }
  }
  node.result(std::move(out));
  return true;
}

bool fold_gather(Node& node, const Constant& data, const Constant& index) {
  if (data.shape.size() != 1) return false;
  Constant out{.dtype = data.dtype, .shape = index.shape, .ints = {}, .reals = {}};
  for (int64_t i = 0; i < index.size(); ++i) {
    int64_t at = index.integer(i);
    if (at < 0) at += data.size();
    if (at < 0 || at >= data.size())
      throw UserError("index " + std::to_string(index.integer(i)) + " is out of range");
    if (is_float(data.dtype)) {
      out.reals.push_back(data.real(at));
    } else {
      out.ints.push_back(data.integer(at));
    }
  }
  node.result(std::move(out));
  return true;
}

bool fold_concat(Node& node) {
  Constant out = node.required(0, "an operand");
  if (out.shape.size() != 1) return false;
  for (int i = 1; i < node.input_count(); ++i) {
    const Constant c = node.required(i, "an operand");
    out.ints.insert(out.ints.end(), c.ints.begin(), c.ints.end());
    out.reals.insert(out.reals.end(), c.reals.begin(), c.reals.end());
    out.shape[0] += c.shape[0];
  }
  node.result(std::move(out));
  return true;
}

bool fold_slice(Node& node, const Constant& x) {
  if (x.shape.size() != 1) return false;
  const auto starts = node.ints_of("starts", 1);
  const auto ends = node.ints_of("ends", 2);
  const Ints steps = node.ints_of("steps", 4).value_or(Ints{1});
  if (!starts || !ends || starts->size() != 1 || steps[0] != 1) return false;
  const auto clamp = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + x.size() : v, 0, x.size()); };
  Constant out{.dtype = x.dtype, .shape = {0}, .ints = {}, .reals = {}};
  for (int64_t i = clamp((*starts)[0]); i < clamp((*ends)[0]); ++i, ++out.shape[0]) {
    if (is_float(x.dtype)) {
      out.reals.push_back(x.real(i));
    } else {
      out.ints.push_back(x.integer(i));
    }
  }
  node.result(std::move(out));
  return true;
}

/// ONNX's value attribute: of a Constant node a constant or a weight.
bool fold_constant(Node& node) {
  if (const auto* a = node.attribute("value")) {
    node.weight(a->t(), node.proto().output(0));
    return true;
  }
  if (node.has_attribute("value_float"))
    return node.result(Constant::of_real(node.real("value_float", 0), DType::f32)), true;
  if (node.has_attribute("value_int")) return node.result(integers({}, {node.integer("value_int", 0)})), true;
  if (node.has_attribute("value_ints")) {
    Ints values = node.ints("value_ints", {});
    const auto count = static_cast<int64_t>(values.size());
    return node.result(integers({count}, std::move(values))), true;
  }
  throw Unsupported("a constant that is neither tensor nor number");
}

void fold_constant_of_shape(Node& node) {
  const Constant shape = node.required(0, "the shape");
  Constant value = Constant::of_real(0, DType::f32);
  if (const auto* a = node.attribute("value")) {
    Initializer data;
    read_initializer(a->t(), "the model", data);
    value = Constant::of_bytes({}, data.dtype, data.bytes);
  }
  Shape out;
  for (int64_t i = 0; i < shape.size(); ++i) out.push_back(shape.integer(i));
  if (!is_float(value.dtype)) {
    node.result(integers(out, std::vector<int64_t>(static_cast<size_t>(volume(out)), value.integer(0))));
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

/// The same values under another shape.
bool fold_reshaped(Node& node, Constant c) {
  const std::string& op = node.proto().op_type();
  if (op == "Unsqueeze") {
    c.shape.insert(c.shape.begin(), node.ints_of("axes", 1).value_or(Ints{}).size(), 1);
  } else if (op == "Squeeze") {
    std::erase(c.shape, 1);
  } else {
    const Constant wanted = node.required(1, "the shape");
    int64_t known = 1;
    Shape shape;
    for (int64_t i = 0; i < wanted.size(); ++i) shape.push_back(wanted.integer(i));
    for (int64_t d : shape) known *= d == -1 ? 1 : d;
    for (int64_t& d : shape) d = d == -1 ? c.size() / known : d;
    c.shape = shape;
  }
  node.result(std::move(c));
  return true;
}

bool fold_cast(Node& node, const Constant& c) {
  const auto type = dtype_of_onnx(static_cast<int>(node.integer("to", 1)));
  if (!type) return false;
  Constant out{.dtype = *type, .shape = c.shape, .ints = {}, .reals = {}};
  for (int64_t i = 0; i < c.size(); ++i) {
    if (is_float(*type)) {
      out.reals.push_back(c.real(i));
    } else {
      out.ints.push_back(c.integer(i));
    }
  }
  node.result(std::move(out));
  return true;
}

/// Only what is a folded constant already (not a weight that happens to be small) makes a node foldable.
bool all_constant(const Node& node) {
  if (node.input_count() == 0) return false;
  for (int i = 0; i < node.input_count(); ++i) {
    if (node.has(i) && node.value(i).kind != Value::Kind::constant) return false;
  }
  return true;
}

}  // namespace

bool fold(Node& node) {
  const std::string& op = node.proto().op_type();
  if (op == "Constant") return fold_constant(node);
  if (op == "ConstantOfShape") return fold_constant_of_shape(node), true;
  if (op == "Shape") return fold_shape(node), true;
  if (!all_constant(node)) return false;
  const Constant first = node.required(0, "an operand");
  if (op == "Add" || op == "Sub" || op == "Mul" || op == "Div")
    return fold_arithmetic(node, first, node.required(1, "an operand"));
  if (op == "Gather") return fold_gather(node, first, node.required(1, "the index"));
  if (op == "Concat") return fold_concat(node);
  if (op == "Slice") return fold_slice(node, first);
  if (op == "Unsqueeze" || op == "Squeeze" || op == "Reshape") return fold_reshaped(node, first);
  if (op == "Cast") return fold_cast(node, first);
  if (op == "Identity") return node.result(first), true;
  return false;
}

}  // namespace ff::onnx_import
