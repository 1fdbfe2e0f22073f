// What families of ops over broadcast operands share: elementwise arithmetic, functions, logic, reductions.
// Dimensions d0 ... dk are the axes of the largest operand; an operand's axis of extent 1 is whole there, and
// what is written to such an axis is a sum over it.
//
//   Mul(d0:S, d1:A) [d0, d1], [d1] -> [d0, d1]       64x10 by a vector of 10
//   MulGrad(d0:S, d1:A) dy [d0, d1], x [d0, d1] -> [d1]       the vector's gradient: sums over d0
#pragma once

#include "compiler/ops/op_table.h"

namespace ff::elementwise {

/// NumPy's broadcast. UserError if the shapes do not fit.
Shape broadcast(const Shape& a, const Shape& b);

OpSpace space(const Graph& graph, const Op& op);
/// One operation an element.
Work work(const Graph& graph, const Op& op, const Cell& cell);

/// The type of the first input, which is a float. UserError for others.
std::vector<TensorType> infer_function(const Graph& graph, const Op& op);
/// The type of the first input, whatever it is.
std::vector<TensorType> infer_same(const Graph& graph, const Op& op);
/// The broadcast of two operands of one type.
std::vector<TensorType> infer_binary(const Graph& graph, const Op& op);

OpDef row(std::string_view type, std::vector<TensorType> (*infer)(const Graph&, const Op&),
          void (*gradient)(const Op&, GradientBuilder&));
/// A row that only rules emit.
inline OpDef made_row(std::string_view type) { return row(type, nullptr, nullptr); }

/// dx by the op <type>Grad, from the op's result (or its input) and dy.
template <bool kOfResult>
void unary_gradient(const Op& op, GradientBuilder& out) {
  const TensorId dx = out.input_gradient(op.inputs[0]);
  if (!dx.valid()) return;
  out.emit("grad", op.type + "Grad", op.attributes,
           {kOfResult ? op.outputs[0] : op.inputs[0], out.output_gradient(op.outputs[0])}, {dx});
}

}  // namespace ff::elementwise
