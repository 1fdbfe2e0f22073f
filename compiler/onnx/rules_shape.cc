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

void import_pad(Node& node) {
  if (node.string("mode", "constant") != "constant") throw Unsupported("mode " + node.string("mode", ""));
  const auto pads = node.ints_of("pads", 1);
  if (!pads) throw UserError("has no pads");
  const double value = node.has(2) ? node.required(2, "the value").real(0) : node.real("value", 0.0);
  const size_t rank = node.shape(0).size();
  if (node.has(3)) {
    const Constant axes = node.required(3, "the axes");
    Ints all(2 * rank, 0);
    for (int64_t i = 0; i < axes.size(); ++i) {
      const auto a = static_cast<size_t>(positive_axis(axes.integer(i), rank));
      all[a] = (*pads)[static_cast<size_t>(i)];
      all[rank + a] = (*pads)[static_cast<size_t>(i + axes.size())];
    }
    return node.result(node.emit("Pad", {{"pads", all}, {"value", value}}, {node.operand(0)}));
  }
  node.result(node.emit("Pad", {{"pads", *pads}, {"value", value}}, {node.operand(0)}));
}

}  // namespace ff::onnx_import
