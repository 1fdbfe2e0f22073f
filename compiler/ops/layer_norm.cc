// Normalisation of each position by itself: LayerNorm, and RMSNorm, which takes no mean away. Axes from
// `axis` on are normalised; `scale` and `bias` have their shape.
//
//   LayerNorm(d0:S, d1:A, e0:P) x [d0, d1, e0], scale [e0], bias [e0] -> y [d0, d1, e0], mean [d0, d1, :],
//   inv_std [d0, d1, :]
//   LayerNormGrad x, dy, scale, mean, inv_std -> dx [d0, d1, e0], dscale [e0], dbias [e0]      sums over d
//
// Ba, Kiros, Hinton, "Layer Normalization" (2016); Zhang, Sennrich, "Root Mean Square Layer Normalization"
// (2019). What is normalised is not split; what is not is.
#include <algorithm>

#include "compiler/base/check.h"
#include "compiler/ops/families.h"
#include "compiler/ops/windows.h"

namespace ff {
namespace {

bool root_mean_square(const Op& op) { return op.type.starts_with("RMS"); }

size_t axis_of(const Op& op) { return static_cast<size_t>(op.attributes.integer("axis")); }

std::vector<TensorType> infer_layer_norm(const Graph& g, const Op& op) {
  const Shape& x = input_shape(g, op, 0);
  const size_t axis = axis_of(op);
  if (axis >= x.size())
    throw UserError("axis " + std::to_string(axis) + " is no axis of the input of shape " + to_string(x));
  const Shape inner(x.begin() + static_cast<int64_t>(axis), x.end());
  for (size_t i = 1; i < op.inputs.size(); ++i) {
    if (has_input(op, i) && input_shape(g, op, i) != inner)
      throw UserError("input " + std::to_string(i) + " has shape " + to_string(input_shape(g, op, i)) +
                      "; it must be " + to_string(inner) + ", what is normalised");
  }
  Shape statistics = x;
  std::fill(statistics.begin() + static_cast<int64_t>(axis), statistics.end(), 1);
  const DType type = g.tensor(op.inputs[0]).dtype;
  if (root_mean_square(op)) return {{x, type}, {statistics, type}};
  return {{x, type}, {statistics, type}, {statistics, type}};
}

OpSpace layer_norm_space(const Graph& g, const Op& op) {
  const Shape& x = input_shape(g, op, 0);
  const size_t axis = axis_of(op);
  OpSpace space;
  for (size_t d = 0; d < x.size(); ++d) {
    const bool inner = d >= axis;
    space.dims.push_back({.name = (inner ? "e" : "d") + std::to_string(inner ? d - axis : d),
                          .role = inner    ? Role::parameter
                                  : d == 0 ? Role::sample
                                           : Role::attribute,
                          .extent = x[d],
                          .max_degree = inner ? 1 : x[d]});
  }
  const auto map_of = [&](TensorId id) {
    AccessMap map;
    if (!id.valid()) return map;
    const Shape& shape = g.tensor(id).shape;
    const size_t shift = x.size() - shape.size();  // scale and bias lack the first axes
    for (size_t a = 0; a < shape.size(); ++a) {
      const bool whole = shape[a] != x[a + shift];
      map.axes.push_back(whole ? AxisMap::whole() : AxisMap::identity(static_cast<int>(a + shift)));
    }
    return map;
  };
  for (TensorId id : op.inputs) space.inputs.push_back(map_of(id));
  for (TensorId id : op.outputs) space.outputs.push_back(map_of(id));
  return space;
}

void layer_norm_gradient(const Op& op, GradientBuilder& b) {
  const bool rms = root_mean_square(op);
  const TensorId dy = b.output_gradient(op.outputs[0]);
  std::vector<TensorId> outputs;
  for (TensorId input : op.inputs) outputs.push_back(b.input_gradient(input));
  if (std::none_of(outputs.begin(), outputs.end(), [](TensorId id) { return id.valid(); })) return;
  std::vector<TensorId> inputs{op.inputs[0], dy, op.inputs[1]};
  if (!rms) inputs.push_back(op.outputs[1]);
  inputs.push_back(op.outputs[rms ? 1 : 2]);
  b.emit("grad", op.type + "Grad", op.attributes, std::move(inputs), std::move(outputs));
}

Work layer_norm_work(const Graph& g, const Op& op, const Cell& cell) {
  return {.flops = 8 * cells_volume(cell), .bytes = bytes_of(g, op, cell)};
}

OpDef layer_norm_row(std::string_view type, bool forward) {
  return {.type = type,
          .family = "reduce",  // not "norm": its operands are no images, and keep their rows
          .infer = forward ? infer_layer_norm : nullptr,
          .space = layer_norm_space,
          .gradient = forward ? layer_norm_gradient : nullptr,
          .stage_dims = {},
          .work = layer_norm_work};
}

}  // namespace

std::span<const OpDef> layer_norm_ops() {
  static const OpDef kOps[] = {
      layer_norm_row("LayerNorm", true),
      layer_norm_row("LayerNormGrad", false),
      layer_norm_row("RMSNorm", true),
      layer_norm_row("RMSNormGrad", false),
  };
  return kOps;
}

}  // namespace ff
