// Translation of the ops that take parts of a tensor or repeat it: Slice, Split, Expand, Tile. A part of a
// weight that nothing else reads is a view; parts that several nodes read are sliced from the one parameter,
// which all of them train.

#include "compiler/onnx/fold.h"
#include "compiler/onnx/rules.h"

namespace ff::onnx_import {
namespace {

/// Elements [start, end) of each axis, every step-th; as the node's output `output`.
TensorId emit_slice(Node& node, const Ints& starts, const Ints& ends, const Ints& steps,
                    const std::string& part) {
  return node.emit("Slice", {{"starts", starts}, {"ends", ends}, {"steps", steps}}, {node.operand(0)}, part);
}

/// A part of a weight that only this node reads, as views.
bool slice_view(Node& node, const SliceRanges& ranges, const Shape& x, const Shape& shape) {
  std::vector<View> views;
  for (size_t d = 0; d < x.size(); ++d) {
    if (ranges.steps[d] < 1 || shape[d] == 0) return false;
    if (shape[d] == x[d]) continue;
    views.push_back({"slice",
                     {{"axis", static_cast<int64_t>(d)},
                      {"begin", ranges.starts[d]},
                      {"end", ranges.starts[d] + (shape[d] - 1) * ranges.steps[d] + 1},
                      {"step", ranges.steps[d]}}});
  }
  return node.view(views, shape);
}

/// Axes that run backwards are gathered: their map would not be a box in order.
TensorId reverse(Node& node, TensorId x, size_t axis, const std::string& part) {
  const int64_t extent = node.graph().tensor(x).shape[axis];
  Constant order = generate_integers(DType::i64, {extent}, [&](int64_t i) { return extent - 1 - i; });
  const TensorId index = node.frozen("order" + std::to_string(axis), std::move(order));
  return node.emit("Gather", {{"axis", static_cast<int64_t>(axis)}}, {x, index}, part);
}

}  // namespace

int64_t SliceRanges::count(size_t axis) const {
  const int64_t step = steps[axis], length = ends[axis] - starts[axis];
  return std::max<int64_t>(0, step > 0 ? (length + step - 1) / step : (length + step + 1) / step);
}

SliceRanges slice_ranges(const Node& node, const Shape& x) {
  const auto starts = node.ints_of("starts", 1);
  const auto ends = node.ints_of("ends", 2);
  if (!starts || !ends || starts->size() != ends->size()) throw UserError("has no starts or no ends");
  Ints axes;
  for (size_t i = 0; i < starts->size(); ++i) axes.push_back(static_cast<int64_t>(i));
  axes = node.ints_of("axes", 3).value_or(axes);
  const Ints steps = node.ints_of("steps", 4).value_or(Ints(starts->size(), 1));
  if (axes.size() != starts->size() || steps.size() != starts->size())
    throw UserError("has " + std::to_string(starts->size()) + " starts, but " + std::to_string(axes.size()) +
                    " axes and " + std::to_string(steps.size()) + " steps");
  SliceRanges out{Ints(x.size(), 0), x, Ints(x.size(), 1)};
  for (size_t i = 0; i < starts->size(); ++i) {
    const auto a = static_cast<size_t>(positive_axis(axes[i], x.size()));
    if (steps[i] == 0) throw UserError("has a step of 0");
    const bool back = steps[i] < 0;
    const auto clamp = [&](int64_t v, int64_t low) {
      return std::clamp<int64_t>(v < 0 ? v + x[a] : v, low, back ? x[a] - 1 : x[a]);
    };
    out.starts[a] = clamp((*starts)[i], 0);
    // An end before the first element is -1 for a step backwards; -1 itself is the last element.
    out.ends[a] = back && (*ends)[i] < -x[a] ? -1 : clamp((*ends)[i], back ? -1 : 0);
    out.steps[a] = steps[i];
  }
  return out;
}

void import_slice(Node& node) {
  const Shape x = node.shape(0);
  SliceRanges ranges = slice_ranges(node, x);
  Shape shape;
  for (size_t d = 0; d < x.size(); ++d) shape.push_back(ranges.count(d));
  if (shape == x && ranges.steps == Ints(x.size(), 1)) return node.alias();
  if (slice_view(node, ranges, x, shape)) return;
  std::vector<size_t> backwards;
  for (size_t d = 0; d < x.size(); ++d) {
    const int64_t step = ranges.steps[d];
    if (step > 0) continue;
    // The same elements forwards, then turned around.
    const int64_t last = ranges.starts[d] + (shape[d] - 1) * step;
    ranges.ends[d] = ranges.starts[d] + 1;
    ranges.starts[d] = last;
    ranges.steps[d] = -step;
    if (shape[d] > 1) backwards.push_back(d);
  }
  TensorId y = emit_slice(node, ranges.starts, ranges.ends, ranges.steps, backwards.empty() ? "" : "part");
  for (size_t i = 0; i < backwards.size(); ++i) {
    const std::string part = i + 1 == backwards.size() ? "" : "reverse" + std::to_string(i);
    y = reverse(node, y, backwards[i], part);
  }
  node.result(y);
}

Ints split_sizes(const Node& node, int64_t extent) {
  const auto given = node.ints_of("split", 1);
  const int64_t parts = node.integer("num_outputs", node.output_count());
  if (given) {
    int64_t sum = 0;
    for (int64_t size : *given) sum += size;
    if (sum != extent || static_cast<int>(given->size()) != node.output_count())
      throw UserError("splits an axis of " + std::to_string(extent) + " into " + to_string(Shape(*given)) +
                      " for " + std::to_string(node.output_count()) + " outputs");
    return *given;
  }
  if (parts < 1 || parts < node.output_count())
    throw UserError("splits into " + std::to_string(parts) + " parts for " +
                    std::to_string(node.output_count()) + " outputs");
  // Before opset 18 the parts are equal; since then the last may be smaller.
  if (node.opset() < 18 && extent % parts != 0)
    throw UserError("splits an axis of " + std::to_string(extent) + " into " + std::to_string(parts) +
                    " equal parts");
  const int64_t size = (extent + parts - 1) / parts;
  Ints sizes;
  for (int64_t i = 0; i < parts; ++i) sizes.push_back(std::clamp<int64_t>(extent - i * size, 0, size));
  return sizes;
}

void import_split(Node& node) {
  const Shape x = node.shape(0);
  const auto axis = static_cast<size_t>(positive_axis(node.integer("axis", 0), x.size()));
  const Ints sizes = split_sizes(node, x[axis]);
  Ints starts(x.size(), 0);
  Ints ends = x;
  for (int output = 0; output < node.output_count(); ++output) {
    ends[axis] = starts[axis] + sizes[static_cast<size_t>(output)];
    if (node.output_used(output)) {
      const TensorId part =
          emit_slice(node, starts, ends, Ints(x.size(), 1), "part" + std::to_string(output));
      node.result(part, output);
    }
    starts[axis] = ends[axis];
  }
}

void import_expand(Node& node) {
  const Constant wanted = node.required(1, "the shape");
  Shape shape;
  for (int64_t i = 0; i < wanted.size(); ++i) shape.push_back(wanted.integer(i));
  const Shape out = broadcast_shapes(node.shape(0), shape);
  if (out == node.shape(0)) return node.alias();
  node.result(node.emit("Expand", {{"shape", out}}, {node.operand(0)}));
}

/// Repeats are an axis of their own: [2, 3] three times along axis 1 is [2, 1, 3] expanded to [2, 3, 3].
void import_tile(Node& node) {
  const Shape x = node.shape(0);
  const Constant repeats = node.required(1, "the repeats");
  if (static_cast<size_t>(repeats.size()) != x.size())
    throw UserError("has " + std::to_string(repeats.size()) + " repeats for a tensor of " + to_string(x));
  Shape cut, expanded, out;
  for (size_t d = 0; d < x.size(); ++d) {
    const int64_t times = repeats.integer(static_cast<int64_t>(d));
    if (times < 1) throw Unsupported("a repeat of " + std::to_string(times));
    out.push_back(x[d] * times);
    if (times > 1 && x[d] > 1) {
      cut.push_back(1);
      expanded.push_back(times);
    }
    cut.push_back(x[d]);
    expanded.push_back(x[d] > 1 ? x[d] : times);
  }
  if (out == x) return node.alias();
  if (cut.size() > static_cast<size_t>(kMaxRank)) throw Unsupported("so many repeated axes");
  TensorId y = node.operand(0);
  if (cut != x) y = node.emit("Reshape", {{"shape", cut}}, {y}, "cut");
  y = node.emit("Expand", {{"shape", expanded}}, {y}, expanded == out ? "" : "expand");
  if (expanded != out) y = node.emit("Reshape", {{"shape", out}}, {y});
  node.result(y);
}

}  // namespace ff::onnx_import
