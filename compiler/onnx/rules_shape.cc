// Translation of the ops that move elements. A weight that only they read keeps its chain to the initializer
// as views.

#include "compiler/onnx/rules.h"

namespace ff::onnx_import {

int64_t positive_axis(int64_t axis, size_t rank) {
  const auto r = static_cast<int64_t>(rank);
  const int64_t out = axis < 0 ? axis + r : axis;
  if (out < 0 || out >= r)
    throw UserError("axis " + std::to_string(axis) + " of a tensor of rank " + std::to_string(rank));
  return out;
}

namespace {

void reshape_to(Node& node, const Shape& shape) {
  if (node.view("reshape", {{"shape", shape}}, shape)) return;
  if (node.shape(0) == shape) return node.result(node.emit("Identity", {}, {node.operand(0)}));
  node.result(node.emit("Reshape", {{"shape", shape}}, {node.operand(0)}));
}

}  // namespace

void import_reshape(Node& node) {
  const Constant wanted = node.required(1, "the shape");
  const Shape x = node.shape(0);
  Shape shape;
  for (int64_t i = 0; i < wanted.size(); ++i) shape.push_back(wanted.integer(i));
  const bool zero_copies = node.integer("allowzero", 0) == 0;
  const auto resolve = [&](Shape s) -> std::optional<Shape> {
    int64_t known = 1;
    int free = -1;
    for (size_t i = 0; i < s.size(); ++i) {
      if (s[i] == 0 && zero_copies && i < x.size()) s[i] = x[i];
      if (s[i] == -1) {
        free = static_cast<int>(i);
      } else {
        known *= s[i];
      }
    }
    if (free >= 0 && known > 0 && volume(x) % known == 0) s[static_cast<size_t>(free)] = volume(x) / known;
    return volume(s) == volume(x) ? std::optional(s) : std::nullopt;
  };
  // A model written for a fixed batch says it in its reshapes.
  const bool rebatched = node.old_batch() > 0 && !shape.empty() && shape[0] == node.old_batch() &&
                         node.value(0).kind == Value::Kind::tensor;
  if (rebatched) {
    Shape follows = shape;
    follows[0] = node.graph().batch;
    if (const auto s = resolve(follows)) return reshape_to(node, *s);
  }
  const auto s = resolve(shape);
  if (!s) {
    throw UserError(
        "cannot reshape " + to_string(x) + " to the model's " + to_string(shape) +
            (node.old_batch() > 0 ? ": its shape does not follow the new batch" : ""),
        node.old_batch() > 0 ? "leave --batch out, or export the model with a symbolic batch" : "");
  }
  reshape_to(node, *s);
}

Shape flattened_shape(const Node& node, const Shape& x) {
  int64_t axis = node.integer("axis", 1);
  if (axis < 0) axis += static_cast<int64_t>(x.size());
  int64_t outer = 1;
  for (int64_t i = 0; i < axis; ++i) outer *= x.at(static_cast<size_t>(i));
  return {outer, volume(x) / std::max<int64_t>(outer, 1)};
}

Shape squeezed_shape(const Node& node, const Shape& x) {
  const auto axes = node.ints_of("axes", 1);
  std::set<int64_t> gone;
  for (int64_t a : axes.value_or(Ints{})) {
    const int64_t axis = positive_axis(a, x.size());
    if (x[static_cast<size_t>(axis)] != 1)
      throw UserError("axis " + std::to_string(a) + " of " + to_string(x) + " is not of size 1");
    gone.insert(axis);
  }
  Shape shape;
  for (size_t i = 0; i < x.size(); ++i) {
    if (axes ? !gone.contains(static_cast<int64_t>(i)) : x[i] != 1) shape.push_back(x[i]);
  }
  return shape;
}

Shape unsqueezed_shape(const Node& node, const Shape& x) {
  const auto axes = node.ints_of("axes", 1);
  if (!axes) throw UserError("has no axes");
  std::set<int64_t> added;
  for (int64_t a : *axes) {
    if (!added.insert(positive_axis(a, x.size() + axes->size())).second)
      throw UserError("names axis " + std::to_string(a) + " twice");
  }
  Shape shape;
  auto next = x.begin();
  for (size_t i = 0; i < x.size() + added.size(); ++i)
    shape.push_back(added.contains(static_cast<int64_t>(i)) ? 1 : *next++);
  return shape;
}

void import_flatten(Node& node) { reshape_to(node, flattened_shape(node, node.shape(0))); }
void import_squeeze(Node& node) { reshape_to(node, squeezed_shape(node, node.shape(0))); }
void import_unsqueeze(Node& node) { reshape_to(node, unsqueezed_shape(node, node.shape(0))); }

void import_transpose(Node& node) {
  const Shape x = node.shape(0);
  Ints reversed;
  for (size_t i = x.size(); i-- > 0;) reversed.push_back(static_cast<int64_t>(i));
  const Ints perm = node.ints("perm", reversed);
  Shape shape;
  for (int64_t p : perm) shape.push_back(x.at(static_cast<size_t>(p)));
  if (node.view("transpose", {{"perm", perm}}, shape)) return;
  node.result(node.emit("Transpose", {{"perm", perm}}, {node.operand(0)}));
}

/// A weight beside activations is trained as one that is added to them is (the token of a class, say).
void import_concat(Node& node) {
  std::vector<TensorId> inputs;
  for (int i = 0; i < node.input_count(); ++i) inputs.push_back(node.operand(i, Use::elementwise));
  const int64_t axis = positive_axis(node.integer("axis", 1), node.shape(0).size());
  node.result(node.emit("Concat", {{"axis", axis}}, inputs));
}

namespace {

/// A tensor cut, turned and joined again.
void rearrange(Node& node, const Shape& cut, const Ints& perm, const Shape& joined) {
  TensorId y = node.emit("Reshape", {{"shape", cut}}, {node.operand(0)}, "cut");
  y = node.emit("Transpose", {{"perm", perm}}, {y}, "turned");
  node.result(node.emit("Reshape", {{"shape", joined}}, {y}));
}

/// The block's side; the shape is that of images with two spatial axes.
int64_t block_of(const Node& node, const Shape& x) {
  const int64_t b = node.integer("blocksize", 0);
  if (b < 1) throw UserError("blocksize is " + std::to_string(b));
  if (x.size() != 4) throw UserError("the input has shape " + to_string(x) + "; it must have 4 dimensions");
  return b;
}

}  // namespace

/// Channel (i b + j) C + c in DCR mode, c b b + i b + j in CRD mode, goes to row i and column j of channel c.
void import_depth_to_space(Node& node) {
  const Shape x = node.shape(0);
  const int64_t b = block_of(node, x);
  if (x[1] % (b * b) != 0)
    throw UserError(std::to_string(x[1]) + " channels are no whole number of blocks of " + std::to_string(b) +
                    " x " + std::to_string(b));
  const int64_t c = x[1] / (b * b);
  const Shape joined{x[0], c, x[2] * b, x[3] * b};
  const std::string mode = node.string("mode", "DCR");
  if (mode == "DCR") return rearrange(node, {x[0], b, b, c, x[2], x[3]}, {0, 3, 4, 1, 5, 2}, joined);
  if (mode == "CRD") return rearrange(node, {x[0], c, b, b, x[2], x[3]}, {0, 1, 4, 2, 5, 3}, joined);
  throw UserError("mode is '" + mode + "'; known are DCR and CRD");
}

void import_space_to_depth(Node& node) {
  const Shape x = node.shape(0);
  const int64_t b = block_of(node, x);
  if (x[2] % b != 0 || x[3] % b != 0)
    throw UserError("an image of " + to_string(x) + " is no whole number of blocks of " + std::to_string(b) +
                    " x " + std::to_string(b));
  rearrange(node, {x[0], x[1], x[2] / b, b, x[3] / b, b}, {0, 3, 5, 1, 2, 4},
            {x[0], x[1] * b * b, x[2] / b, x[3] / b});
}

namespace {

/// The element of an axis of this extent that stands `at` elements from its beginning, before it and after it
/// too.
int64_t element_at(const std::string& mode, int64_t at, int64_t extent) {
  if (mode == "edge") return std::clamp<int64_t>(at, 0, extent - 1);
  if (mode == "wrap") return (at % extent + extent) % extent;
  const int64_t period = std::max<int64_t>(1, 2 * (extent - 1));  // reflect: 0 1 2 1 0 1 2 ...
  const int64_t place = (at % period + period) % period;
  return std::min(place, period - place);
}

/// Each padded axis is a gather of its own elements.
void pad_with_elements(Node& node, const std::string& mode, const Ints& pads) {
  const Shape x = node.shape(0);
  Ints padded;
  for (size_t d = 0; d < x.size(); ++d) {
    if (pads[d] != 0 || pads[x.size() + d] != 0) padded.push_back(static_cast<int64_t>(d));
  }
  if (padded.empty()) return node.alias();
  TensorId y = node.operand(0);
  for (int64_t axis : padded) {
    const auto d = static_cast<size_t>(axis);
    std::vector<int64_t> elements;
    for (int64_t at = -pads[d]; at < x[d] + pads[x.size() + d]; ++at)
      elements.push_back(element_at(mode, at, x[d]));
    if (elements.empty()) throw UserError("padding of " + to_string(x) + " leaves nothing");
    const auto count = static_cast<int64_t>(elements.size());
    const std::string part = "axis" + std::to_string(axis);
    const TensorId places = node.frozen(part + "_elements", Constant::of_ints({count}, std::move(elements)));
    y = node.emit("Gather", {{"axis", axis}}, {y, places}, axis == padded.back() ? "" : part);
  }
  node.result(y);
}

/// Begins of all axes, then ends.
Ints pads_of(const Node& node) {
  const auto pads = node.ints_of("pads", 1);
  if (!pads) throw UserError("has no pads");
  const size_t rank = node.shape(0).size();
  Ints axes;
  if (node.has(3)) {
    const Constant given = node.required(3, "the axes");
    for (int64_t i = 0; i < given.size(); ++i) axes.push_back(positive_axis(given.integer(i), rank));
  } else {
    for (size_t d = 0; d < rank; ++d) axes.push_back(static_cast<int64_t>(d));
  }
  if (pads->size() != 2 * axes.size())
    throw UserError("has " + std::to_string(pads->size()) + " pads for " + std::to_string(axes.size()) +
                    " axes");
  Ints all(2 * rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<size_t>(axes[i]);
    all[a] = (*pads)[i];
    all[rank + a] = (*pads)[i + axes.size()];
  }
  return all;
}

}  // namespace

void import_pad(Node& node) {
  const Ints pads = pads_of(node);
  const std::string mode = node.string("mode", "constant");
  if (mode == "edge" || mode == "reflect" || mode == "wrap") return pad_with_elements(node, mode, pads);
  if (mode != "constant") throw UserError("mode is '" + mode + "'; known are constant, edge, reflect, wrap");
  const double value = node.has(2) ? node.required(2, "the value").real(0) : node.real("value", 0.0);
  node.result(node.emit("Pad", {{"pads", pads}, {"value", value}}, {node.operand(0)}));
}

}  // namespace ff::onnx_import
