// Translation of the ops that index: embeddings and other gathers, scatters, and what looks along one axis.

#include "compiler/onnx/fold.h"
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

namespace {

int64_t axis_of(const Node& node, int64_t otherwise) {
  return positive_axis(node.integer("axis", otherwise), node.shape(0).size());
}

/// How updates meet the data, and each other.
std::string reduction_of(const Node& node) {
  std::string reduction = node.string("reduction", "none");
  for (const char* known : {"none", "add", "mul", "max", "min"}) {
    if (reduction == known) return reduction;
  }
  throw UserError("no reduction '" + reduction + "'");
}

/// Sums over an axis, or the places of extreme elements; a model's axis of 1 element too.
void import_arg(Node& node, const char* type) {
  node.result(node.emit(type,
                        {{"axis", axis_of(node, 0)},
                         {"keepdims", node.integer("keepdims", 1)},
                         {"select_last_index", node.integer("select_last_index", 0)}},
                        {node.operand(0)}));
}

}  // namespace

void import_gather_elements(Node& node) {
  node.result(node.emit("GatherElements", {{"axis", axis_of(node, 0)}},
                        {node.operand(0, Use::elementwise), node.operand(1)}));
}

void import_gather_nd(Node& node) {
  node.result(node.emit("GatherND", {{"batch_dims", node.integer("batch_dims", 0)}},
                        {node.operand(0, Use::elementwise), node.operand(1)}));
}

void import_scatter_elements(Node& node) {
  node.result(
      node.emit("ScatterElements", {{"axis", axis_of(node, 0)}, {"reduction", reduction_of(node)}},
                {node.operand(0, Use::elementwise), node.operand(1), node.operand(2, Use::elementwise)}));
}

void import_scatter_nd(Node& node) {
  node.result(
      node.emit("ScatterND", {{"reduction", reduction_of(node)}},
                {node.operand(0, Use::elementwise), node.operand(1), node.operand(2, Use::elementwise)}));
}

void import_cumsum(Node& node) {
  const int64_t axis = positive_axis(node.required(1, "the axis").integer(0), node.shape(0).size());
  node.result(node.emit(
      "CumSum",
      {{"axis", axis}, {"exclusive", node.integer("exclusive", 0)}, {"reverse", node.integer("reverse", 0)}},
      {node.operand(0)}));
}

void import_arg_max(Node& node) { import_arg(node, "ArgMax"); }
void import_arg_min(Node& node) { import_arg(node, "ArgMin"); }

void import_top_k(Node& node) {
  const int64_t k = node.has(1) ? node.required(1, "k").integer(0) : node.integer("k", 0);
  const auto outputs = node.emit_all(
      "", "TopK", {{"axis", axis_of(node, -1)}, {"k", k}, {"largest", node.integer("largest", 1)}},
      {node.operand(0)});
  node.result(outputs[0], 0);
  node.result(outputs[1], 1);
}

void import_one_hot(Node& node) {
  const Constant values = node.required(2, "the values");
  const int64_t axis = positive_axis(node.integer("axis", -1), node.shape(0).size() + 1);
  TensorId indices = node.operand(0);
  const DType type = node.dtype(0);
  if (type != DType::i64 && type != DType::i32)
    indices = node.emit("Cast", {{"to", static_cast<int64_t>(DType::i64)}}, {indices}, "indices");
  node.result(node.emit("OneHot",
                        {{"axis", axis},
                         {"depth", node.required(1, "the depth").integer(0)},
                         {"off", values.real(0)},
                         {"on", values.real(1)},
                         {"dtype", static_cast<int64_t>(values.dtype)}},
                        {indices}));
}

/// Of each sample's steps, the first so many in reverse order: of three of 0 1 2 3 these are 2 1 0 3. A
/// gather of steps by places that are computed from the lengths.
void import_reverse_sequence(Node& node) {
  const Shape x = node.shape(0);
  const int64_t batch_axis = node.integer("batch_axis", 1), time_axis = node.integer("time_axis", 0);
  if (x.size() < 2 || std::min(batch_axis, time_axis) != 0 || std::max(batch_axis, time_axis) != 1)
    throw UserError("has time_axis=" + std::to_string(time_axis) +
                    " and batch_axis=" + std::to_string(batch_axis) + "; of an input of " + to_string(x) +
                    " they are axes 0 and 1");
  const int64_t batch = x[static_cast<size_t>(batch_axis)], time = x[static_cast<size_t>(time_axis)];
  if (node.shape(1) != Shape{batch})
    throw UserError("the lengths have shape " + to_string(node.shape(1)) + "; they must be " +
                    to_string(Shape{batch}));
  const DType type = node.dtype(1);
  const auto binary = [&](const char* op, TensorId a, TensorId b, const std::string& part) {
    return node.emit(op, {}, {a, b}, part);
  };
  const TensorId steps = node.frozen("steps", generate_integers(type, {time}, [](int64_t i) { return i; }));
  const TensorId one = node.frozen("one", generate_integers(type, {}, [](int64_t) { return 1; }));
  const TensorId lengths = node.emit("Reshape", {{"shape", Shape{batch, 1}}}, {node.operand(1)}, "lengths");
  const TensorId last = binary("Sub", lengths, one, "last");
  TensorId places = node.emit(
      "Where", {}, {binary("Less", steps, lengths, "turns"), binary("Sub", last, steps, "turned"), steps},
      "steps_of");
  places = node.emit("Reshape", {{"shape", Shape{batch, time, 1}}}, {places}, "places");
  const Attributes by_sample{{"batch_dims", int64_t{1}}};
  if (batch_axis == 0) return node.result(node.emit("GatherND", by_sample, {node.operand(0), places}));
  Ints perm{1, 0};
  for (size_t d = 2; d < x.size(); ++d) perm.push_back(static_cast<int64_t>(d));
  TensorId y = node.emit("Transpose", {{"perm", perm}}, {node.operand(0)}, "samples");
  y = node.emit("GatherND", by_sample, {y, places}, "gathered");
  node.result(node.emit("Transpose", {{"perm", perm}}, {y}));
}

void import_trilu(Node& node) {
  const int64_t k = node.has(1) ? node.required(1, "k").integer(0) : 0;
  node.result(node.emit("Trilu", {{"upper", node.integer("upper", 1)}, {"k", k}}, {node.operand(0)}));
}

void import_folded_only(Node&) {
  throw Unsupported("of values that are known only when the model runs: the size of its result would not be");
}

}  // namespace ff::onnx_import
