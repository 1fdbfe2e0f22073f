// Translation of the ops that move elements. A weight that only they read keeps its chain to the initializer
// as views.

#include "compiler/onnx/rules.h"

namespace ff::onnx_import {
namespace {

int64_t positive_axis(int64_t axis, size_t rank) {
  const auto r = static_cast<int64_t>(rank);
  const int64_t out = axis < 0 ? axis + r : axis;
  if (out < 0 || out >= r)
    throw UserError("axis " + std::to_string(axis) + " of a tensor of rank " + std::to_string(rank));
  return out;
}

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

void import_flatten(Node& node) {
  const Shape x = node.shape(0);
  int64_t axis = node.integer("axis", 1);
  if (axis < 0) axis += static_cast<int64_t>(x.size());
  int64_t outer = 1;
  for (int64_t i = 0; i < axis; ++i) outer *= x[static_cast<size_t>(i)];
  reshape_to(node, {outer, volume(x) / outer});
}

void import_squeeze(Node& node) {
  const Shape x = node.shape(0);
  const auto axes = node.ints_of("axes", 1);
  std::set<int64_t> gone;
  if (axes) {
    for (int64_t a : *axes) gone.insert(positive_axis(a, x.size()));
  }
  Shape shape;
  for (size_t i = 0; i < x.size(); ++i) {
    if (axes ? !gone.contains(static_cast<int64_t>(i)) : x[i] != 1) shape.push_back(x[i]);
  }
  reshape_to(node, shape);
}

void import_unsqueeze(Node& node) {
  const Shape x = node.shape(0);
  const auto axes = node.ints_of("axes", 1);
  if (!axes) throw UserError("has no axes");
  std::set<int64_t> added;
  for (int64_t a : *axes) added.insert(positive_axis(a, x.size() + axes->size()));
  Shape shape;
  auto next = x.begin();
  for (size_t i = 0; i < x.size() + added.size(); ++i)
    shape.push_back(added.contains(static_cast<int64_t>(i)) ? 1 : *next++);
  reshape_to(node, shape);
}

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

void import_concat(Node& node) {
  std::vector<TensorId> inputs;
  for (int i = 0; i < node.input_count(); ++i) inputs.push_back(node.operand(i));
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

void import_slice(Node& node) {
  const Shape x = node.shape(0);
  const auto starts = node.ints_of("starts", 1);
  const auto ends = node.ints_of("ends", 2);
  if (!starts || !ends) throw UserError("has no starts or no ends");
  Ints axes;
  for (size_t i = 0; i < starts->size(); ++i) axes.push_back(static_cast<int64_t>(i));
  axes = node.ints_of("axes", 3).value_or(axes);
  const Ints steps = node.ints_of("steps", 4).value_or(Ints(starts->size(), 1));
  Ints all_starts(x.size(), 0);
  Ints all_ends = x;
  Ints all_steps(x.size(), 1);
  for (size_t i = 0; i < starts->size(); ++i) {
    const auto a = static_cast<size_t>(positive_axis(axes[i], x.size()));
    const auto clamp = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + x[a] : v, 0, x[a]); };
    if (steps[i] < 1) throw Unsupported("a step of " + std::to_string(steps[i]));
    all_starts[a] = clamp((*starts)[i]);
    all_ends[a] = clamp((*ends)[i]);
    all_steps[a] = steps[i];
  }
  node.result(node.emit("Slice", {{"starts", all_starts}, {"ends", all_ends}, {"steps", all_steps}},
                        {node.operand(0)}));
}

}  // namespace ff::onnx_import
