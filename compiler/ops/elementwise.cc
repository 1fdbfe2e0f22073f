// Elementwise arithmetic with broadcasting, copies, casts and dropout; and what all families over broadcast
// operands share.

#include "compiler/ops/elementwise.h"

#include <algorithm>

#include "compiler/base/check.h"
#include "compiler/ops/families.h"

namespace ff {
namespace elementwise {
namespace {

AccessMap map_to(const Shape& shape, const Shape& full) {
  AccessMap map;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const size_t dim = axis + full.size() - shape.size();
    map.axes.push_back(shape[axis] == full[dim] ? AxisMap::identity(static_cast<int>(dim))
                                                : AxisMap::whole());
  }
  return map;
}

}  // namespace

Shape broadcast(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t back = out.size() - i;
    const int64_t x = back <= a.size() ? a[a.size() - back] : 1;
    const int64_t y = back <= b.size() ? b[b.size() - back] : 1;
    if (x != y && x != 1 && y != 1)
      throw UserError("shapes " + to_string(a) + " and " + to_string(b) + " do not broadcast");
    out[i] = x == 1 ? y : x;
  }
  return out;
}

/// Every op here has an operand that has the shape of the whole.
OpSpace space(const Graph& graph, const Op& op) {
  Shape full;
  const auto widen = [&](TensorId id) {
    if (id.valid()) full = broadcast(full, graph.tensor(id).shape);
  };
  for (TensorId id : op.inputs) widen(id);
  for (TensorId id : op.outputs) widen(id);
  OpSpace out;
  for (size_t d = 0; d < full.size(); ++d) {
    out.dims.push_back({"d" + std::to_string(d), d == 0 ? Role::sample : Role::attribute, full[d], full[d]});
  }
  for (TensorId id : op.inputs)
    out.inputs.push_back(id.valid() ? map_to(graph.tensor(id).shape, full) : AccessMap{});
  for (TensorId id : op.outputs)
    out.outputs.push_back(id.valid() ? map_to(graph.tensor(id).shape, full) : AccessMap{});
  return out;
}

Work work(const Graph& graph, const Op& op, const Cell& cell) {
  Work out;
  for (size_t i = 0; i < cell.boxes.size(); ++i) {
    const TensorId id = i < op.inputs.size() ? op.inputs[i] : op.outputs[i - op.inputs.size()];
    if (!id.valid()) continue;
    out.bytes += static_cast<double>(cell.boxes[i].volume() * size_of(graph.tensor(id).dtype));
    out.flops = std::max(out.flops, static_cast<double>(cell.boxes[i].volume()));
  }
  return out;
}

std::vector<TensorType> infer_same(const Graph& graph, const Op& op) {
  const Tensor& x = graph.tensor(op.inputs.at(0));
  return {{x.shape, x.dtype}};
}

std::vector<TensorType> infer_function(const Graph& graph, const Op& op) {
  const DType type = graph.tensor(op.inputs.at(0)).dtype;
  if (!is_float(type))
    throw UserError("the input has type " + std::string(name(type)) + "; it must be a float");
  return infer_same(graph, op);
}

std::vector<TensorType> infer_binary(const Graph& graph, const Op& op) {
  const Tensor& a = graph.tensor(op.inputs.at(0));
  const Tensor& b = graph.tensor(op.inputs.at(1));
  if (a.dtype != b.dtype)
    throw UserError("operands have types " + std::string(name(a.dtype)) + " and " +
                    std::string(name(b.dtype)));
  return {{broadcast(a.shape, b.shape), a.dtype}};
}

OpDef row(std::string_view type, std::vector<TensorType> (*infer)(const Graph&, const Op&),
          void (*gradient)(const Op&, GradientBuilder&)) {
  OpDef def;
  def.type = type;
  def.family = "elementwise";
  def.infer = infer;
  def.space = space;
  def.gradient = gradient;
  def.work = work;
  return def;
}

}  // namespace elementwise

namespace {

using namespace elementwise;

std::vector<TensorType> infer_cast(const Graph& graph, const Op& op) {
  return {{graph.tensor(op.inputs.at(0)).shape, static_cast<DType>(op.attributes.integer("to"))}};
}

/// dx from dy alone.
void linear_gradient(const Op& op, GradientBuilder& out) {
  const TensorId dx = out.input_gradient(op.inputs[0]);
  if (dx.valid())
    out.emit("grad", op.type + "Grad", op.attributes, {out.output_gradient(op.outputs[0])}, {dx});
}

void identity_gradient(const Op& op, GradientBuilder& out) {
  const TensorId dy = out.output_gradient(op.outputs[0]);
  if (out.pass_gradient(op.inputs[0], dy)) return;
  if (const TensorId dx = out.input_gradient(op.inputs[0]); dx.valid())
    out.emit("grad", "Identity", {}, {dy}, {dx});
}

/// With relu=1 the result is max(0, a + b).
void sum_gradient(const Op& op, GradientBuilder& out) {
  TensorId dy = out.output_gradient(op.outputs[0]);
  if (op.attributes.integer("relu", 0) != 0) {
    const TensorId dz = out.temporary("relu_grad", op.outputs[0]);
    out.emit("relu_grad", "ReluGrad", {}, {op.outputs[0], dy}, {dz});
    dy = dz;
  }
  for (size_t i = 0; i < 2; ++i) {
    const double scale = op.type == "Sub" && i == 1 ? -1.0 : 1.0;
    const bool same = out.graph().tensor(op.inputs[i]).shape == out.graph().tensor(dy).shape;
    if (same && scale == 1.0 && out.pass_gradient(op.inputs[i], dy)) continue;
    const TensorId dx = out.input_gradient(op.inputs[i]);
    if (!dx.valid()) continue;
    const std::string part = i == 0 ? "grad_a" : "grad_b";
    if (same && scale == 1.0) {
      out.emit(part, "Identity", {}, {dy}, {dx});
    } else {
      out.emit(part, "ReduceSum", {{"scale", scale}}, {dy}, {dx});
    }
  }
}

void mul_gradient(const Op& op, GradientBuilder& out) {
  const TensorId dy = out.output_gradient(op.outputs[0]);
  for (size_t i = 0; i < 2; ++i) {
    const TensorId dx = out.input_gradient(op.inputs[i]);
    if (dx.valid()) out.emit(i == 0 ? "grad_a" : "grad_b", "MulGrad", {}, {dy, op.inputs[1 - i]}, {dx});
  }
}

void div_gradient(const Op& op, GradientBuilder& out) {
  const TensorId dy = out.output_gradient(op.outputs[0]);
  if (const TensorId da = out.input_gradient(op.inputs[0]); da.valid()) {
    out.emit("grad_a", "DivGradA", {}, {dy, op.inputs[1]}, {da});
  }
  if (const TensorId db = out.input_gradient(op.inputs[1]); db.valid()) {
    out.emit("grad_b", "DivGradB", {}, {dy, op.inputs[0], op.inputs[1]}, {db});
  }
}

/// The mask of an element depends on its place in the whole tensor.
KernelCall dropout_call(const Graph& graph, const Op& op, const Cell& cell) {
  KernelCall call = default_call(graph, op, cell);
  Ints offset;
  for (int axis = 0; axis < cell.boxes.back().rank(); ++axis) offset.push_back(cell.boxes.back()[axis].lo);
  call.attributes.set("offset", offset);
  call.attributes.set("global_shape", graph.tensor(op.outputs[0]).shape);
  return call;
}

/// Back to the operand's type; what is no float has none.
void cast_gradient(const Op& op, GradientBuilder& out) {
  const DType from = out.graph().tensor(op.inputs[0]).dtype, to = out.graph().tensor(op.outputs[0]).dtype;
  if (!is_float(from) || !is_float(to)) return;
  if (const TensorId dx = out.input_gradient(op.inputs[0]); dx.valid())
    out.emit("grad", "Cast", {{"to", static_cast<int64_t>(from)}}, {out.output_gradient(op.outputs[0])},
             {dx});
}

void pow_gradient(const Op& op, GradientBuilder& out) {
  const TensorId dy = out.output_gradient(op.outputs[0]);
  if (const TensorId da = out.input_gradient(op.inputs[0]); da.valid())
    out.emit("grad_a", "PowGradA", {}, {dy, op.inputs[0], op.inputs[1]}, {da});
  if (const TensorId db = out.input_gradient(op.inputs[1]); db.valid())
    out.emit("grad_b", "PowGradB", {}, {dy, op.inputs[0], op.inputs[1]}, {db});
}

/// Of a maximum or minimum: who is chosen has it; those who tie share it.
void choice_gradient(const Op& op, GradientBuilder& out) {
  const TensorId dy = out.output_gradient(op.outputs[0]);
  for (size_t i = 0; i < 2; ++i) {
    if (const TensorId dx = out.input_gradient(op.inputs[i]); dx.valid())
      out.emit(i == 0 ? "grad_a" : "grad_b", op.type + "Grad", {}, {dy, op.inputs[i], op.inputs[1 - i]},
               {dx});
  }
}

void prelu_gradient(const Op& op, GradientBuilder& out) {
  const TensorId dy = out.output_gradient(op.outputs[0]);
  if (const TensorId dx = out.input_gradient(op.inputs[0]); dx.valid())
    out.emit("grad_a", "PReluGradA", {}, {dy, op.inputs[0], op.inputs[1]}, {dx});
  if (const TensorId dslope = out.input_gradient(op.inputs[1]); dslope.valid())
    out.emit("grad_b", "PReluGradB", {}, {dy, op.inputs[0]}, {dslope});
}

/// The slope is broadcast to the input, not the other way.
std::vector<TensorType> infer_prelu(const Graph& graph, const Op& op) {
  auto out = infer_binary(graph, op);
  infer_function(graph, op);
  if (out[0].shape != graph.tensor(op.inputs[0]).shape)
    throw UserError("the slope of shape " + to_string(graph.tensor(op.inputs[1]).shape) +
                    " does not broadcast to the input of shape " +
                    to_string(graph.tensor(op.inputs[0]).shape));
  return out;
}

}  // namespace

std::span<const OpDef> elementwise_ops() {
  static const std::vector<OpDef> rows = [] {
    std::vector<OpDef> out{
        row("Add", infer_binary, sum_gradient),
        row("Sub", infer_binary, sum_gradient),
        row("Mul", infer_binary, mul_gradient),
        made_row("MulGrad"),
        row("Div", infer_binary, div_gradient),
        made_row("DivGradA"),
        made_row("DivGradB"),
        row("Pow", infer_binary, pow_gradient),
        made_row("PowGradA"),
        made_row("PowGradB"),
        row("Max", infer_binary, choice_gradient),
        made_row("MaxGrad"),
        row("Min", infer_binary, choice_gradient),
        made_row("MinGrad"),
        row("PRelu", infer_prelu, prelu_gradient),
        made_row("PReluGradA"),
        made_row("PReluGradB"),
        row("Mod", infer_binary, nullptr),
        row("Identity", infer_same, identity_gradient),
        row("Cast", infer_cast, cast_gradient),
        row("Neg", infer_same, linear_gradient),
        made_row("NegGrad"),
        row("Dropout", infer_function, linear_gradient),
        made_row("DropoutGrad"),
    };
    for (OpDef& def : out) {
      if (def.type.starts_with("Dropout")) def.kernel = dropout_call;
    }
    return out;
  }();
  return rows;
}

}  // namespace ff
