// Translation of the ops that index: embeddings and other gathers.

#include "compiler/onnx/rules.h"

namespace ff::onnx_import {
namespace {

/// The one entry of an axis, without the axis: a slice, which reads no more than that.
void import_entry(Node& node, int64_t axis, int64_t index, const Shape& index_shape) {
  const Shape x = node.shape(0);
  const auto a = static_cast<size_t>(axis);
  const int64_t at = index < 0 ? index + x[a] : index;
  if (at < 0 || at >= x[a])
    throw UserError("index " + std::to_string(index) + " is outside an axis of " + std::to_string(x[a]));
  Ints starts(x.size(), 0);
  Ints ends = x;
  starts[a] = at;
  ends[a] = at + 1;
  const TensorId one = node.emit("Slice", {{"starts", starts}, {"ends", ends}, {"steps", Ints(x.size(), 1)}},
                                 {node.operand(0)}, "entry");
  Shape shape(x.begin(), x.begin() + axis);
  shape.insert(shape.end(), index_shape.begin(), index_shape.end());
  shape.insert(shape.end(), x.begin() + axis + 1, x.end());
  node.result(node.emit("Reshape", {{"shape", shape}}, {one}));
}

}  // namespace

void import_gather(Node& node) {
  const int64_t axis = positive_axis(node.integer("axis", 0), node.shape(0).size());
  if (node.value(1).kind == Value::Kind::constant && node.value(1).constant->size() == 1)
    return import_entry(node, axis, node.value(1).constant->integer(0), node.shape(1));
  node.result(node.emit("Gather", {{"axis", axis}}, {node.operand(0, Use::weight), node.operand(1)}));
}

}  // namespace ff::onnx_import
