// Batch normalisation in training (fused and staged) and with frozen statistics, its running statistics, and
// local response normalisation.
//
//   BatchNorm(n:S, c:P, h:A, w:A) x [n, c, h, w], scale [c], bias [c] -> y [n, c, h, w], mean [c], var [c]
//
// Where n, h or w is split, the stages replace it; each sums over a cell's part and scales by 1 over the
// global count:
//
//   BatchNormSum x -> mean;   BatchNormSquares x, mean -> var;   BatchNormNormalize x, scale, bias, mean, var
//   -> y BatchNormGradSums x, dy, scale, bias, mean, var -> dscale, dbias;   BatchNormGradData ..., dscale,
//   dbias -> dx
//
// With groups=G (statistics of each G-th of the batch by itself, as data-parallel frameworks have them;
// "ghost batch normalisation", arXiv 1705.08741) the samples of a group stay together, and so do the pixels:
//
//   BatchNorm(g:S, c:P, h:A, w:A) x [n/G g, c, h, w], scale [c], bias [c] -> y, mean [g, c], var [g, c]
//
// A fused ReLU (relu=1) is y = max(0, .); its mask is computed again from x, so that y need not be kept:
// `bias` is read by the gradients only then.
#include <algorithm>

#include "compiler/base/check.h"
#include "compiler/ops/families.h"
#include "compiler/ops/windows.h"

namespace ff {
namespace {

bool fused_relu(const Op& op) { return op.attributes.integer("relu", 0) != 0; }

int64_t groups_of(const Op& op) { return op.attributes.integer("groups", 1); }

std::vector<TensorType> infer_none(const Graph&, const Op& op) {
  FF_CHECK(false) << op.type << " is made by a gradient or stage rule, which gives its outputs";
  return {};
}

void require_vectors(const Graph& g, const Op& op, int64_t channels) {
  for (size_t i = 1; i < op.inputs.size(); ++i) {
    if (input_shape(g, op, i) != Shape{channels}) {
      throw UserError("input " + std::to_string(i) + " has shape " + to_string(input_shape(g, op, i)) +
                      "; it must be " + std::to_string(channels) + ", the channels of the input");
    }
  }
}

const Shape& require_channels(const Graph& g, const Op& op) {
  const Shape& x = input_shape(g, op, 0);
  if (x.size() < 2 || x.size() > 5) {
    throw UserError("the input has shape " + to_string(x) +
                    "; it must have 2 to 5 dimensions: samples, channels and spatial ones");
  }
  require_vectors(g, op, x[1]);
  return x;
}

std::vector<TensorType> infer_batch_norm(const Graph& g, const Op& op) {
  const Shape& x = require_channels(g, op);
  const DType type = g.tensor(op.inputs[0]).dtype;
  const int64_t groups = groups_of(op);
  if (groups < 1 || x[0] % groups != 0) {
    throw UserError("a batch of " + std::to_string(x[0]) + " makes no " + std::to_string(groups) +
                    " groups of equal size");
  }
  const Shape vector = groups == 1 ? Shape{x[1]} : Shape{groups, x[1]};
  return {{x, type}, {vector, type}, {vector, type}};
}

std::vector<TensorType> infer_same(const Graph& g, const Op& op) {
  return {{require_channels(g, op), g.tensor(op.inputs[0]).dtype}};
}

/// All rows of batch normalisation: image operands on the dimensions' own axes, vectors along c, those of
/// groups along g and c. `summed`: the outputs are vectors only, sums over the other dimensions.
OpSpace batch_norm_space(const Graph& g, const Op& op, bool summed) {
  const Shape& x = input_shape(g, op, 0);
  const int64_t groups = groups_of(op);
  OpSpace space = image_dims(x);
  AccessMap image = identity_map(x.size());
  if (groups > 1) {
    for (size_t d = 2; d < space.dims.size(); ++d) space.dims[d].max_degree = 1;
    space.dims[0] = {.name = "g", .role = Role::sample, .extent = groups, .max_degree = groups};
    image.axes[0] = AxisMap::blocks(0, x[0] / groups);
  }
  const auto map_of = [&](TensorId id) {
    if (!id.valid()) return AccessMap{};
    const Shape& shape = g.tensor(id).shape;
    if (shape.size() == 1) return vector_map(1);
    return groups > 1 && shape == Shape{groups, x[1]} ? identity_map(2) : image;
  };
  for (TensorId id : op.inputs) space.inputs.push_back(map_of(id));
  for (TensorId id : op.outputs) space.outputs.push_back(map_of(id));
  if (summed) {
    for (IterDim& d : space.dims) {
      if (d.name != "c") d.role = Role::contracted;
    }
  }
  return space;
}
OpSpace whole_space(const Graph& g, const Op& op) { return batch_norm_space(g, op, false); }
OpSpace sums_space(const Graph& g, const Op& op) { return batch_norm_space(g, op, true); }

OpSpace running_space(const Graph& g, const Op& op) {
  const int64_t channels = input_shape(g, op, 2)[0];
  OpSpace space;
  space.dims = {{.name = "c", .role = Role::parameter, .extent = channels, .max_degree = channels}};
  space.inputs.assign(op.inputs.size(), vector_map(0));
  for (size_t i : {size_t{0}, size_t{1}}) {
    if (input_shape(g, op, i).size() == 2)
      space.inputs[i].axes.insert(space.inputs[i].axes.begin(), AxisMap::whole());
  }
  space.outputs.assign(op.outputs.size(), vector_map(0));
  return space;
}

std::vector<TensorType> infer_running(const Graph& g, const Op& op) {
  const Shape& state = input_shape(g, op, 2);
  for (size_t i : {size_t{0}, size_t{1}}) {
    const Shape& batch = input_shape(g, op, i);
    if (batch != state && Shape(batch.begin() + 1, batch.end()) != state)
      throw UserError("statistics of shape " + to_string(batch) + " do not go with " + to_string(state));
  }
  return {{state, g.tensor(op.inputs[0]).dtype}, {state, g.tensor(op.inputs[0]).dtype}};
}

// Stages.

void batch_norm_stages(const Op& op, StageBuilder& b) {
  const Graph& g = b.graph();
  if (groups_of(op) > 1) return;  // nothing is split that needs them
  const TensorType vector{g.tensor(op.inputs[1]).shape, g.tensor(op.inputs[1]).dtype};
  const TensorId x = op.inputs[0];
  const TensorId mean = has_output(op, 1) ? op.outputs[1] : b.temporary("mean", vector);
  const TensorId var = has_output(op, 2) ? op.outputs[2] : b.temporary("var", vector);
  b.emit("sum", "BatchNormSum", {}, {x}, {mean});
  b.emit("squares", "BatchNormSquares", {}, {x, mean}, {var});
  b.emit("normalize", "BatchNormNormalize", op.attributes, {x, op.inputs[1], op.inputs[2], mean, var},
         {op.outputs[0]});
}

/// Whether a tensor is written by this op alone: a vector that other layers add to is no sum of this one.
bool written_once(const Graph& g, TensorId id) {
  int writers = 0;
  for (const Op& op : g.ops) {
    if (op.stage_of.valid()) continue;
    writers += static_cast<int>(std::count(op.outputs.begin(), op.outputs.end(), id));
  }
  return writers <= 1;
}

void batch_norm_grad_stages(const Op& op, StageBuilder& b) {
  const Graph& g = b.graph();
  if (groups_of(op) > 1) return;
  const TensorType vector{g.tensor(op.inputs[2]).shape, g.tensor(op.inputs[2]).dtype};
  std::vector<TensorId> inputs = op.inputs;
  std::vector<TensorId> sums;
  for (size_t i : {size_t{1}, size_t{2}}) {
    const bool own = has_output(op, i) && written_once(g, op.outputs[i]);
    sums.push_back(own ? op.outputs[i] : b.temporary(i == 1 ? "sum_dy_x" : "sum_dy", vector));
  }
  b.emit("sums", "BatchNormGradSums", op.attributes, inputs, sums);
  std::vector<TensorId> shared(2);
  for (size_t i : {size_t{0}, size_t{1}}) {
    if (has_output(op, i + 1) && op.outputs[i + 1] != sums[i]) shared[i] = op.outputs[i + 1];
  }
  if (shared[0].valid() || shared[1].valid())
    b.emit("shared_sums", "BatchNormGradSums", op.attributes, inputs, shared);
  if (!has_output(op, 0)) return;
  inputs.insert(inputs.end(), sums.begin(), sums.end());
  b.emit("data", "BatchNormGradData", op.attributes, std::move(inputs), {op.outputs[0]});
}

// Gradients.

std::vector<TensorId> gradients_of(const Op& op, GradientBuilder& b) {
  return {b.input_gradient(op.inputs[0]), b.input_gradient(op.inputs[1]), b.input_gradient(op.inputs[2])};
}

bool none(const std::vector<TensorId>& ids) {
  return std::none_of(ids.begin(), ids.end(), [](TensorId id) { return id.valid(); });
}

void batch_norm_gradient(const Op& op, GradientBuilder& b) {
  const TensorId dy = b.output_gradient(op.outputs[0]);
  if (!dy.valid()) return;
  const std::vector<TensorId> outputs = gradients_of(op, b);
  if (none(outputs)) return;
  FF_CHECK(has_output(op, 1) && has_output(op, 2))
      << "BatchNorm " << op.name << " does not keep its statistics";
  b.emit("grad", "BatchNormGrad", op.attributes,
         {op.inputs[0], dy, op.inputs[1], fused_relu(op) ? op.inputs[2] : TensorId(), op.outputs[1],
          op.outputs[2]},
         outputs);
}

void inference_gradient(const Op& op, GradientBuilder& b) {
  const TensorId dy = b.output_gradient(op.outputs[0]);
  if (!dy.valid()) return;
  const std::vector<TensorId> outputs = gradients_of(op, b);
  if (none(outputs)) return;
  b.emit("grad", "BatchNormInferenceGrad", op.attributes,
         {op.inputs[0], dy, op.inputs[1], fused_relu(op) ? op.inputs[2] : TensorId(), op.inputs[3],
          op.inputs[4]},
         outputs);
}

// Work and kernel calls.

Work norm_work(const Graph& g, const Op& op, const Cell& cell) {
  return {.flops = 4 * static_cast<double>(cell.boxes[0].volume()), .bytes = bytes_of(g, op, cell)};
}

/// The batch normalisation kernels take epsilon, relu, the number of the cell's groups and 1 / (elements of a
/// channel in the whole batch, or in a group).
KernelCall batch_norm_call(const Graph& g, const Op& op, const Cell& cell) {
  KernelCall call = call_of(g, op, cell, op.type == "BatchNormInference" ? "BatchNormNormalize" : op.type);
  const Shape& x = input_shape(g, op, 0);
  const bool sum = op.type == "BatchNormSum" || op.type == "BatchNormSquares";
  const bool frozen = op.type == "BatchNormInference" || op.type == "BatchNormNormalize" ||
                      op.type == "BatchNormInferenceGrad" || op.type == "BatchNormGradSums";
  if (!sum) call.attributes.set("epsilon", op.attributes.real("epsilon", 1e-5));
  const int64_t groups = groups_of(op);
  if (!frozen)
    call.attributes.set("scale", static_cast<double>(x[1] * groups) / static_cast<double>(volume(x)));
  if (groups > 1) call.attributes.set("groups", cell.boxes[0][0].size() / (x[0] / groups));
  if (fused_relu(op)) call.attributes.set("relu", int64_t{1});
  return call;
}

KernelCall running_call(const Graph& g, const Op& op, const Cell& cell) {
  KernelCall call = call_of(g, op, cell, op.type);
  call.attributes.set("momentum", op.attributes.real("momentum", 0.9));
  return call;
}

// Local response normalisation: channel c looks at channels [c - before, c + after]. The gradient of x[c]
// takes in the channels that look at c, and those that they look at.

struct Neighbours {
  int64_t size, before, after;
};

Neighbours neighbours_of(const Op& op) {
  const int64_t size = op.attributes.integer("size");
  return {.size = size, .before = (size - 1) / 2, .after = size / 2};
}

std::vector<TensorType> infer_lrn(const Graph& g, const Op& op) {
  require_image(input_shape(g, op, 0), "the input");
  if (op.attributes.integer("size") < 1)
    throw UserError("size has the value " + std::to_string(op.attributes.integer("size")));
  return {{input_shape(g, op, 0), g.tensor(op.inputs[0]).dtype}};
}

AccessMap channel_window(size_t rank, int64_t before, int64_t after) {
  AccessMap map = identity_map(rank);
  map.axes[1] = {.dim = 1, .stride = 1, .offset = -before, .span = before + 1 + after};
  return map;
}

OpSpace lrn_space(const Graph& g, const Op& op) {
  const Shape& x = input_shape(g, op, 0);
  const Neighbours n = neighbours_of(op);
  OpSpace space = image_dims(x);
  space.inputs = {channel_window(x.size(), n.before, n.after)};
  space.outputs = {identity_map(x.size())};
  return space;
}

OpSpace lrn_grad_space(const Graph& g, const Op& op) {
  const Shape& x = input_shape(g, op, 0);
  const Neighbours n = neighbours_of(op);
  OpSpace space = image_dims(x);
  space.inputs = {channel_window(x.size(), n.size - 1, n.size - 1),
                  channel_window(x.size(), n.after, n.before)};
  space.outputs = {identity_map(x.size())};
  return space;
}

void lrn_gradient(const Op& op, GradientBuilder& b) {
  const TensorId dy = b.output_gradient(op.outputs[0]), dx = b.input_gradient(op.inputs[0]);
  if (dy.valid() && dx.valid()) b.emit("grad", "LRNGrad", op.attributes, {op.inputs[0], dy}, {dx});
}

/// `begin` (and `dy_begin`): where the output's first channel stands in x (and in dy).
KernelCall lrn_call(const Graph& g, const Op& op, const Cell& cell) {
  KernelCall call = call_of(g, op, cell, op.type);
  const bool forward = op.type == "LRN";
  const int64_t first = cell.boxes[forward ? 1 : 2][1].lo;
  call.attributes = {{"size", op.attributes.integer("size")},
                     {"alpha", op.attributes.real("alpha", 1e-4)},
                     {"beta", op.attributes.real("beta", 0.75)},
                     {"bias", op.attributes.real("bias", 1.0)},
                     {"begin", first - cell.boxes[0][1].lo}};
  if (!forward) call.attributes.set("dy_begin", first - cell.boxes[1][1].lo);
  return call;
}

Work lrn_work(const Graph& g, const Op& op, const Cell& cell) {
  return {.flops = cells_volume(cell) * static_cast<double>(2 * op.attributes.integer("size") + 8),
          .bytes = bytes_of(g, op, cell)};
}

}  // namespace

std::span<const OpDef> normalization_ops() {
  static const std::vector<std::string_view> kSplits{"n", "d", "h", "w"};
  static const OpDef kOps[] = {
      {.type = "BatchNorm",
       .family = "norm",
       .infer = infer_batch_norm,
       .space = whole_space,
       .gradient = batch_norm_gradient,
       .stage_dims = kSplits,
       .stages = batch_norm_stages,
       .work = norm_work,
       .kernel = batch_norm_call},
      {.type = "BatchNormSum",
       .family = "norm",
       .infer = infer_none,
       .space = sums_space,
       .stage_dims = {},
       .work = norm_work,
       .kernel = batch_norm_call},
      {.type = "BatchNormSquares",
       .family = "norm",
       .infer = infer_none,
       .space = sums_space,
       .stage_dims = {},
       .work = norm_work,
       .kernel = batch_norm_call},
      {.type = "BatchNormNormalize",
       .family = "norm",
       .infer = infer_same,
       .space = whole_space,
       .stage_dims = {},
       .work = norm_work,
       .kernel = batch_norm_call},
      {.type = "BatchNormGrad",
       .family = "norm",
       .infer = infer_none,
       .space = whole_space,
       .stage_dims = kSplits,
       .stages = batch_norm_grad_stages,
       .work = norm_work,
       .kernel = batch_norm_call},
      {.type = "BatchNormGradSums",
       .family = "norm",
       .infer = infer_none,
       .space = sums_space,
       .stage_dims = {},
       .work = norm_work,
       .kernel = batch_norm_call},
      {.type = "BatchNormGradData",
       .family = "norm",
       .infer = infer_none,
       .space = whole_space,
       .stage_dims = {},
       .work = norm_work,
       .kernel = batch_norm_call},
      {.type = "BatchNormRunning",
       .family = "update",
       .infer = infer_running,
       .space = running_space,
       .stage_dims = {},
       .kernel = running_call,
       .forward_in_eval = false},
      {.type = "BatchNormInference",
       .family = "norm",
       .infer = infer_same,
       .space = whole_space,
       .gradient = inference_gradient,
       .stage_dims = {},
       .work = norm_work,
       .kernel = batch_norm_call},
      {.type = "BatchNormInferenceGrad",
       .family = "norm",
       .infer = infer_none,
       .space = whole_space,
       .stage_dims = {},
       .work = norm_work,
       .kernel = batch_norm_call},
      {.type = "LRN",
       .family = "norm",
       .infer = infer_lrn,
       .space = lrn_space,
       .gradient = lrn_gradient,
       .stage_dims = {},
       .work = lrn_work,
       .kernel = lrn_call},
      {.type = "LRNGrad",
       .family = "norm",
       .infer = infer_none,
       .space = lrn_grad_space,
       .stage_dims = {},
       .work = lrn_work,
       .kernel = lrn_call},
  };
  return kOps;
}

}  // namespace ff
