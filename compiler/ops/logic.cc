// Comparisons, boolean ops and the choice by them. Results of comparisons have no gradient; a choice passes
// it to whom it chose.
//
//   Where(d0:S, d1:A) condition [d0, d1], a [d0, d1], b [] -> [d0, d1]
//   WhereGrad condition, dy -> da: dy where the condition holds, else 0; with otherwise=1 the reverse, db
#include "compiler/base/check.h"
#include "compiler/ops/elementwise.h"
#include "compiler/ops/families.h"

namespace ff {
namespace {

using namespace elementwise;

void require_boolean(const Graph& g, const Op& op, size_t i) {
  const DType type = g.tensor(op.inputs.at(i)).dtype;
  if (type != DType::boolean)
    throw UserError("input " + std::to_string(i) + " has type " + std::string(name(type)) +
                    "; it must be boolean");
}

std::vector<TensorType> infer_comparison(const Graph& g, const Op& op) {
  return {{infer_binary(g, op)[0].shape, DType::boolean}};
}

std::vector<TensorType> infer_test(const Graph& g, const Op& op) {
  return {{infer_function(g, op)[0].shape, DType::boolean}};
}

std::vector<TensorType> infer_logic(const Graph& g, const Op& op) {
  for (size_t i = 0; i < op.inputs.size(); ++i) require_boolean(g, op, i);
  return op.inputs.size() == 2 ? infer_binary(g, op) : infer_same(g, op);
}

std::vector<TensorType> infer_where(const Graph& g, const Op& op) {
  require_boolean(g, op, 0);
  const Tensor& a = g.tensor(op.inputs.at(1));
  const Tensor& b = g.tensor(op.inputs.at(2));
  if (a.dtype != b.dtype)
    throw UserError("it chooses between types " + std::string(name(a.dtype)) + " and " +
                    std::string(name(b.dtype)));
  return {{broadcast(g.tensor(op.inputs[0]).shape, broadcast(a.shape, b.shape)), a.dtype}};
}

void where_gradient(const Op& op, GradientBuilder& b) {
  const TensorId dy = b.output_gradient(op.outputs[0]);
  for (int64_t otherwise : {0, 1}) {
    const TensorId dx = b.input_gradient(op.inputs[otherwise == 0 ? 1 : 2]);
    if (!dx.valid()) continue;
    b.emit(otherwise == 0 ? "grad_a" : "grad_b", "WhereGrad", {{"otherwise", otherwise}}, {op.inputs[0], dy},
           {dx});
  }
}

}  // namespace

std::span<const OpDef> logic_ops() {
  static const std::vector<OpDef> rows = [] {
    std::vector<OpDef> out;
    for (std::string_view type : {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
      out.push_back(row(type, infer_comparison, nullptr));
    for (std::string_view type : {"IsInf", "IsNaN"}) out.push_back(row(type, infer_test, nullptr));
    for (std::string_view type : {"And", "Or", "Xor", "Not"}) out.push_back(row(type, infer_logic, nullptr));
    out.push_back(row("Where", infer_where, where_gradient));
    out.push_back(made_row("WhereGrad"));
    return out;
  }();
  return rows;
}

}  // namespace ff
