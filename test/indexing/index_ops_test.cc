// Ops that index and move, by their kernels: gradients against finite differences in f64, every split of
// every dimension against the whole, values by hand, and errors that name the index and its sample.
#include <cmath>
#include <random>

#include "compiler/base/check.h"
#include "test/catch.h"
#include "test/support/evaluate.h"

namespace ff::test {
namespace {

struct Input {
  std::string name;
  Shape shape;
  DType dtype = DType::f64;
};

/// A graph of one op over the given inputs, named by their place: x0, x1, ...
struct OneOp {
  Graph graph;
  OpId op;

  OneOp(std::string type, Attributes attributes, const std::vector<Input>& inputs) {
    std::vector<TensorId> ids;
    for (const Input& in : inputs) {
      Tensor t;
      t.name = in.name, t.shape = in.shape, t.dtype = in.dtype, t.kind = TensorKind::input;
      ids.push_back(graph.add_tensor(std::move(t)));
    }
    op = add_op(graph, "y", std::move(type), std::move(attributes), std::move(ids));
  }
  const Op& node() const { return graph.op(op); }
};

std::vector<double> random_values(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, 1);
  std::vector<double> values(static_cast<size_t>(volume(shape)));
  for (double& v : values) v = normal(random);
  return values;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(a[i] - b[i]);
    largest = std::isnan(d) ? INFINITY : std::max(largest, d);
  }
  return largest;
}

double product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Random values of the float inputs; the integers are given.
Values with_floats(const OneOp& c, Values given) {
  unsigned seed = 1;
  for (TensorId id : c.node().inputs) {
    const Tensor& t = c.graph.tensor(id);
    if (is_float(t.dtype)) given[t.name] = random_values(t.shape, seed++);
  }
  return given;
}

/// Every dimension of the forward op split in 2 and 3, forward and backward, gives what the whole gives.
void check_splits(const Graph& graph, OpId op, const Values& given, const std::vector<std::string>& results) {
  const Values whole = evaluate(graph, given);
  const OpSpace space = space_of(graph, op);
  const std::string text = to_text(graph.op(op).type, space);
  CHECK(parse_space(text) == space);
  for (const IterDim& dim : space.dims) {
    if (dim.max_degree < 2) continue;
    for (int64_t degree : {2, 3}) {
      const Values split = evaluate_split(graph, given, dim.name, degree);
      for (const std::string& name : results) {
        INFO(text << ": " << name << " of " << dim.name << " in " << degree);
        CHECK(largest_difference(split.at(name), whole.at(name)) < 1e-12);
      }
    }
  }
}

/// Gradients of the float inputs against central differences, and all splits.
void check(OneOp c, const Values& integers = {}) {
  Values given = with_floats(c, integers);
  const Graph forward = c.graph;
  const Op op = c.node();
  const std::vector<double> dy = random_values(forward.tensor(op.outputs[0]).shape, 99);
  std::vector<TensorId> floats;
  for (TensorId id : op.inputs) {
    if (is_float(forward.tensor(id).dtype)) floats.push_back(id);
  }
  RuleBuilder(c.graph).differentiate(c.op, floats);
  Values all = given;
  all["grad_y"] = dy;
  const Values got = evaluate(c.graph, all);
  std::vector<std::string> results{"y"};
  for (TensorId id : floats) {
    const std::string name = forward.tensor(id).name;
    results.push_back("grad_" + name);
    std::vector<double> numeric;
    for (double& v : given.at(name)) {
      const double h = 1e-5, old = v;
      v = old + h;
      const double up = product(evaluate(forward, given).at("y"), dy);
      v = old - h;
      numeric.push_back((up - product(evaluate(forward, given).at("y"), dy)) / (2 * h));
      v = old;
    }
    INFO(op.type << " gradient of " << name);
    CHECK(largest_difference(got.at("grad_" + name), numeric) < 1e-8);
  }
  check_splits(c.graph, c.op, all, results);
}

/// Of an op without a gradient: all splits.
void check_forward(const OneOp& c, const Values& integers = {}) {
  std::vector<std::string> results;
  for (TensorId id : c.node().outputs) results.push_back(c.graph.tensor(id).name);
  check_splits(c.graph, c.op, with_floats(c, integers), results);
}

std::string error_of(const OneOp& c, const Values& given) {
  try {
    evaluate(c.graph, given);
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

const int64_t kOne = 1, kZero = 0;

}  // namespace

TEST_CASE("an embedding is rows of its table and its gradient sums over the places of each row") {
  OneOp c("Gather", {{"axis", kZero}}, {{"w", {3, 2}}, {"i", {2, 2}, DType::i64}});
  RuleBuilder(c.graph).differentiate(c.op, {c.node().inputs[0]});
  const Values v = evaluate(
      c.graph, {{"w", {1, 2, 3, 4, 5, 6}}, {"i", {2, 0, -1, 2}}, {"grad_y", {1, 2, 3, 4, 5, 6, 7, 8}}});
  CHECK(v.at("y") == std::vector<double>{5, 6, 1, 2, 5, 6, 5, 6});
  CHECK(v.at("grad_w") == std::vector<double>{3, 4, 0, 0, 13, 16});
}

TEST_CASE("gathers along any axis agree with finite differences and split along every dimension") {
  for (DType type : {DType::i64, DType::i32}) {
    check(OneOp("Gather", {{"axis", kZero}}, {{"w", {5, 3}}, {"i", {4, 2}, type}}),
          {{"i", {0, 4, 1, -5, 2, 2, -1, 3}}});
    check(OneOp("Gather", {{"axis", kOne}}, {{"w", {2, 5, 3}}, {"i", {3}, type}}), {{"i", {4, 0, 4}}});
    check(OneOp("Gather", {{"axis", int64_t{2}}}, {{"w", {2, 3, 4}}, {"i", {}, type}}), {{"i", {2}}});
  }
}

TEST_CASE("integers are gathered without splitting what they are gathered from") {
  const OneOp c("Gather", {{"axis", kZero}}, {{"w", {4, 2}, DType::i64}, {"i", {3}, DType::i32}});
  const OpSpace space = space_of(c.graph, c.op);
  CHECK(space.dims[static_cast<size_t>(space.dim_index("v"))].max_degree == 1);
  check_forward(c, {{"w", {1, 2, 3, 4, 5, 6, 7, 8}}, {"i", {3, 0, 3}}});
}

TEST_CASE("an index out of range is an error with its value and its sample") {
  OneOp c("Gather", {{"axis", kZero}}, {{"w", {5, 2}}, {"i", {3, 2}, DType::i64}});
  const std::vector<double> w(10, 0);
  CHECK(error_of(c, {{"w", w}, {"i", {0, 1, 2, 3, 4, 5}}}) ==
        "index 5 (element 5 of the indices) is outside [-5, 5)");
  c.graph.tensor(c.node().inputs[1]).batch_axis = 0;
  CHECK(error_of(c, {{"w", w}, {"i", {0, 1, 2, -6, 4, 0}}}) == "index -6 of sample 1 is outside [-5, 5)");
  // The cell of samples [1, 3): sample 2 is its second.
  const Cell cell =
      cell_of(c.graph, c.node(), space_of(c.graph, c.op), std::vector<Range>{{0, 5}, {1, 3}, {0, 2}, {0, 2}});
  const KernelCall call = kernel_of(c.graph, c.node(), cell);
  CHECK(call.attributes.integer("sample_axis") == 0);
  CHECK(call.attributes.integer("sample_offset") == 1);
  std::vector<double> table(10, 0), out(8, 0);
  std::vector<int64_t> indices{0, 0, 0, 9};
  std::vector<void*> pointers{table.data(), indices.data(), out.data()};
  try {
    cpu::make_kernel(call)->run(pointers, nullptr, {});
    FAIL("no error");
  } catch (const UserError& e) {
    CHECK(std::string(e.what()) == "index 9 of sample 2 is outside [-5, 5)");
  }
}

TEST_CASE("indices of another type and axes that are not there are refused") {
  CHECK_THROWS_AS(OneOp("Gather", {{"axis", kZero}}, {{"w", {5, 2}}, {"i", {3}, DType::f64}}), UserError);
  CHECK_THROWS_AS(OneOp("Gather", {{"axis", int64_t{2}}}, {{"w", {5, 2}}, {"i", {3}, DType::i64}}),
                  UserError);
  CHECK_THROWS_AS(OneOp("GatherElements", {{"axis", kZero}}, {{"x", {5, 2}}, {"i", {3, 3}, DType::i64}}),
                  UserError);
  CHECK_THROWS_AS(OneOp("GatherND", {}, {{"x", {5, 2}}, {"i", {3, 3}, DType::i64}}), UserError);
  CHECK_THROWS_AS(OneOp("TopK", {{"axis", kZero}, {"k", int64_t{6}}, {"largest", kOne}}, {{"x", {5}}}),
                  UserError);
  CHECK_THROWS_AS(OneOp("Expand", {{"shape", Ints{4, 3}}}, {{"x", {2, 3}}}), UserError);
}

TEST_CASE("slices with steps agree with finite differences and split along every dimension") {
  check(
      OneOp("Slice", {{"starts", Ints{1, 0}}, {"ends", Ints{6, 4}}, {"steps", Ints{2, 1}}}, {{"x", {7, 4}}}));
  check(OneOp("Slice", {{"starts", Ints{0, 1, 2}}, {"ends", Ints{2, 3, 9}}, {"steps", Ints{1, 1, 3}}},
              {{"x", {2, 4, 9}}}));
}

TEST_CASE("expanded tensors and triangles agree with finite differences and split along every dimension") {
  check(OneOp("Expand", {{"shape", Ints{3, 4, 2}}}, {{"x", {4, 1}}}));
  check(OneOp("Expand", {{"shape", Ints{3, 4}}}, {{"x", {1, 4}}}));
  check(OneOp("Expand", {{"shape", Ints{4}}}, {{"x", {}}}));
  for (int64_t upper : {0, 1}) {
    for (int64_t k : {-2, 0, 1}) check(OneOp("Trilu", {{"upper", upper}, {"k", k}}, {{"x", {2, 4, 5}}}));
  }
}

TEST_CASE("elements gathered and scattered agree with finite differences and split along every dimension") {
  check(OneOp("GatherElements", {{"axis", kOne}}, {{"x", {3, 4}}, {"i", {2, 3}, DType::i64}}),
        {{"i", {0, 0, -1, 3, 1, 1}}});
  check(OneOp("GatherElements", {{"axis", kZero}}, {{"x", {4, 2}}, {"i", {5, 2}, DType::i32}}),
        {{"i", {0, 1, 2, 3, -4, 0, 1, 1, 2, 2}}});
  for (const char* reduction : {"none", "add"}) {
    check(OneOp("ScatterElements", {{"axis", kOne}, {"reduction", std::string(reduction)}},
                {{"x", {3, 5}}, {"i", {2, 2}, DType::i64}, {"u", {2, 2}}}),
          {{"i", {4, 0, 1, -2}}});
    check(OneOp("ScatterND", {{"reduction", std::string(reduction)}},
                {{"x", {4, 3, 2}}, {"i", {3, 2}, DType::i64}, {"u", {3, 2}}}),
          {{"i", {0, 1, 3, -1, 2, 0}}});
  }
  check(OneOp("GatherND", {}, {{"x", {3, 4, 2}}, {"i", {5, 2}, DType::i64}}),
        {{"i", {0, 0, 2, 3, 2, 3, 1, -1, 0, 2}}});
  check(OneOp("GatherND", {{"batch_dims", kOne}}, {{"x", {3, 4, 2}}, {"i", {3, 2, 1}, DType::i64}}),
        {{"i", {0, 3, 1, 1, 2, -4}}});
}

TEST_CASE("an element that is scattered to twice gets the last value or the sum") {
  const Attributes add{{"axis", kZero}, {"reduction", std::string("add")}};
  const Attributes none{{"axis", kZero}, {"reduction", std::string("none")}};
  const std::vector<Input> inputs{{"x", {3}}, {"i", {2}, DType::i64}, {"u", {2}}};
  const Values v{{"x", {10, 20, 30}}, {"i", {1, 1}}, {"u", {1, 2}}};
  CHECK(evaluate(OneOp("ScatterElements", add, inputs).graph, v).at("y") == std::vector<double>{10, 23, 30});
  CHECK(evaluate(OneOp("ScatterElements", none, inputs).graph, v).at("y") == std::vector<double>{10, 2, 30});
}

TEST_CASE("elements that indices out of range name are errors") {
  const OneOp elements("GatherElements", {{"axis", kZero}}, {{"x", {2, 2}}, {"i", {1, 2}, DType::i64}});
  CHECK(error_of(elements, {{"x", {1, 2, 3, 4}}, {"i", {0, 2}}}) ==
        "index 2 (element 1 of the indices) is outside [-2, 2)");
  // The second index of a tuple has a limit of its own.
  const OneOp nd("ScatterND", {}, {{"x", {2, 3}}, {"i", {1, 2}, DType::i64}, {"u", {1}}});
  CHECK(error_of(nd, {{"x", {1, 2, 3, 4, 5, 6}}, {"i", {1, 3}}, {"u", {0}}}) ==
        "index 3 (element 1 of the indices) is outside [-3, 3)");
}

TEST_CASE("running sums and largest elements agree with finite differences and split along every dimension") {
  for (int64_t exclusive : {0, 1}) {
    for (int64_t reverse : {0, 1})
      check(OneOp("CumSum", {{"axis", kOne}, {"exclusive", exclusive}, {"reverse", reverse}},
                  {{"x", {3, 4, 2}}}));
  }
  for (int64_t largest : {0, 1})
    check(OneOp("TopK", {{"axis", kOne}, {"k", int64_t{2}}, {"largest", largest}}, {{"x", {3, 5, 2}}}));
  for (const char* type : {"ArgMax", "ArgMin"}) {
    for (int64_t keep : {0, 1})
      check_forward(OneOp(type, {{"axis", kOne}, {"keepdims", keep}}, {{"x", {3, 5, 2}}}));
  }
}

TEST_CASE("one-hot vectors split along their classes and an index of no class has none") {
  const OneOp c("OneHot",
                {{"axis", kOne}, {"depth", int64_t{4}}, {"off", -1.0}, {"on", 2.0}, {"dtype", kZero}},
                {{"i", {3}, DType::i64}});
  const Values v{{"i", {1, -1, 7}}};
  CHECK(evaluate(c.graph, v).at("y") == std::vector<double>{-1, 2, -1, -1, -1, -1, -1, 2, -1, -1, -1, -1});
  check_forward(c, v);
}

}  // namespace ff::test
