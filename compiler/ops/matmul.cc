// Matrix products and their gradients. All rows have the forward op's dimensions, so that one config serves
// them:
//
//   MatMul(m:S, n:P, k:C)    a [m, k], b [n, k], bias [n]@k -> y [m, n]      trans_b=1
//   MatMulGradA              dy [m, n], b [n, k] -> da [m, k]                sums over n
//   MatMulGradB              a [m, k], dy [m, n] -> db [n, k], dbias [n]@k   sums over m
//
// Leading dimensions b0, b1, ... broadcast as numpy's do: where an operand has extent 1 or no such axis, its
// map is the whole axis or has none, and its gradient is a sum over that dimension.
#include <algorithm>

#include "compiler/base/check.h"
#include "compiler/ops/families.h"
#include "compiler/ops/windows.h"

namespace ff {
namespace {

struct Product {
  OpSpace dims;  // without maps
  AccessMap a, b, y, bias;
};

bool flag(const Op& op, std::string_view key) { return op.attributes.integer(key, 0) != 0; }

/// Axis `back` from the end: 1 is the last.
int64_t from_end(const Shape& shape, size_t back) { return shape[shape.size() - back]; }

/// The map of an operand whose last two axes run along dimensions `row` and `column`.
AccessMap operand_map(const OpSpace& dims, const Shape& shape, int row, int column) {
  const size_t leading = dims.dims.size() - 3;
  const size_t own = shape.size() - 2;
  AccessMap map;
  for (size_t axis = 0; axis < own; ++axis) {
    const size_t dim = leading - own + axis;
    map.axes.push_back(shape[axis] == dims.dims[dim].extent ? AxisMap::identity(static_cast<int>(dim))
                                                            : AxisMap::whole());
  }
  map.axes.push_back(AxisMap::identity(row));
  map.axes.push_back(AxisMap::identity(column));
  return map;
}

Product make_product(const Op& op, const Shape& a, const Shape& b, const Shape& y) {
  const bool trans_a = flag(op, "trans_a"), trans_b = flag(op, "trans_b");
  const int64_t depth = from_end(a, trans_a ? 2 : 1);
  Product p;
  const auto add = [&](std::string name, Role role, int64_t extent, int64_t max_degree) {
    p.dims.dims.push_back(
        {.name = std::move(name), .role = role, .extent = extent, .max_degree = max_degree});
  };
  for (size_t axis = 0; axis + 2 < y.size(); ++axis)
    add("b" + std::to_string(axis), Role::attribute, y[axis], y[axis]);
  const int m = static_cast<int>(y.size()) - 2;
  add("m", Role::sample, from_end(y, 2), from_end(y, 2));
  add("n", Role::parameter, from_end(y, 1), from_end(y, 1));
  add("k", Role::contracted, depth, flag(op, "relu") ? 1 : depth);
  const int n = m + 1, k = m + 2;
  p.a = operand_map(p.dims, a, trans_a ? k : m, trans_a ? m : k);
  p.b = operand_map(p.dims, b, trans_b ? n : k, trans_b ? k : n);
  p.y = operand_map(p.dims, y, m, n);
  p.bias = vector_map(n);
  p.bias.first_block_of = k;
  return p;
}

std::vector<TensorType> infer_matmul(const Graph& g, const Op& op) {
  const Shape& a = input_shape(g, op, 0);
  const Shape& b = input_shape(g, op, 1);
  if (a.size() < 2 || b.size() < 2) {
    throw UserError("the operands have shapes " + to_string(a) + " and " + to_string(b) +
                    "; both must have at least 2 dimensions");
  }
  const bool trans_a = flag(op, "trans_a"), trans_b = flag(op, "trans_b");
  const int64_t depth = from_end(a, trans_a ? 2 : 1);
  if (depth != from_end(b, trans_b ? 1 : 2)) {
    throw UserError("the operands have shapes " + to_string(a) + (trans_a ? " (transposed)" : "") + " and " +
                    to_string(b) + (trans_b ? " (transposed)" : "") + ", whose inner sizes differ");
  }
  Shape y(std::max(a.size(), b.size()), 1);
  for (const Shape* s : {&a, &b}) {
    for (size_t axis = 0; axis + 2 < s->size(); ++axis) {
      int64_t& extent = y[y.size() - s->size() + axis];
      if ((*s)[axis] == extent || (*s)[axis] == 1) continue;
      if (extent != 1)
        throw UserError("the operands have shapes " + to_string(a) + " and " + to_string(b) +
                        ", whose leading dimensions do not broadcast");
      extent = (*s)[axis];
    }
  }
  y[y.size() - 2] = from_end(a, trans_a ? 1 : 2);
  y[y.size() - 1] = from_end(b, trans_b ? 2 : 1);
  if (has_input(op, 2) && input_shape(g, op, 2) != Shape{y.back()}) {
    throw UserError("the bias has shape " + to_string(input_shape(g, op, 2)) + "; it must be " +
                    std::to_string(y.back()));
  }
  return {{y, g.tensor(op.inputs[0]).dtype}};
}

std::vector<TensorType> infer_none(const Graph&, const Op& op) {
  FF_CHECK(false) << op.type << " is made by a gradient rule, which gives its outputs";
  return {};
}

OpSpace matmul_space(const Graph& g, const Op& op) {
  Product p = make_product(op, input_shape(g, op, 0), input_shape(g, op, 1), output_shape(g, op, 0));
  p.dims.inputs = {p.a, p.b};
  if (op.inputs.size() > 2) p.dims.inputs.push_back(has_input(op, 2) ? p.bias : AccessMap{});
  p.dims.outputs = {p.y};
  return p.dims;
}

OpSpace grad_a_space(const Graph& g, const Op& op) {
  Product p = make_product(op, output_shape(g, op, 0), input_shape(g, op, 1), input_shape(g, op, 0));
  p.dims.inputs = {p.y, p.b};
  p.dims.outputs = {p.a};
  return p.dims;
}

OpSpace grad_b_space(const Graph& g, const Op& op) {
  Product p = make_product(op, input_shape(g, op, 0), output_shape(g, op, 0), input_shape(g, op, 1));
  p.dims.inputs = {p.a, p.y};
  p.dims.outputs = {p.b};
  if (op.outputs.size() > 1) p.dims.outputs.push_back(has_output(op, 1) ? p.bias : AccessMap{});
  return p.dims;
}

/// The mask of a fused ReLU: elementwise, under the product's names.
OpSpace relu_space(const Graph& g, const Op& op) {
  const Shape& y = input_shape(g, op, 0);
  OpSpace space;
  for (size_t axis = 0; axis < y.size(); ++axis) {
    const size_t back = y.size() - axis;
    space.dims.push_back({.name = back == 1   ? "n"
                                  : back == 2 ? "m"
                                              : "b" + std::to_string(axis),
                          .role = back == 1   ? Role::parameter
                                  : back == 2 ? Role::sample
                                              : Role::attribute,
                          .extent = y[axis],
                          .max_degree = y[axis]});
  }
  space.inputs.assign(2, identity_map(y.size()));
  space.outputs = {identity_map(y.size())};
  return space;
}

KernelCall relu_call(const Graph& g, const Op& op, const Cell& cell) {
  return call_of(g, op, cell, "ReluGrad");
}

void matmul_gradient(const Op& op, GradientBuilder& b) {
  TensorId dy = b.output_gradient(op.outputs[0]);
  if (!dy.valid()) return;
  Attributes attributes = op.attributes;
  if (flag(op, "relu")) {
    const TensorId dz = b.temporary("relu_grad", op.outputs[0]);
    b.emit("relu_grad", "MatMulReluGrad", {}, {op.outputs[0], dy}, {dz});
    dy = dz;
    attributes.erase("relu");
  }
  const TensorId db = b.input_gradient(op.inputs[1]);
  const TensorId dbias = has_input(op, 2) ? b.input_gradient(op.inputs[2]) : TensorId();
  if (db.valid() || dbias.valid()) {
    // A bias without its matrix trained: the matrix's gradient is made all the same, and nobody reads it.
    std::vector<TensorId> outputs{db.valid() ? db : b.temporary("unused_b_grad", op.inputs[1])};
    if (dbias.valid()) outputs.push_back(dbias);
    b.emit("b_grad", "MatMulGradB", attributes, {op.inputs[0], dy}, std::move(outputs));
  }
  if (const TensorId da = b.input_gradient(op.inputs[0]); da.valid())
    b.emit("a_grad", "MatMulGradA", attributes, {dy, op.inputs[1]}, {da});
}

Work matmul_work(const Graph& g, const Op& op, const Cell& cell) {
  return {.flops = 2 * cells_volume(cell), .bytes = bytes_of(g, op, cell)};
}

}  // namespace

std::span<const OpDef> matmul_ops() {
  static const OpDef kOps[] = {
      {.type = "MatMul",
       .family = "matmul",
       .infer = infer_matmul,
       .space = matmul_space,
       .gradient = matmul_gradient,
       .stage_dims = {},
       .work = matmul_work},
      {.type = "MatMulGradA",
       .family = "matmul",
       .infer = infer_none,
       .space = grad_a_space,
       .stage_dims = {},
       .work = matmul_work},
      {.type = "MatMulGradB",
       .family = "matmul",
       .infer = infer_none,
       .space = grad_b_space,
       .stage_dims = {},
       .work = matmul_work},
      {.type = "MatMulReluGrad",
       .family = "elementwise",
       .infer = infer_none,
       .space = relu_space,
       .stage_dims = {},
       .kernel = relu_call},
  };
  return kOps;
}

}  // namespace ff
