// Ops that index and move, by their kernels: gradients against finite differences in f64, every split of
// every dimension against the whole, values by hand, and errors that name the index and its sample.
#include "compiler/base/check.h"
#include "test/catch.h"
#include "test/ops/op_cases.h"
#include "test/support/evaluate.h"

namespace ff::test {
namespace {

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
  RuleBuilder(c.graph).differentiate(c.op, {c.input(0)});
  const Values v = evaluate(
      c.graph, {{"w", {1, 2, 3, 4, 5, 6}}, {"i", {2, 0, -1, 2}}, {"grad_y", {1, 2, 3, 4, 5, 6, 7, 8}}});
  CHECK(v.at("y") == std::vector<double>{5, 6, 1, 2, 5, 6, 5, 6});
  CHECK(v.at("grad_w") == std::vector<double>{3, 4, 0, 0, 13, 16});
}

TEST_CASE("integers are gathered without splitting what they are gathered from") {
  const OneOp c("Gather", {{"axis", kZero}}, {{"w", {4, 2}, DType::i64}, {"i", {3}, DType::i32}});
  const OpSpace space = space_of(c.graph, c.op);
  CHECK(space.dims[static_cast<size_t>(space.dim_index("v"))].max_degree == 1);
  CHECK(evaluate(c.graph, {{"w", {1, 2, 3, 4, 5, 6, 7, 8}}, {"i", {3, 0, 3}}}).at("y") ==
        std::vector<double>{7, 8, 1, 2, 7, 8});
}

TEST_CASE("an index out of range is an error with its value and its sample") {
  OneOp c("Gather", {{"axis", kZero}}, {{"w", {5, 2}}, {"i", {3, 2}, DType::i64}});
  const std::vector<double> w(10, 0);
  CHECK(error_of(c, {{"w", w}, {"i", {0, 1, 2, 3, 4, 5}}}) ==
        "index 5 (element 5 of the indices) is outside [-5, 5)");
  c.graph.tensor(c.input(1)).batch_axis = 0;
  CHECK(error_of(c, {{"w", w}, {"i", {0, 1, 2, -6, 4, 0}}}) == "index -6 of sample 1 is outside [-5, 5)");
  // The cell of samples [1, 3): sample 2 is its second.
  const Cell cell = cell_of(c.graph, c.graph.op(c.op), space_of(c.graph, c.op),
                            std::vector<Range>{{0, 5}, {1, 3}, {0, 2}, {0, 2}});
  const KernelCall call = kernel_of(c.graph, c.graph.op(c.op), cell);
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

TEST_CASE("an index of no class has a one-hot vector of none") {
  const OneOp c("OneHot",
                {{"axis", kOne}, {"depth", int64_t{4}}, {"off", -1.0}, {"on", 2.0}, {"dtype", kZero}},
                {{"i", {3}, DType::i64}});
  const Values v{{"i", {1, -1, 7}}};
  CHECK(evaluate(c.graph, v).at("y") == std::vector<double>{-1, 2, -1, -1, -1, -1, -1, 2, -1, -1, -1, -1});
}

}  // namespace ff::test
