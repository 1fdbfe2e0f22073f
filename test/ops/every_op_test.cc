// Every op of the table, by its cases (op_cases.h), in f64 with plain loops: gradients against finite
// differences, and regions against what cells really touch. Both fail for an op that has no case. Then the
// cells of all ops by the f32 kernels that train.
#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <set>

#include "compiler/base/check.h"
#include "compiler/base/rng.h"
#include "test/catch.h"
#include "test/ops/op_cases.h"
#include "test/ops/touched.h"

namespace ff::test {
namespace {

using cpu::Flavor;

/// Ops that are no part of what finite differences compare, and why.
const std::map<std::string_view, std::string_view> kNotDifferentiable{
    {"ArgMax", "gives integers"},
    {"ArgMin", "gives integers"},
    {"BatchNormRunning", "moves statistics that no loss of this step reads"},
    {"And", "gives booleans"},
    {"Ceil", "is flat"},
    {"Floor", "is flat"},
    {"Round", "is flat"},
    {"Sign", "is flat"},
    {"Equal", "gives booleans"},
    {"Greater", "gives booleans"},
    {"GreaterOrEqual", "gives booleans"},
    {"IsInf", "gives booleans"},
    {"IsNaN", "gives booleans"},
    {"Less", "gives booleans"},
    {"LessOrEqual", "gives booleans"},
    {"LossCount", "counts labels"},
    {"Mod", "is for indices; not built for floats"},
    {"Not", "gives booleans"},
    {"Or", "gives booleans"},
    {"Xor", "gives booleans"},
    {"OneHot", "of integers"},
    {"Sgd", "runs after the gradients"},
    {"Momentum", "runs after the gradients"},
    {"Adam", "runs after the gradients"},
    {"AdamW", "runs after the gradients"},
};

/// A case with its gradient and with the staged forms of all its ops.
class Expanded {
 public:
  Graph graph;
  std::string name;

  explicit Expanded(const OpCase& c, Layout layout = Layout::row_major, DType type = DType::f64)
      : graph(c.op.graph) {
    const Op& forward = graph.op(c.op.op);
    name = to_text(forward.type, space_of(graph, c.op.op)) + " " + to_string(forward.attributes);
    for (Tensor& t : graph.tensors) {
      // Weights lie as parameters do.
      const bool image = t.shape.size() >= 3 && t.name != "w" && !op_def(forward.type).row_major;
      t.layout = image ? layout : Layout::row_major;
      if (t.dtype == DType::f64) t.dtype = type;
    }
    stage_from(0);
    const size_t forward_ops = graph.ops.size();
    if (c.wanted.empty()) return;
    std::vector<TensorId> wanted;
    for (size_t i : c.wanted) wanted.push_back(c.op.input(i));
    RuleBuilder(graph).differentiate(c.op.op, wanted);
    stage_from(forward_ops);
  }
  /// The values of all tensors of one form, or of both.
  Values values(const Values& given, Form form, const RunContext& context) const {
    return evaluate(graph, given, Flavor::reference, form, context);
  }
  Values values(const Values& given, const RunContext& context) const {
    Values out = values(given, Form::fused, context);
    out.merge(values(given, Form::staged, context));
    for (const auto& [key, value] : given) out[key] = value;  // before an op in place has run
    return out;
  }

 private:
  void stage_from(size_t first) {
    RuleBuilder rules(graph);
    for (size_t i = first, end = graph.ops.size(); i < end; ++i) {
      if (op_def(graph.ops[i].type).stages != nullptr) rules.stage(OpId(static_cast<int64_t>(i)));
    }
  }
};

Values given_of(const OpCase& c, unsigned seed) {
  Values given = random_inputs(c, seed);
  if (c.wanted.empty()) return given;
  for (size_t o = 0; o < c.arriving; ++o) {
    const Tensor& y = c.op.graph.tensor(c.op.graph.op(c.op.op).outputs[o]);
    given["grad_" + y.name] = random_values(y.shape, seed + 99 + static_cast<unsigned>(o));
  }
  return given;
}

RunContext context_of(unsigned seed) {
  RunContext context;
  context.seed = seed;
  return context;
}

/// The inner product of the op's outputs with the gradients that arrive at them.
double objective(const OpCase& c, const Values& given) {
  const Values values = evaluate(c.op.graph, given, Flavor::reference, Form::fused, context_of(1));
  double sum = 0;
  for (size_t o = 0; o < c.arriving; ++o) {
    const std::string& name = c.op.graph.tensor(c.op.graph.op(c.op.op).outputs[o]).name;
    const std::vector<double>&y = values.at(name), &dy = given.at("grad_" + name);
    for (size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
  }
  return sum;
}

/// Central differences of fourth order.
std::vector<double> finite_differences(const OpCase& c, Values given, const std::string& name) {
  std::vector<double> out;
  for (double& v : given.at(name)) {
    const double h = 1e-4, old = v;
    const auto at = [&](double step) {
      v = old + step;
      return objective(c, given);
    };
    out.push_back((8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h));
    v = old;
  }
  return out;
}

/// The largest relative difference. A value below a hundredth of the largest counts as that: its differences
/// are made of rounding.
double relative_difference(const std::vector<double>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  double floor = 1e-12, largest = 0;
  for (double v : expected) floor = std::max(floor, std::abs(v) / 100);
  for (size_t i = 0; i < got.size(); ++i) {
    const double d = std::abs(got[i] - expected[i]) / std::max(floor, std::abs(expected[i]));
    largest = std::max(largest, std::isfinite(d) ? d : INFINITY);
  }
  return largest;
}

void check_gradients(const OpCase& c) {
  const Values given = given_of(c, 1);
  std::vector<std::vector<double>> numeric;
  for (size_t i : c.wanted)
    numeric.push_back(finite_differences(c, given, c.op.graph.tensor(c.op.input(i)).name));
  for (Layout layout : {Layout::row_major, Layout::channels_last}) {
    const Expanded expanded(c, layout);
    INFO(expanded.name << (layout == Layout::channels_last ? ", channels last" : ""));
    const std::vector<double> y = expanded.values(given, Form::fused, context_of(1)).at("y");
    for (Form form : {Form::fused, Form::staged}) {
      const Values all = expanded.values(given, form, context_of(1));
      CHECK(largest_difference(all.at("y"), y) < 1e-12);
      for (size_t i = 0; i < c.wanted.size(); ++i) {
        const std::string name = "grad_" + c.op.graph.tensor(c.op.input(c.wanted[i])).name;
        INFO(name << (form == Form::staged ? ", staged" : ", fused"));
        REQUIRE(all.contains(name));
        CHECK(relative_difference(all.at(name), numeric[i]) < 1e-6);
      }
    }
  }
}

// Regions.

/// The ops of an expanded case with their values; a seed gives other values and other masks.
class Sampler {
 public:
  Sampler(const OpCase& c, const Expanded& expanded, OpId id) : case_(c), expanded_(expanded), id_(id) {}
  const ValuedOp& op(unsigned seed) {
    while (ops_.size() < seed) {
      const auto next = static_cast<unsigned>(ops_.size() + 1);
      const RunContext context = context_of(next);
      ops_.push_back(
          {&expanded_.graph, id_, expanded_.values(given_of(case_, next), context), context, case_.classes});
    }
    return ops_[seed - 1];
  }

 private:
  const OpCase& case_;
  const Expanded& expanded_;
  OpId id_;
  std::deque<ValuedOp> ops_;
};

using Degrees = std::vector<int64_t>;

/// The whole; each dimension alone in two and in single elements; all of them in two; and some at random.
std::vector<Degrees> partitions(const OpSpace& space, const std::vector<std::string_view>& never) {
  Degrees most;
  for (const IterDim& d : space.dims)
    most.push_back(std::find(never.begin(), never.end(), d.name) != never.end() ? 1 : d.max_degree);
  const Degrees whole(most.size(), 1);
  std::set<Degrees> out{whole};
  Degrees all = whole;
  for (size_t d = 0; d < most.size(); ++d) {
    for (int64_t degree : {int64_t{2}, most[d]}) {
      Degrees one = whole;
      one[d] = std::min(degree, most[d]);
      out.insert(one);
    }
    all[d] = std::min<int64_t>(2, most[d]);
  }
  out.insert(all);
  Rng rng(5);
  for (int i = 0; i < 2; ++i) {
    for (size_t d = 0; d < most.size(); ++d) all[d] = 1 + rng.below(std::min<int64_t>(3, most[d]));
    out.insert(all);
  }
  return {out.begin(), out.end()};
}

std::vector<Cell> cells_of(const ValuedOp& op, const OpSpace& space, const Degrees& degrees) {
  std::vector<Cell> cells;
  std::vector<Range> blocks(degrees.size());
  const int64_t count = volume(degrees);
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    for (size_t d = degrees.size(); d-- > 0; rest /= degrees[d])
      blocks[d] = block(space.dims[d].extent, degrees[d], rest % degrees[d]);
    cells.push_back(cell_of(*op.graph, op.op(), space, blocks));
  }
  return cells;
}

const AccessMap& map_of(const OpSpace& space, size_t operand) {
  const size_t inputs = space.inputs.size();
  return operand < inputs ? space.inputs[operand] : space.outputs[operand - inputs];
}

/// Whether the hull fills the box along one axis.
bool tight(const Box& box, const Box& hull, int axis) {
  return hull.rank() == box.rank() && hull[axis] == box[axis];
}

/// Whether the box is the hull of what is touched, but for axes that are read whole: an image's corner cell
/// does not need all of a convolution's weights.
bool tight(const AccessMap& map, const Box& box, const Box& hull) {
  if (box.empty() || hull.empty()) return box.empty() && hull.empty();
  for (int axis = 0; axis < box.rank(); ++axis) {
    if (map.axes[static_cast<size_t>(axis)].dim >= 0 && !tight(box, hull, axis)) return false;
  }
  return true;
}

Box join(const Box& a, const Box& b) {
  if (a.empty() || b.empty()) return a.empty() ? b : a;
  Box out;
  for (int i = 0; i < a.rank(); ++i) out.push_back({std::min(a[i].lo, b[i].lo), std::max(a[i].hi, b[i].hi)});
  return out;
}

/// Operands whose boxes are to be the hulls of what is touched: what is read, and what gradients are added
/// to. Of other results it is enough that they are written once, also where they are constant (padding).
bool wants_hull(const ValuedOp& op, size_t operand) {
  const std::vector<TensorId>& inputs = op.op().inputs;
  if (operand < inputs.size()) return true;
  const TensorId id = op.op().outputs[operand - inputs.size()];
  return id.valid() && op.tensor(id).kind == TensorKind::gradient &&
         std::count(inputs.begin(), inputs.end(), id) == 0;
}

/// Whether the boxes of a partition's cells are the hulls of what the cells touch, under one of some values:
/// a mask, a maximum or a label hides elements under others. What is read whole is needed whole by one cell
/// at least.
bool all_tight(Sampler& sampler, const AccessMap& map, size_t operand, const std::vector<Cell>& cells,
               const std::vector<std::vector<Box>>& hulls) {
  constexpr unsigned kSeeds = 30;
  std::vector<bool> filled(map.axes.size(), false);
  for (size_t c = 0; c < cells.size(); ++c) {
    const Box& box = cells[c].boxes[operand];
    Box hull = hulls[c][operand];
    for (unsigned seed = 2; seed <= kSeeds && !tight(map, box, hull); ++seed)
      hull = join(hull, Touched(sampler.op(seed)).add(cells[c])[operand]);
    UNSCOPED_INFO("a cell has the box " << box << ", and touches " << hull);
    if (!tight(map, box, hull)) return false;
    for (size_t a = 0; a < filled.size(); ++a)
      filled[a] = filled[a] || box.empty() || tight(box, hull, static_cast<int>(a));
  }
  return std::count(filled.begin(), filled.end(), false) == 0;
}

using TypeAndOperand = std::pair<std::string_view, size_t>;

/// Operands that cells read more of than they touch, and why.
const std::map<TypeAndOperand, std::string_view> kReadForNothing{
    {{"BatchNormGradSums", 2}, "the scale is for the mask of a fused ReLU, and read without one too"},
    {{"ConcatGrad", 0}, "cells are those of the result, of which an operand is a part"},
    {{"PadGrad", 0}, "cells are those of the result, padding and all"},
    {{"SoftmaxGradDot", 0}, "y is read for the logarithm too, which sums dy alone"},
};

/// What nobody writes of a gradient is 0.
std::vector<double> or_zero(const Tensor& t, std::vector<double> values) {
  for (double& v : values) v = std::isnan(v) && t.kind == TensorKind::gradient ? 0 : v;
  return values;
}

/// Adds to `loose` the operands of the op that are in kReadForNothing, and are.
void check_regions(const OpCase& c, const Expanded& expanded, OpId id, std::set<TypeAndOperand>& loose) {
  Sampler sampler(c, expanded, id);
  const ValuedOp& op = sampler.op(1);
  const OpSpace space = space_of(expanded.graph, id);
  Touched whole(op);
  whole.add(cells_of(op, space, Degrees(space.dims.size(), 1))[0]);
  for (const Degrees& degrees : partitions(space, op_def(op.op().type).stage_dims)) {
    INFO(to_text(op.op().type, space) << " in " << to_string(degrees) << " cells");
    Touched parts(op);
    const std::vector<Cell> cells = cells_of(op, space, degrees);
    std::vector<std::vector<Box>> hulls;
    for (const Cell& cell : cells) hulls.push_back(parts.add(cell));
    CHECK(parts.missing(whole) == "");
    for (const auto& [tensor, values] : whole.result()) {
      const Tensor& t = op.tensor(tensor);
      INFO(t.name);
      CHECK(largest_difference(or_zero(t, parts.result().at(tensor)), or_zero(t, values)) < 1e-10);
    }
    for (size_t i = 0; i < hulls[0].size() && c.inexact.empty(); ++i) {
      if (!wants_hull(op, i)) continue;
      const bool is_tight = all_tight(sampler, map_of(space, i), i, cells, hulls);
      const auto listed = kReadForNothing.find({op.op().type, i});
      if (listed != kReadForNothing.end()) {
        if (!is_tight) loose.insert(listed->first);
        continue;
      }
      INFO("operand " << i);
      CHECK(is_tight);
    }
  }
}

/// All cells of a partition by the f32 kernels that train, against the whole by plain loops.
void check_fast_cells(const OpCase& c, const Expanded& expanded, OpId id) {
  Sampler sampler(c, expanded, id);
  const ValuedOp& op = sampler.op(1);
  const OpSpace space = space_of(expanded.graph, id);
  Touched whole(op);
  whole.run(cells_of(op, space, Degrees(space.dims.size(), 1))[0], Flavor::reference);
  for (const Degrees& degrees : partitions(space, op_def(op.op().type).stage_dims)) {
    INFO(to_text(op.op().type, space) << " in " << to_string(degrees) << " cells");
    Touched parts(op);
    for (const Cell& cell : cells_of(op, space, degrees)) parts.run(cell, Flavor::fast);
    for (const auto& [tensor, values] : whole.result()) {
      const Tensor& t = op.tensor(tensor);
      INFO(t.name);
      CHECK(largest_difference(or_zero(t, parts.result().at(tensor)), or_zero(t, values)) < 1e-4);
    }
  }
}

}  // namespace

TEST_CASE("the gradient of every op agrees with finite differences") {
  std::set<std::string, std::less<>> roots, met;
  for (const OpCase& c : op_cases()) {
    if (c.wanted.empty()) continue;
    check_gradients(c);
    roots.insert(c.type());
    for (const Op& op : Expanded(c).graph.ops) met.insert(op.type);
  }
  for (const OpDef& def : all_op_defs()) {
    INFO(def.type << " has neither a case nor a reason to have none");
    const bool listed = kNotDifferentiable.contains(def.type);
    CHECK((def.gradient != nullptr ? roots : met).contains(def.type) != listed);
  }
}

TEST_CASE("cells of every op touch the boxes of its access maps and nothing else") {
  std::set<std::string, std::less<>> met;
  std::set<TypeAndOperand> loose;
  for (const OpCase& c : op_cases()) {
    const Expanded expanded(c);
    INFO(expanded.name);
    for (size_t i = 0; i < expanded.graph.ops.size(); ++i) {
      check_regions(c, expanded, OpId(static_cast<int64_t>(i)), loose);
      met.insert(expanded.graph.ops[i].type);
    }
  }
  for (const OpDef& def : all_op_defs()) {
    INFO(def.type << " has no case");
    CHECK(met.contains(def.type));
  }
  for (const auto& [operand, reason] : kReadForNothing) {
    INFO(operand.first << " does not read operand " << operand.second << " for nothing: " << reason);
    CHECK(loose.contains(operand));
  }
}

TEST_CASE("cells of every op by the kernels that train give the whole") {
  // Layouts as training gives them.
  const std::set<std::string_view> image{"conv", "pool", "norm"};
  for (const OpCase& c : op_cases()) {
    const bool last = image.contains(op_def(c.type()).family);
    const Expanded expanded(c, last ? Layout::channels_last : Layout::row_major, DType::f32);
    INFO(expanded.name);
    for (size_t i = 0; i < expanded.graph.ops.size(); ++i)
      check_fast_cells(c, expanded, OpId(static_cast<int64_t>(i)));
  }
}

}  // namespace ff::test
