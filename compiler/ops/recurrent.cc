// Recurrent layers over whole sequences, ONNX's LSTM, GRU and RNN: time inside of a cell, samples and
// directions outside. Axes: t time, dir one or two directions, b samples, g gates times hidden, i what x has
// a step.
//
//   LSTM(dir:P, b:S) x [:, b, :], w [dir, :, :], r [dir, :, :], bias [dir, :], lens [b], h0 [dir, b, :], c0,
//   p
//     -> y [:, dir, b, :], y_h [dir, b, :], y_c [dir, b, :], gates [:, dir, b, :], saved [:, dir, b, :]
//   LSTMGrad        runs back through time: r, lens, h0, c0, p, y, gates, saved, dy, dy_h, dy_c
//                   -> dgates (before activation), dh0, dc0, dp
//   RecurrentGradData    dgates, w -> dx          directions are summed over
//   RecurrentGradWeights x, lens, h0, y, gates, dgates -> dw, dr, dbias          samples are summed over
//
// `gates` are kept after activation; `saved` are the LSTM's cells, and what the GRU's reset gate multiplies.
// Time is not split, and neither are hidden units: each step needs all of the one before.
#include <algorithm>

#include "compiler/base/check.h"
#include "compiler/ops/families.h"
#include "compiler/ops/windows.h"

namespace ff {
namespace {

/// Operands of the forward ops: inputs 0 x, 1 w, 2 r, 3 bias, 4 lens, 5 h0, 6 c0, 7 p; outputs 0 y, 1 y_h,
/// then (LSTM: 2 y_c,) gates and saved.
constexpr std::string_view kTypes[] = {"LSTM", "GRU", "RNN"};

int64_t gates_of(std::string_view type) {
  return type.starts_with("LSTM") ? 4 : type.starts_with("GRU") ? 3 : 1;
}

const Tensor* tensor_at(const Graph& g, const Op& op, size_t i) {
  return has_input(op, i) ? &g.tensor(op.inputs[i]) : nullptr;
}

void require_shape(const Graph& g, const Op& op, size_t i, const char* what, const Shape& shape) {
  const Tensor* t = tensor_at(g, op, i);
  if (t != nullptr && t->shape != shape)
    throw UserError(std::string(what) + " has shape " + to_string(t->shape) + "; it must be " +
                    to_string(shape));
}

std::vector<TensorType> infer_recurrent(const Graph& g, const Op& op) {
  const Shape& x = input_shape(g, op, 0);
  const Shape& r = input_shape(g, op, 2);
  if (x.size() != 3)
    throw UserError("the input has shape " + to_string(x) + "; it must be time, samples, features");
  if (r.size() != 3)
    throw UserError("the recurrent weights have shape " + to_string(r) + "; they must have three axes");
  const int64_t time = x[0], samples = x[1], directions = r[0], hidden = r[2], n = gates_of(op.type);
  const bool both = op.attributes.string("direction") == "bidirectional";
  require_shape(g, op, 2, "the recurrent weights", {both ? 2 : 1, n * hidden, hidden});
  require_shape(g, op, 1, "the weights", {directions, n * hidden, x[2]});
  require_shape(g, op, 3, "the bias", {directions, 2 * n * hidden});
  require_shape(g, op, 4, "the sequence lengths", {samples});
  require_shape(g, op, 5, "the initial state", {directions, samples, hidden});
  require_shape(g, op, 6, "the initial cell", {directions, samples, hidden});
  require_shape(g, op, 7, "the peepholes", {directions, 3 * hidden});
  const DType type = g.tensor(op.inputs[0]).dtype;
  const TensorType y{{time, directions, samples, hidden}, type}, state{{directions, samples, hidden}, type},
      gates{{time, directions, samples, n * hidden}, type};
  if (op.type == "LSTM") return {y, state, state, gates, y};
  if (op.type == "GRU") return {y, state, gates, y};
  return {y, state, gates};
}

constexpr int kDirection = 0, kSample = 1;

AxisMap axis_of(int dim) { return dim < 0 ? AxisMap::whole() : AxisMap::identity(dim); }

/// What an operand's axes run along; -1: whole.
enum class Kind : uint8_t { sequence, state, weight, vector, lengths, input };

AccessMap map_of(Kind kind) {
  const auto map = [](std::initializer_list<int> dims) {
    AccessMap out;
    for (int d : dims) out.axes.push_back(axis_of(d));
    return out;
  };
  switch (kind) {
    case Kind::sequence:
      return map({-1, kDirection, kSample, -1});
    case Kind::state:
      return map({kDirection, kSample, -1});
    case Kind::weight:
      return map({kDirection, -1, -1});
    case Kind::vector:
      return map({kDirection, -1});
    case Kind::lengths:
      return map({kSample});
    case Kind::input:
      break;
  }
  return map({-1, kSample, -1});
}

using Kinds = std::vector<Kind>;

OpSpace make_space(const Op& op, int64_t directions, int64_t samples, const Kinds& inputs,
                   const Kinds& outputs) {
  OpSpace space;
  space.dims = {{.name = "dir", .role = Role::parameter, .extent = directions, .max_degree = directions},
                {.name = "b", .role = Role::sample, .extent = samples, .max_degree = samples}};
  for (size_t i = 0; i < op.inputs.size(); ++i)
    space.inputs.push_back(has_input(op, i) ? map_of(inputs.at(i)) : AccessMap{});
  for (size_t i = 0; i < op.outputs.size(); ++i)
    space.outputs.push_back(has_output(op, i) ? map_of(outputs.at(i)) : AccessMap{});
  return space;
}

OpSpace forward_space(const Graph& g, const Op& op) {
  using enum Kind;
  const Shape& y = output_shape(g, op, 0);
  Kinds outputs{sequence, state, sequence, sequence};
  if (op.type == "LSTM") outputs = {sequence, state, state, sequence, sequence};
  return make_space(op, y[1], y[2], {input, weight, weight, vector, lengths, state, state, vector}, outputs);
}

OpSpace grad_space(const Graph& g, const Op& op) {
  using enum Kind;
  const Shape& gates = input_shape(g, op, 6);
  return make_space(
      op, gates[1], gates[2],
      {weight, lengths, state, state, vector, sequence, sequence, sequence, sequence, state, state},
      {sequence, state, state, vector});
}

OpSpace data_space(const Graph& g, const Op& op) {
  using enum Kind;
  const Shape& gates = input_shape(g, op, 0);
  OpSpace space = make_space(op, gates[1], gates[2], {sequence, weight}, {input});
  space.dims[kDirection].role = Role::contracted;
  return space;
}

OpSpace weights_space(const Graph& g, const Op& op) {
  using enum Kind;
  const Shape& gates = input_shape(g, op, 5);
  OpSpace space = make_space(op, gates[1], gates[2], {input, lengths, state, sequence, sequence, sequence},
                             {weight, weight, vector});
  space.dims[kSample].role = Role::contracted;
  return space;
}

void recurrent_gradient(const Op& op, GradientBuilder& b) {
  const bool lstm = op.type == "LSTM";
  const auto in = [&](size_t i) { return i < op.inputs.size() ? op.inputs[i] : TensorId(); };
  const TensorId y = op.outputs[0], gates = op.outputs[lstm ? 3 : 2],
                 saved = op.type == "RNN" ? TensorId() : op.outputs.back();
  const TensorId dgates = b.temporary("dgates", gates);
  const std::vector<TensorId> outputs{dgates, b.input_gradient(in(5)), b.input_gradient(in(6)),
                                      b.input_gradient(in(7))};
  const TensorId h0 = lstm ? TensorId() : in(5), states = lstm ? TensorId() : y;
  b.emit("grad", op.type + "Grad", op.attributes,
         {in(2), in(4), h0, in(6), in(7), states, gates, saved, b.output_gradient(y),
          b.output_gradient(op.outputs[1]), lstm ? b.output_gradient(op.outputs[2]) : TensorId()},
         outputs);
  if (const TensorId dx = b.input_gradient(in(0)); dx.valid())
    b.emit("x_grad", "RecurrentGradData", {}, {dgates, in(1)}, {dx});
  const TensorId dw = b.input_gradient(in(1)), dr = b.input_gradient(in(2)), db = b.input_gradient(in(3));
  if (!dw.valid() && !dr.valid() && !db.valid()) return;
  Attributes attributes = op.attributes;
  attributes.set("type", op.type);
  b.emit("w_grad", "RecurrentGradWeights", attributes,
         {in(0), in(4), in(5), y, op.type == "GRU" ? gates : TensorId(), dgates}, {dw, dr, db});
}

/// `first`: the cell's first direction; the second of two runs backwards.
KernelCall recurrent_call(const Graph& g, const Op& op, const Cell& cell) {
  KernelCall call = default_call(g, op, cell);
  call.attributes.set("first", cell.blocks[kDirection].lo);
  return call;
}

double elements(const Box& box) { return box.empty() ? 0 : static_cast<double>(box.volume()); }

/// The products of all steps: with the weights (the sequence's gates by features) and with the recurrent
/// ones.
Work recurrent_work(const Graph& g, const Op& op, const Cell& cell) {
  double flops = 0;
  if (op.type == "RecurrentGradData") {
    flops = 2 * elements(cell.boxes[0]) * static_cast<double>(input_shape(g, op, 1)[2]);
  } else if (op.type == "RecurrentGradWeights") {
    const double hidden = static_cast<double>(input_shape(g, op, 3)[3]);
    flops = 2 * elements(cell.boxes[5]) * (hidden + static_cast<double>(input_shape(g, op, 0)[2]));
  } else if (op.type.ends_with("Grad")) {
    flops = 2 * elements(cell.boxes[6]) * static_cast<double>(input_shape(g, op, 0)[2]);
  } else {
    const double wide = static_cast<double>(input_shape(g, op, 1)[2] + input_shape(g, op, 2)[2]);
    flops = 2 * elements(cell.boxes[op.inputs.size() + (op.type == "LSTM" ? 3 : 2)]) * wide;
  }
  return {.flops = flops, .bytes = bytes_of(g, op, cell)};
}

OpDef recurrent_row(std::string_view type, OpSpace (*space)(const Graph&, const Op&)) {
  return {.type = type,
          .family = "matmul",
          .space = space,
          .stage_dims = {},
          .work = recurrent_work,
          .kernel = recurrent_call,
          .row_major = true};
}

}  // namespace

std::span<const OpDef> recurrent_ops() {
  static const std::vector<OpDef> rows = [] {
    std::vector<OpDef> out;
    for (std::string_view type : kTypes) {
      out.push_back(recurrent_row(type, forward_space));
      out.back().infer = infer_recurrent;
      out.back().gradient = recurrent_gradient;
    }
    for (std::string_view type : {"LSTMGrad", "GRUGrad", "RNNGrad"})
      out.push_back(recurrent_row(type, grad_space));
    out.push_back(recurrent_row("RecurrentGradData", data_space));
    out.push_back(recurrent_row("RecurrentGradWeights", weights_space));
    return out;
  }();
  return rows;
}

}  // namespace ff
