// Folding of arithmetic: integers as integers (division truncates, as ONNX's does), floats in double.

#include <cmath>
#include <limits>
#include <map>

#include "compiler/base/model_data.h"
#include "compiler/onnx/fold.h"

namespace ff::onnx_import {
namespace {

using RealOp = double (*)(double, double);
using IntegerOp = int64_t (*)(int64_t, int64_t);

/// The divisor 0 is an error of the model.
int64_t divide(int64_t a, int64_t b) {
  if (b == 0) throw UserError("divides by zero");
  return a / b;
}

int64_t power(int64_t a, int64_t b) {
  return std::llround(std::pow(static_cast<double>(a), static_cast<double>(b)));
}

struct Binary {
  RealOp real;
  IntegerOp integer;
  bool logical = false;  // the result is boolean
};

/// One expression for both kinds of numbers.
#define FF_BOTH(expression)                                                     \
  [](double a, double b) -> double { return static_cast<double>(expression); }, \
      [](int64_t a, int64_t b) -> int64_t { return static_cast<int64_t>(expression); }

const std::map<std::string, Binary>& binary_ops() {
  static const std::map<std::string, Binary> ops{
      {"Add", {FF_BOTH(a + b)}},
      {"Sub", {FF_BOTH(a - b)}},
      {"Mul", {FF_BOTH(a * b)}},
      {"Div", {[](double a, double b) { return a / b; }, divide}},
      {"Pow", {[](double a, double b) { return std::pow(a, b); }, power}},
      {"Min", {FF_BOTH(std::min(a, b))}},
      {"Max", {FF_BOTH(std::max(a, b))}},
      {"Equal", {FF_BOTH(a == b), true}},
      {"Less", {FF_BOTH(a < b), true}},
      {"LessOrEqual", {FF_BOTH(a <= b), true}},
      {"Greater", {FF_BOTH(a > b), true}},
      {"GreaterOrEqual", {FF_BOTH(a >= b), true}},
      {"And", {FF_BOTH(a != 0 && b != 0), true}},
      {"Or", {FF_BOTH(a != 0 || b != 0), true}},
      {"Xor", {FF_BOTH((a != 0) != (b != 0)), true}},
  };
  return ops;
}
#undef FF_BOTH

const std::map<std::string, double (*)(double)>& unary_ops() {
  static const std::map<std::string, double (*)(double)> ops{
      {"Neg", [](double x) { return -x; }},
      {"Abs", [](double x) { return std::abs(x); }},
      {"Sqrt", [](double x) { return std::sqrt(x); }},
      {"Exp", [](double x) { return std::exp(x); }},
      {"Log", [](double x) { return std::log(x); }},
      {"Floor", [](double x) { return std::floor(x); }},
      {"Ceil", [](double x) { return std::ceil(x); }},
      {"Reciprocal", [](double x) { return 1 / x; }},
      {"Not", [](double x) { return x == 0 ? 1.0 : 0.0; }},
  };
  return ops;
}

Constant apply(const Binary& op, const Constant& a, const Constant& b) {
  const Shape shape = broadcast_shapes(a.shape, b.shape);
  const bool same = a.shape == b.shape;
  const auto at = [&](const Constant& c, int64_t i) {
    return same ? i : c.size() == 1 ? 0 : broadcast_place(index_of(i, shape), c.shape);
  };
  if (!is_float(a.dtype)) {
    return generate_integers(op.logical ? DType::boolean : a.dtype, shape,
                             [&](int64_t i) { return op.integer(a.integer(at(a, i)), b.integer(at(b, i))); });
  }
  const auto real = [&](int64_t i) { return op.real(a.real(at(a, i)), b.real(at(b, i))); };
  if (!op.logical) return generate(a.dtype, shape, real);
  return generate_integers(DType::boolean, shape, [&](int64_t i) { return static_cast<int64_t>(real(i)); });
}

Constant where(const Constant& condition, const Constant& x, const Constant& y) {
  const Shape shape = broadcast_shapes(condition.shape, broadcast_shapes(x.shape, y.shape));
  const auto choose = [&](int64_t i, auto get) {
    const Shape index = index_of(i, shape);
    const Constant& from = condition.integer(broadcast_place(index, condition.shape)) != 0 ? x : y;
    return get(from, broadcast_place(index, from.shape));
  };
  if (is_float(x.dtype)) {
    return generate(x.dtype, shape, [&](int64_t i) {
      return choose(i, [](const Constant& c, int64_t at) { return c.real(at); });
    });
  }
  return generate_integers(x.dtype, shape, [&](int64_t i) {
    return choose(i, [](const Constant& c, int64_t at) { return c.integer(at); });
  });
}

bool cast(Node& node, const Constant& c, std::optional<DType> type) {
  if (!type) return false;
  const auto integer = [&](int64_t i) {
    return *type == DType::boolean ? int64_t{c.real(i) != 0} : c.integer(i);
  };
  node.result(is_float(*type) ? generate(*type, c.shape, [&](int64_t i) { return c.real(i); })
                              : generate_integers(*type, c.shape, integer));
  return true;
}

void range(Node& node, const Constants& in) {
  if (in.size() != 3) throw UserError("takes a start, a limit and a step");
  const double start = in[0].real(0), step = in[2].real(0);
  if (step == 0) throw UserError("has a step of 0");
  const auto count = std::max<int64_t>(0, static_cast<int64_t>(std::ceil((in[1].real(0) - start) / step)));
  const DType type = in[0].dtype;
  node.result(is_float(type)
                  ? generate(type, {count}, [&](int64_t i) { return start + static_cast<double>(i) * step; })
                  : generate_integers(type, {count},
                                      [&](int64_t i) { return in[0].integer(0) + i * in[2].integer(0); }));
}

/// The axes that a reduction takes, from the attribute or the input.
std::vector<bool> reduced_axes(const Node& node, size_t rank) {
  const auto axes = node.ints_of("axes", 1);
  std::vector<bool> reduced(rank, !axes || axes->empty());
  if (axes && axes->empty() && node.integer("noop_with_empty_axes", 0) != 0) reduced.assign(rank, false);
  for (int64_t a : axes.value_or(Ints{})) reduced[static_cast<size_t>(positive_axis(a, rank))] = true;
  return reduced;
}

bool reduce(Node& node, const Constant& x) {
  const std::string& op = node.proto().op_type();
  static const std::map<std::string, std::string> steps{
      {"ReduceSum", "Add"}, {"ReduceProd", "Mul"}, {"ReduceMax", "Max"}, {"ReduceMin", "Min"}};
  const auto it = steps.find(op);
  if (it == steps.end() || x.size() == 0) return false;
  const std::vector<bool> reduced = reduced_axes(node, x.shape.size());
  Shape kept = x.shape;
  for (size_t d = 0; d < kept.size(); ++d) kept[d] = reduced[d] ? 1 : kept[d];
  const Binary& step = binary_ops().at(it->second);
  Constant out = select(x, kept, [&](int64_t i) { return linear_of(index_of(i, kept), x.shape); });
  for (int64_t i = 0; i < x.size(); ++i) {
    const Shape index = index_of(i, x.shape);
    const auto at = static_cast<size_t>(broadcast_place(index, kept));
    bool first = true;
    for (size_t d = 0; d < kept.size(); ++d) first &= !reduced[d] || index[d] == 0;
    if (first) continue;
    if (is_float(x.dtype)) {
      out.reals[at] = step.real(out.reals[at], x.real(i));
    } else {
      out.ints[at] = step.integer(out.ints[at], x.integer(i));
    }
  }
  if (node.integer("keepdims", 1) == 0) {
    Shape shape;
    for (size_t d = 0; d < kept.size(); ++d) {
      if (!reduced[d]) shape.push_back(kept[d]);
    }
    out.shape = shape;
  }
  node.result(std::move(out));
  return true;
}

}  // namespace

bool fold_values(Node& node, const Constants& in) {
  const std::string& op = node.proto().op_type();
  if (const auto it = binary_ops().find(op); it != binary_ops().end()) {
    Constant out = in[0];
    for (size_t i = 1; i < in.size(); ++i) out = apply(it->second, out, in[i]);
    return node.result(std::move(out)), true;
  }
  if (op == "Mod") {
    // Of integers, with the sign of the divisor; fmod is C's.
    const bool c = node.integer("fmod", 0) != 0;
    if (!c && is_float(in[0].dtype)) throw UserError("of floats must say fmod=1");
    const Binary of_divisor{
        [](double a, double b) { return std::fmod(a, b); },
        [](int64_t a, int64_t b) { return a - b * (divide(a, b) - (a % b != 0 && (a < 0) != (b < 0))); }};
    const Binary of_dividend{of_divisor.real, [](int64_t a, int64_t b) { return a - b * divide(a, b); }};
    return node.result(apply(c ? of_dividend : of_divisor, in[0], in[1])), true;
  }
  if (const auto it = unary_ops().find(op); it != unary_ops().end()) {
    const Constant& x = in[0];
    const auto real = [&](int64_t i) { return it->second(x.real(i)); };
    node.result(is_float(x.dtype) ? generate(x.dtype, x.shape, real)
                                  : generate_integers(x.dtype, x.shape, [&](int64_t i) {
                                      return static_cast<int64_t>(real(i));
                                    }));
    return true;
  }
  if (op == "Where") return node.result(where(in[0], in[1], in[2])), true;
  if (op == "Cast") return cast(node, in[0], dtype_of_onnx(static_cast<int>(node.integer("to", 1))));
  if (op == "CastLike") return cast(node, in[0], node.dtype(1));
  if (op == "Range") return range(node, in), true;
  return reduce(node, in[0]);
}

}  // namespace ff::onnx_import
