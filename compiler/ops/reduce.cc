// Reductions. Reduced axes stay, with extent 1; a Reshape behind takes them away where ONNX does.
//
//   ReduceSum(d0:S, d1:A) x [d0, d1] -> y [d0, :]       of 64x10 to 64x1, times `scale`: a mean has 1 / count
//   ReduceMax(d0:S, d1:A) x [d0, d1] -> max y [d0, :]
//
// Elements that tie for the maximum share its gradient. A product is not linear in its parts: its reduced
// dimensions are not split.
#include <algorithm>

#include "compiler/base/check.h"
#include "compiler/ops/elementwise.h"
#include "compiler/ops/families.h"

namespace ff {
namespace {

std::vector<TensorType> infer_reduction(const Graph& g, const Op& op) {
  TensorType out = elementwise::infer_function(g, op)[0];
  for (int64_t axis : op.attributes.ints("axes")) {
    if (axis < 0 || axis >= static_cast<int64_t>(out.shape.size()))
      throw UserError("axis " + std::to_string(axis) + " is no axis of the input of shape " +
                      to_string(out.shape));
    out.shape[static_cast<size_t>(axis)] = 1;
  }
  return {out};
}

void sum_gradient(const Op& op, GradientBuilder& b) {
  const TensorId dx = b.input_gradient(op.inputs[0]);
  if (!dx.valid()) return;
  const double scale = op.attributes.real("scale", 1.0);
  b.emit("grad", "ReduceSumGrad", {{"scale", scale}}, {b.output_gradient(op.outputs[0])}, {dx});
}

void max_gradient(const Op& op, GradientBuilder& b) {
  const TensorId dx = b.input_gradient(op.inputs[0]);
  if (!dx.valid()) return;
  const TensorId ties = b.temporary("ties", op.outputs[0]);
  const TensorId share = b.temporary("share", op.outputs[0]);
  b.emit("ties", "ReduceMaxTies", {}, {op.inputs[0], op.outputs[0]}, {ties});
  b.emit("share", "DivGradA", {}, {b.output_gradient(op.outputs[0]), ties}, {share});
  b.emit("grad", "ReduceMaxGrad", {}, {share, op.inputs[0], op.outputs[0]}, {dx});
}

void product_gradient(const Op& op, GradientBuilder& b) {
  const TensorId dx = b.input_gradient(op.inputs[0]);
  if (dx.valid())
    b.emit("grad", "ReduceProdGrad", op.attributes, {op.inputs[0], b.output_gradient(op.outputs[0])}, {dx});
}

OpSpace max_space(const Graph& g, const Op& op) {
  OpSpace space = elementwise::space(g, op);
  space.outputs[0].combiner = Combiner::max;
  return space;
}

OpSpace product_space(const Graph& g, const Op& op) {
  OpSpace space = elementwise::space(g, op);
  for (int64_t axis : op.attributes.ints("axes")) space.dims[static_cast<size_t>(axis)].max_degree = 1;
  return space;
}

}  // namespace

std::span<const OpDef> reduce_ops() {
  static const std::vector<OpDef> rows = [] {
    using elementwise::made_row;
    std::vector<OpDef> out{elementwise::row("ReduceSum", infer_reduction, sum_gradient),
                           made_row("ReduceSumGrad"),
                           elementwise::row("ReduceMax", infer_reduction, max_gradient),
                           made_row("ReduceMaxTies"),
                           made_row("ReduceMaxGrad"),
                           elementwise::row("ReduceProd", infer_reduction, product_gradient),
                           made_row("ReduceProdGrad")};
    for (OpDef& def : out) {
      def.family = "reduce";
      if (def.type == "ReduceMax") def.space = max_space;
      if (def.type.starts_with("ReduceProd")) def.space = product_space;
    }
    return out;
  }();
  return rows;
}

}  // namespace ff
