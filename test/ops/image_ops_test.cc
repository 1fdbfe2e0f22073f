// Image ops by ONNX's definitions: loops over outputs and taps count which elements a block of the output
// takes in, for random shapes, against the access maps alone; then values worked out by hand. What holds for
// every op is in every_op_test.cc.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>

#include "compiler/base/check.h"
#include "compiler/base/rng.h"
#include "compiler/ops/conv.h"
#include "test/catch.h"
#include "test/ops/op_cases.h"

namespace ff::test {
namespace {

/// Random windows of two axes over an image.
struct RandomWindows {
  Ints kernel, strides, dilations, pads{0, 0, 0, 0};
  Shape in;

  explicit RandomWindows(Rng& rng, bool pool) {
    for (size_t a = 0; a < 2; ++a) {
      kernel.push_back(1 + rng.below(3));
      strides.push_back(1 + rng.below(3));
      dilations.push_back(1 + rng.below(3) / 2);
      const int64_t most = pool ? reach(a) : reach(a) + 2;  // pooling wants no window of padding alone
      pads[a] = rng.below(most), pads[2 + a] = rng.below(most);
      in.push_back(std::max<int64_t>(1, reach(a) - pads[a] - pads[2 + a]) + rng.below(6));
    }
  }
  int64_t reach(size_t a) const { return (kernel[a] - 1) * dilations[a] + 1; }
  Attributes attributes() const { return {{"strides", strides}, {"dilations", dilations}, {"pads", pads}}; }
};

/// The smallest range around some indices.
struct Hull {
  Range range{INT64_MAX, 0};
  void add(int64_t i) { range = {std::min(range.lo, i), std::max(range.hi, i + 1)}; }
  Range get() const { return range.empty() ? Range{0, 0} : range; }
};

/// ONNX, Conv and pooling: element o of the output takes in o * stride - pad + tap * dilation for every tap
/// that is not in the padding.
Range rows_taken_in(const RandomWindows& w, size_t axis, Range outputs) {
  Hull hull;
  for (int64_t o = outputs.lo; o < outputs.hi; ++o) {
    for (int64_t tap = 0; tap < w.kernel[axis]; ++tap) {
      const int64_t row = o * w.strides[axis] - w.pads[axis] + tap * w.dilations[axis];
      if (row >= 0 && row < w.in[axis]) hull.add(row);
    }
  }
  return hull.get();
}

/// ONNX's output extent: floor or ceil of (in + pads - reach) / stride, plus 1; with ceil_mode no window
/// begins in the padding after the input.
int64_t extent_by_definition(const RandomWindows& w, size_t axis, bool ceil_mode) {
  int64_t out = 0;
  for (int64_t begin = 0;; begin += w.strides[axis], ++out) {
    const int64_t padded = w.in[axis] + w.pads[axis] + w.pads[2 + axis];
    const bool fits = begin + w.reach(axis) <= padded;
    const bool hangs_over = ceil_mode && out > 0 && begin < w.in[axis] + w.pads[axis] &&
                            begin + w.reach(axis) < padded + w.strides[axis];
    if (!fits && !hangs_over) return out;
  }
}

/// A map's range contains what is taken in, and is that: but for rows that no window reads, which the windows
/// before them get, and for windows with holes that begin or end in the padding.
void check_rows(const RandomWindows& w, size_t axis, Range outputs, int64_t extent, Range box) {
  const Range taken = rows_taken_in(w, axis, outputs);
  INFO("rows " << box.lo << " to " << box.hi << " for outputs " << outputs.lo << " to " << outputs.hi
               << ", which take in " << taken.lo << " to " << taken.hi);
  if (!taken.empty()) CHECK((box.lo <= taken.lo && box.hi >= taken.hi));
  const int64_t begin = outputs.lo * w.strides[axis] - w.pads[axis];
  const int64_t last = (outputs.hi - 1) * w.strides[axis] - w.pads[axis], end = last + w.reach(axis);
  const int64_t read = (extent - 1) * w.strides[axis] - w.pads[axis] + w.reach(axis);
  const int64_t slack = std::clamp<int64_t>(w.in[axis] - read, 0, w.strides[axis] - 1);
  const bool holes = w.dilations[axis] > 1;
  const bool clean_begin = begin >= 0 || (!holes && begin + w.kernel[axis] > 0);
  const bool clean_end = end <= w.in[axis] || (!holes && last < w.in[axis]);
  if (taken.empty()) return;
  if (clean_begin) CHECK(box.lo == taken.lo);
  if (clean_end) CHECK(box.hi <= std::min(taken.hi + slack, w.in[axis]));
}

Range random_block(Rng& rng, int64_t extent) {
  const int64_t lo = rng.below(extent);
  return {lo, lo + 1 + rng.below(extent - lo)};
}

std::vector<Range> random_cell(Rng& rng, const OpSpace& space) {
  std::vector<Range> cell;
  for (const IterDim& d : space.dims) cell.push_back(random_block(rng, d.extent));
  return cell;
}

/// The spaces of an op and of the ops of its gradient, which share their dimensions.
struct Spaces {
  OneOp forward;
  std::map<std::string, OpId> of;

  Spaces(OneOp op, std::vector<size_t> wanted) : forward(std::move(op)) {
    std::vector<TensorId> ids;
    for (size_t i : wanted) ids.push_back(forward.input(i));
    RuleBuilder(forward.graph).differentiate(forward.op, ids);
    for (size_t i = 0; i < forward.graph.ops.size(); ++i)
      of[forward.graph.ops[i].type] = OpId(static_cast<int64_t>(i));
  }
  OpSpace space(const std::string& type) const { return space_of(forward.graph, of.at(type)); }
  Cell cell(const std::string& type, const std::vector<Range>& blocks) const {
    return cell_of(forward.graph, forward.graph.op(of.at(type)), space(type), blocks);
  }
  const Shape& y() const { return forward.graph.tensor(forward.graph.op(forward.op).outputs[0]).shape; }
};

void check_conv_cell(const Spaces& s, const RandomWindows& w, int64_t group, const std::vector<Range>& cell) {
  const Cell forward = s.cell("Conv", cell), data = s.cell("ConvGradData", cell),
             weight = s.cell("ConvGradWeight", cell);
  const Box &x = forward.boxes[0], &weights = forward.boxes[1], &y = forward.boxes[3];
  CHECK(y == data.boxes[0]);
  CHECK(y == weight.boxes[1]);
  CHECK(x == data.boxes[2]);
  CHECK(x == weight.boxes[0]);
  CHECK(weights == data.boxes[1]);
  CHECK(weights == weight.boxes[2]);
  CHECK(forward.boxes[2] == weight.boxes[3]);
  // Channel co of the output belongs to group co / (outputs of a group), whose inputs it sums.
  const Shape& shape = s.forward.graph.tensor(s.forward.input(1)).shape;
  Hull in, out, of_group;
  for (int64_t co = 0; co < shape[0]; ++co) {
    const int64_t g = co / (shape[0] / group);
    const int64_t along = group > 1 ? g : co;
    if (along < cell[1].lo || along >= cell[1].hi) continue;
    out.add(co);
    for (int64_t ci = 0; ci < shape[1]; ++ci) {
      if (group == 1 && (ci < cell[4].lo || ci >= cell[4].hi)) continue;
      in.add(g * shape[1] + ci), of_group.add(ci);
    }
  }
  const bool first = group > 1 || cell[4].lo == 0;  // a bias is added once
  CHECK(forward.boxes[2] == (first ? Box::of_ranges(std::vector{out.get()}) : Box({0}, {0})));
  CHECK(y == Box::of_ranges(std::vector{cell[0], out.get(), cell[2], cell[3]}));
  CHECK(weights ==
        Box::of_ranges(std::vector{out.get(), of_group.get(), {0, w.kernel[0]}, {0, w.kernel[1]}}));
  CHECK(x[0] == cell[0]);
  CHECK(x[1] == in.get());
  for (size_t a = 0; a < 2; ++a) check_rows(w, a, cell[2 + a], s.y()[2 + a], x[static_cast<int>(2 + a)]);
}

}  // namespace

TEST_CASE("cells of convolutions read and write what the definition says") {
  Rng rng(1);
  for (int i = 0; i < 300; ++i) {
    const RandomWindows w(rng, false);
    const int64_t group = 1 + rng.below(3), ci = 1 + rng.below(3), co = 1 + rng.below(2);
    Attributes attributes = w.attributes();
    attributes.set("group", group);
    const Spaces s({"Conv",
                    attributes,
                    {{"x", {2, group * ci, w.in[0], w.in[1]}},
                     {"w", {group * co, ci, w.kernel[0], w.kernel[1]}},
                     {"b", {group * co}}}},
                   {0, 1, 2});
    for (size_t a = 0; a < 2; ++a) CHECK(s.y()[2 + a] == extent_by_definition(w, a, false));
    for (int k = 0; k < 10; ++k) {
      const std::vector<Range> cell = random_cell(rng, s.space("Conv"));
      INFO(to_text("Conv", s.space("Conv"))
           << " on " << to_string(s.forward.graph.tensor(s.forward.input(0)).shape));
      check_conv_cell(s, w, group, cell);
    }
  }
}

TEST_CASE("cells of pooling read and write what the definition says") {
  Rng rng(2);
  for (int i = 0; i < 300; ++i) {
    const RandomWindows w(rng, true);
    const bool ceil_mode = rng.below(2) != 0;
    Attributes attributes = w.attributes();
    attributes.set("kernel_shape", w.kernel);
    attributes.set("ceil_mode", int64_t{ceil_mode});
    for (const std::string type : {"MaxPool", "AveragePool"}) {
      const Spaces s({type, attributes, {{"x", {2, 3, w.in[0], w.in[1]}}}}, {0});
      INFO(to_text(type, s.space(type)) << " ceil_mode=" << ceil_mode << " on " << to_string(w.in));
      for (size_t a = 0; a < 2; ++a) CHECK(s.y()[2 + a] == extent_by_definition(w, a, ceil_mode));
      for (int k = 0; k < 5; ++k) {
        const std::vector<Range> blocks = random_cell(rng, s.space(type));
        const Cell cell = s.cell(type, blocks), grad = s.cell(type + "Grad", blocks);
        const Box& x = cell.boxes[0];
        for (size_t o = 1; o < cell.boxes.size(); ++o) {
          CHECK(cell.boxes[o] == Box::of_ranges(blocks));
          CHECK(grad.boxes[o - 1] == cell.boxes[o]);
        }
        CHECK(grad.boxes.back() == x);
        CHECK(x[0] == blocks[0]);
        CHECK(x[1] == blocks[1]);
        for (size_t a = 0; a < 2; ++a)
          check_rows(w, a, blocks[2 + a], s.y()[2 + a], x[static_cast<int>(2 + a)]);
      }
    }
  }
}

TEST_CASE("cells of local response normalisation read the neighbours that the definition says") {
  Rng rng(3);
  for (int i = 0; i < 200; ++i) {
    const int64_t channels = 1 + rng.below(9), size = 1 + rng.below(6);
    const Spaces s({"LRN", {{"size", size}}, {{"x", {2, channels, 2, 3}}}}, {0});
    // ONNX: the sum for c runs over max(0, c - floor((size-1)/2)) to min(C-1, c + ceil((size-1)/2)).
    const auto neighbours = [&](int64_t c) {
      return Range{std::max<int64_t>(0, c - (size - 1) / 2), std::min(channels - 1, c + size / 2) + 1};
    };
    const std::vector<Range> blocks = random_cell(rng, s.space("LRN"));
    Hull x, grad_x, grad_dy;
    for (int64_t c = blocks[1].lo; c < blocks[1].hi; ++c) {
      x.add(neighbours(c).lo), x.add(neighbours(c).hi - 1);
      for (int64_t j = 0; j < channels; ++j) {
        // The gradient of x[c] comes from every y[j] whose sum has c in it, and with it that whole sum.
        if (neighbours(j).lo > c || neighbours(j).hi <= c) continue;
        grad_dy.add(j), grad_x.add(neighbours(j).lo), grad_x.add(neighbours(j).hi - 1);
      }
    }
    INFO("size " << size << ", channels " << blocks[1].lo << " to " << blocks[1].hi << " of " << channels);
    const Cell forward = s.cell("LRN", blocks), grad = s.cell("LRNGrad", blocks);
    CHECK(forward.boxes[0][1] == x.get());
    CHECK(grad.boxes[0][1] == grad_x.get());
    CHECK(grad.boxes[1][1] == grad_dy.get());
    CHECK(grad.boxes[2] == Box::of_ranges(blocks));
  }
}

TEST_CASE("cells of padding read the elements of their block that are no padding") {
  Rng rng(4);
  for (int i = 0; i < 200; ++i) {
    const Shape x{1 + rng.below(6), 1 + rng.below(6)};
    Ints pads;
    for (int k = 0; k < 4; ++k) pads.push_back(rng.below(4) - (x[static_cast<size_t>(k % 2)] > 4 ? 2 : 0));
    const Spaces s({"Pad", {{"pads", pads}}, {{"x", x}}}, {0});
    const std::vector<Range> blocks = random_cell(rng, s.space("Pad"));
    const Cell forward = s.cell("Pad", blocks), grad = s.cell("PadGrad", blocks);
    INFO(to_text("Pad", s.space("Pad")) << " on " << to_string(x));
    CHECK(forward.boxes[0] == grad.boxes[1]);
    CHECK(forward.boxes[1] == Box::of_ranges(blocks));
    for (size_t a = 0; a < 2; ++a) {
      Hull in;
      for (int64_t o = blocks[a].lo; o < blocks[a].hi; ++o) {
        if (o - pads[a] >= 0 && o - pads[a] < x[a]) in.add(o - pads[a]);
      }
      CHECK(forward.boxes[0][static_cast<int>(a)] == in.get());
    }
  }
}

// Values worked out by hand.

TEST_CASE("an average counts the padding where it is told to") {
  const auto average = [](int64_t with_pads, int64_t ceil_mode) {
    const OneOp c("AveragePool",
                  {{"kernel_shape", Ints{3}},
                   {"strides", Ints{2}},
                   {"pads", Ints{1, 0}},
                   {"count_include_pad", with_pads},
                   {"ceil_mode", ceil_mode}},
                  {{"x", {1, 1, 5}}});
    return evaluate(c.graph, {{"x", {6, 12, 18, 24, 30}}}, cpu::Flavor::reference).at("y");
  };
  // Windows [-1, 2), [1, 4) and, with ceil_mode, [3, 6), whose end is no padding and never counts.
  CHECK(average(0, 0) == std::vector<double>{9, 18});
  CHECK(average(1, 0) == std::vector<double>{6, 18});
  CHECK(average(0, 1) == std::vector<double>{9, 18, 27});
  CHECK(average(1, 1) == std::vector<double>{6, 18, 27});
}

TEST_CASE("padding of SAME is the input over the stride") {
  // ONNX: out = ceil(in / stride); total = (out - 1) * stride + reach - in; UPPER puts the odd one at the
  // end.
  CHECK(resolve_auto_pad("SAME_UPPER", {1, 1, 5, 6}, {2, 3}, {1, 2}, {1, 1}) == Ints{0, 0, 1, 1});
  CHECK(resolve_auto_pad("SAME_LOWER", {1, 1, 5, 6}, {2, 3}, {1, 2}, {1, 1}) == Ints{1, 1, 0, 0});
  CHECK(resolve_auto_pad("SAME_UPPER", {1, 1, 7}, {3}, {2}, {2}) == Ints{2, 2});
  CHECK(resolve_auto_pad("VALID", {1, 1, 7}, {3}, {2}, {2}) == Ints{0, 0});
  CHECK_THROWS_AS(resolve_auto_pad("SAME", {1, 1, 7}, {3}, {2}, {2}), UserError);
}

TEST_CASE("windows that do not fit are refused") {
  const auto conv = [](Attributes attributes, const Shape& x, const Shape& w) {
    return OneOp("Conv", std::move(attributes), {{"x", x}, {"w", w}});
  };
  CHECK_THROWS_AS(conv({}, {1, 2, 4, 4}, {3, 1, 3, 3}), UserError);                           // channels
  CHECK_THROWS_AS(conv({{"group", int64_t{2}}}, {1, 2, 4, 4}, {3, 1, 3, 3}), UserError);      // groups
  CHECK_THROWS_AS(conv({}, {1, 1, 2, 4}, {1, 1, 3, 3}), UserError);                           // extent
  CHECK_THROWS_AS(conv({{"dilations", Ints{2, 2}}}, {1, 1, 4, 4}, {1, 1, 3, 3}), UserError);  // reach
  CHECK_THROWS_AS(conv({{"strides", Ints{0, 1}}}, {1, 1, 4, 4}, {1, 1, 3, 3}), UserError);    // stride
  CHECK_THROWS_AS(conv({{"pads", Ints{0, 0, 0}}}, {1, 1, 4, 4}, {1, 1, 3, 3}), UserError);    // pads
  CHECK_THROWS_AS(
      OneOp("MaxPool", {{"kernel_shape", Ints{2, 2}}, {"pads", Ints{2, 0, 0, 0}}}, {{"x", {1, 1, 4, 4}}}),
      UserError);
}

TEST_CASE("dropout keeps what it scales and its gradient has the same mask") {
  OneOp c("Dropout", {{"ratio", 0.25}, {"op_key", int64_t{3}}}, {{"x", {4000}}});
  RuleBuilder(c.graph).differentiate(c.op, {c.input(0)});
  const std::vector<double> ones(4000, 1.0);
  RunContext context;
  std::vector<std::vector<double>> masks;
  for (int64_t step : {0, 1}) {
    context.step = step;
    const Values v =
        evaluate(c.graph, {{"x", ones}, {"grad_y", ones}}, cpu::Flavor::reference, Form::fused, context);
    CHECK(v.at("y") == v.at("grad_x"));
    const auto kept = std::count(v.at("y").begin(), v.at("y").end(), 1 / 0.75);
    CHECK(kept + std::count(v.at("y").begin(), v.at("y").end(), 0.0) == 4000);
    CHECK(std::abs(static_cast<double>(kept) - 3000) < 5 * std::sqrt(4000 * 0.75 * 0.25));
    masks.push_back(v.at("y"));
  }
  CHECK(masks[0] != masks[1]);
}

TEST_CASE("layers that share a scale add to its gradient in both forms") {
  OneOp c("BatchNorm", {}, {{"x", {2, 3, 2}}, {"scale", {3}}, {"bias", {3}}});
  Tensor other;
  other.name = "other", other.shape = {2, 3, 2}, other.dtype = DType::f64, other.kind = TensorKind::input;
  const TensorId x = c.graph.add_tensor(other);
  const OpId second = add_op(c.graph, "z", "BatchNorm", {}, {x, c.input(1), c.input(2)});
  RuleBuilder rules(c.graph);
  rules.stage(c.op);
  rules.stage(second);
  const size_t forward = c.graph.ops.size();
  for (OpId op : {c.op, second}) rules.differentiate(op, c.graph.op(op).inputs);
  for (size_t i = forward, end = c.graph.ops.size(); i < end; ++i) rules.stage(OpId(static_cast<int64_t>(i)));
  Values v = random_inputs(c);
  v["other"] = random_values({2, 3, 2}, 7);
  v["grad_y"] = random_values({2, 3, 2}, 8);
  v["grad_z"] = random_values({2, 3, 2}, 9);
  const Values fused = evaluate(c.graph, v, cpu::Flavor::reference, Form::fused);
  const Values staged = evaluate(c.graph, v, cpu::Flavor::reference, Form::staged);
  for (const char* name : {"grad_x", "grad_other", "grad_scale", "grad_bias"}) {
    INFO(name);
    CHECK(largest_difference(fused.at(name), staged.at(name)) < 1e-12);
  }
  // The gradient of a bias is the sum of what arrives, over both layers.
  for (size_t channel = 0; channel < 3; ++channel) {
    double sum = 0;
    for (size_t n : {size_t{0}, size_t{1}}) {
      for (size_t w : {size_t{0}, size_t{1}})
        sum += v["grad_y"][n * 6 + channel * 2 + w] + v["grad_z"][n * 6 + channel * 2 + w];
    }
    CHECK(std::abs(staged.at("grad_bias")[channel] - sum) < 1e-12);
  }
}

}  // namespace ff::test
