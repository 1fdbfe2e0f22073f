// Matrix products, softmax and losses, by their kernels: gradients against finite differences in f64, stages
// against fused forms, fast kernels against plain loops, and values worked out by hand.
#include <cmath>

#include "compiler/base/check.h"
#include "test/catch.h"
#include "test/ops/op_cases.h"

namespace ff::test {
namespace {

using cpu::Flavor;

/// The inner product of the op's first output with `dy`; a scalar loss counts itself.
double objective(const Graph& graph, const Values& given, const std::vector<double>& dy) {
  const std::vector<double> y = evaluate(graph, given).at("y");
  double sum = 0;
  for (size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
  return sum;
}

/// Central differences of the objective against the op's gradient rule, for the first `wanted` float inputs.
void check_gradient(OneOp c, Values given, size_t wanted, double weight = 1) {
  const Graph forward = c.graph;
  const Op op = forward.op(c.op);
  const std::vector<double> dy = forward.tensor(op.outputs[0]).shape.empty()
                                     ? std::vector<double>{weight}
                                     : random_values(forward.tensor(op.outputs[0]).shape, 99);
  std::vector<TensorId> ids(op.inputs.begin(), op.inputs.begin() + static_cast<int64_t>(wanted));
  RuleBuilder(c.graph).differentiate(c.op, ids);
  Values all = given;
  all["grad_y"] = dy;
  all = evaluate(c.graph, all);
  for (TensorId id : ids) {
    const std::string name = forward.tensor(id).name;
    std::vector<double> numeric;
    for (double& v : given.at(name)) {
      const double h = 1e-5, old = v;
      v = old + h;
      const double up = objective(forward, given, dy);
      v = old - h;
      numeric.push_back((up - objective(forward, given, dy)) / (2 * h));
      v = old;
    }
    INFO(op.type << " gradient of " << name);
    CHECK(largest_difference(all.at("grad_" + name), numeric) < 1e-7);
  }
}

Shape transposed_if(bool yes, Shape s) {
  if (yes) std::swap(s[s.size() - 1], s[s.size() - 2]);
  return s;
}

}  // namespace

TEST_CASE("a product with bias is rows times columns") {
  const OneOp c("MatMul", {{"trans_b", int64_t{1}}}, {{"a", {2, 3}}, {"b", {2, 3}}, {"bias", {2}}});
  const Values v =
      evaluate(c.graph, {{"a", {1, 2, 3, 4, 5, 6}}, {"b", {1, 0, 1, 0, 1, 0}}, {"bias", {10, 20}}});
  CHECK(v.at("y") == std::vector<double>{14, 22, 20, 25});
}

TEST_CASE("gradients of products agree with finite differences") {
  for (int64_t ta : {0, 1}) {
    for (int64_t tb : {0, 1}) {
      const Attributes flags{{"trans_a", ta}, {"trans_b", tb}};
      const auto check = [&](const Shape& a, const Shape& b, const Attributes& attributes) {
        const OneOp c(
            "MatMul", attributes,
            {{"a", transposed_if(ta != 0, a)}, {"b", transposed_if(tb != 0, b)}, {"bias", {b.back()}}});
        check_gradient(c, random_inputs(c), 3);
      };
      check({3, 4}, {4, 5}, flags);
      check({2, 3, 4}, {4, 5}, flags);
      check({2, 1, 3, 4}, {3, 4, 2}, flags);
      check({1, 3, 4}, {2, 4, 2}, flags);
      Attributes relu = flags;
      relu.set("relu", int64_t{1});
      check({3, 4}, {4, 5}, relu);
    }
  }
}

TEST_CASE("a bias that is trained without its matrix has its gradient") {
  OneOp c("MatMul", {}, {{"a", {3, 2}}, {"b", {2, 2}}, {"bias", {2}}});
  RuleBuilder(c.graph).differentiate(c.op, {c.input(2)});
  Values v = random_inputs(c);
  v["grad_y"] = {1, 2, 3, 4, 5, 6};
  CHECK(evaluate(c.graph, v).at("grad_bias") == std::vector<double>{9, 12});
}

TEST_CASE("products whose shapes do not fit are refused") {
  CHECK_THROWS_AS(OneOp("MatMul", {}, {{"a", {2, 3}}, {"b", {4, 5}}, {"", {}}}), UserError);
  CHECK_THROWS_AS(OneOp("MatMul", {}, {{"a", {2, 3}}, {"b", {3}}, {"", {}}}), UserError);
  CHECK_THROWS_AS(OneOp("MatMul", {}, {{"a", {2, 2, 3}}, {"b", {3, 3, 5}}, {"", {}}}), UserError);
  CHECK_THROWS_AS(OneOp("MatMul", {}, {{"a", {2, 3}}, {"b", {3, 5}}, {"bias", {4}}}), UserError);
}

TEST_CASE("the fast products agree with plain loops") {
  const auto f32 = [](const Shape& a, const Shape& b, Attributes attributes) {
    const int64_t n = b[b.size() - (attributes.integer("trans_b", 0) != 0 ? 2 : 1)];
    OneOp c("MatMul", std::move(attributes),
            {{"a", a, DType::f32}, {"b", b, DType::f32}, {"bias", {n}, DType::f32}});
    RuleBuilder(c.graph).differentiate(c.op, {c.input(0), c.input(1), c.input(2)});
    Values v = random_inputs(c);
    v["grad_y"] = random_values(c.graph.tensor(c.graph.op(c.op).outputs[0]).shape, 7);
    const Values fast = evaluate(c.graph, v), plain = evaluate(c.graph, v, Flavor::reference);
    for (const char* name : {"y", "grad_a", "grad_b", "grad_bias"}) {
      INFO(name << " " << to_string(a) << " " << to_string(b));
      CHECK(largest_difference(fast.at(name), plain.at(name)) < 1e-4);
    }
  };
  const int64_t one = 1;
  f32({17, 65}, {33, 65}, {{"trans_b", one}});
  f32({17, 65}, {33, 65}, {{"trans_b", one}, {"relu", one}});
  f32({65, 17}, {65, 33}, {{"trans_a", one}});
  f32({65, 17}, {33, 65}, {{"trans_a", one}, {"trans_b", one}});
  f32({3, 5, 7}, {7, 9}, {});
  f32({3, 5, 7}, {3, 7, 9}, {});
  f32({2, 1, 5, 7}, {3, 7, 9}, {});
  f32({1, 7}, {7, 1}, {});
  f32({7, 1}, {1, 7}, {{"trans_a", one}, {"trans_b", one}});
}

TEST_CASE("softmax and its logarithm agree with finite differences along every axis") {
  for (const char* type : {"Softmax", "LogSoftmax"}) {
    for (int64_t axis : {0, 1, -1}) {
      const OneOp c(type, {{"axis", axis}}, {{"x", {3, 4, 2}}});
      check_gradient(c, random_inputs(c), 1);
    }
  }
}

TEST_CASE("stages of softmax and of its gradient agree with the fused form") {
  for (const char* type : {"Softmax", "LogSoftmax"}) {
    OneOp c(type, {{"axis", int64_t{1}}}, {{"x", {3, 4, 2}}});
    RuleBuilder rules(c.graph);
    rules.stage(c.op);
    rules.differentiate(c.op, {c.input(0)});
    rules.stage(OpId(static_cast<int64_t>(c.graph.ops.size()) - 1));
    Values v = random_inputs(c);
    v["grad_y"] = random_values({3, 4, 2}, 5);
    const Values fused = evaluate(c.graph, v);
    const Values staged = evaluate(c.graph, v, Flavor::reference, Form::staged);
    CHECK(largest_difference(fused.at("y"), staged.at("y")) < 1e-12);
    CHECK(largest_difference(fused.at("grad_x"), staged.at("grad_x")) < 1e-12);
  }
}

namespace {

OneOp cross_entropy(Attributes attributes, const Shape& logits, bool weighted, DType type = DType::f64,
                    const char* kind = "SoftmaxCrossEntropy") {
  const size_t axis = static_cast<size_t>(attributes.integer("axis"));
  Shape labels = logits;
  labels.erase(labels.begin() + static_cast<int64_t>(axis));
  return {kind,
          std::move(attributes),
          {{"x", logits, type},
           {"labels", labels, DType::i64},
           {weighted ? "weights" : "", {logits[axis]}, type},
           {weighted ? "count" : "", {}, type}}};
}

const std::vector<double> kLabels{2, 0, 3, 1, 1, 2};

std::vector<Attributes> cross_entropy_variants() {
  const Attributes plain{{"axis", int64_t{1}}, {"scale", 1.0 / 6}};
  Attributes smooth = plain, ignoring = plain;
  smooth.set("label_smoothing", 0.1);
  ignoring.set("ignore_index", int64_t{1});
  return {plain, smooth, ignoring};
}

}  // namespace

TEST_CASE("cross-entropy and likelihood agree with finite differences") {
  for (const char* kind : {"SoftmaxCrossEntropy", "NegativeLogLikelihood"}) {
    for (const Attributes& attributes : cross_entropy_variants()) {
      for (bool weighted : {false, true}) {
        const OneOp c = cross_entropy(attributes, {3, 4, 2}, weighted, DType::f64, kind);
        Values v = random_inputs(c);
        v["labels"] = kLabels;
        v["weights"] = {1, 2, 0.5, 3};
        v["count"] = {2.5};
        check_gradient(c, v, 1);
      }
    }
  }
}

TEST_CASE("a loss's weight scales its gradient and not its value") {
  const Values v{{"x", {0, 0, 0, 0}}, {"labels", {0, 1}}, {"grad_y", {1}}};
  OneOp c("SoftmaxCrossEntropy", {{"axis", int64_t{1}}, {"scale", 0.5}, {"weight", 3.0}},
          {{"x", {2, 2}}, {"labels", {2}, DType::i64}, {"", {}}, {"", {}}});
  RuleBuilder(c.graph).differentiate(c.op, {c.input(0)});
  const Values out = evaluate(c.graph, v);
  CHECK(std::abs(out.at("y")[0] - std::log(2)) < 1e-12);
  CHECK(out.at("grad_x") == std::vector<double>{-0.75, 0.75, 0.75, -0.75});
}

TEST_CASE("stages of cross-entropy agree with the fused form") {
  for (const Attributes& attributes : cross_entropy_variants()) {
    for (bool weighted : {false, true}) {
      OneOp c = cross_entropy(attributes, {3, 4, 2}, weighted);
      RuleBuilder(c.graph).stage(c.op);
      Values v = random_inputs(c);
      v["labels"] = kLabels;
      v["weights"] = {1, 2, 0.5, 3};
      v["count"] = {2.5};
      const Values fused = evaluate(c.graph, v);
      const Values staged = evaluate(c.graph, v, Flavor::reference, Form::staged);
      CHECK(largest_difference(fused.at("y"), staged.at("y")) < 1e-12);
      CHECK(largest_difference(fused.at("y/1"), staged.at("y/1")) < 1e-12);
    }
  }
}

TEST_CASE("a vocabulary split over cells gives the loss and gradient of the whole") {
  OneOp c = cross_entropy({{"axis", int64_t{1}}, {"scale", 0.5}, {"label_smoothing", 0.2}}, {2, 4}, false);
  RuleBuilder(c.graph).stage(c.op);
  RuleBuilder(c.graph).differentiate(c.op, {c.input(0)});
  Values v{{"x", {0.1, -2, 3, 0.5, 1, 2, -1, 0}}, {"labels", {3, 1}}, {"grad_y", {1}}};
  const Values whole = evaluate(c.graph, v, Flavor::reference, Form::staged);
  for (const Op& op : c.graph.ops) {
    if (op.type != "CrossEntropyTarget") continue;
    const OpSpace space = op_def(op.type).space(c.graph, op);
    std::vector<double> target(2, 0), sums(2, 0);
    for (int64_t half : {0, 1}) {
      const std::vector<Range> blocks{{0, 2}, {2 * half, 2 * half + 2}};
      const KernelCall call = kernel_of(c.graph, op, cell_of(c.graph, op, space, blocks));
      std::vector<double> x;
      for (size_t r : {size_t{0}, size_t{1}}) {
        for (size_t j : {size_t{0}, size_t{1}})
          x.push_back(v["x"][r * 4 + static_cast<size_t>(half) * 2 + j]);
      }
      std::vector<int64_t> labels{3, 1};
      double out[2], sum[2];
      std::vector<void*> pointers{x.data(), labels.data(), nullptr, out, sum};
      cpu::make_kernel(call)->run(pointers, nullptr, {});
      for (size_t r : {size_t{0}, size_t{1}}) target[r] += out[r], sums[r] += sum[r];
    }
    CHECK(largest_difference(target, {0.5, 2}) < 1e-15);
    CHECK(largest_difference(sums, {1.6, 2}) < 1e-12);
    CHECK(largest_difference(whole.at("y/stage_target"), target) < 1e-15);
  }
}

TEST_CASE("cross-entropy of logits a thousand times too large is finite") {
  OneOp c = cross_entropy({{"axis", int64_t{1}}, {"scale", 1.0}}, {1, 3}, false, DType::f32);
  RuleBuilder(c.graph).stage(c.op);
  RuleBuilder(c.graph).differentiate(c.op, {c.input(0)});
  const Values v{{"x", {1000, -2000, 3000}}, {"labels", {0}}, {"grad_y", {1}}};
  for (Form form : {Form::fused, Form::staged}) {
    const Values out = evaluate(c.graph, v, Flavor::fast, form);
    CHECK(out.at("y")[0] == 2000);
    if (form == Form::fused) CHECK(out.at("grad_x") == std::vector<double>{-1, 0, 1});
  }
}

TEST_CASE("a label that is no class is an error with its sample") {
  for (const char* kind : {"SoftmaxCrossEntropy", "NegativeLogLikelihood"}) {
    const OneOp c = cross_entropy({{"axis", int64_t{1}}}, {4, 4}, false, DType::f64, kind);
    Values v = random_inputs(c);
    v["labels"] = {0, 1, 2, 7};
    try {
      evaluate(c.graph, v);
      FAIL("no error");
    } catch (const UserError& e) {
      CHECK(std::string(e.what()) == "label 7 of sample 3 is outside [0, 4)");
    }
  }
}

TEST_CASE("a weighted mean is divided by the weights of the labels that count") {
  const OneOp c("LossCount", {{"ignore_index", int64_t{-100}}},
                {{"labels", {4}, DType::i64}, {"weights", {3}}});
  CHECK(evaluate(c.graph, {{"labels", {0, 2, -100, 2}}, {"weights", {1, 10, 0.25}}}).at("y") ==
        std::vector<double>{1.5});
  const OneOp plain("LossCount", {{"ignore_index", int64_t{-100}}}, {{"labels", {4}, DType::i64}, {"", {}}});
  CHECK(evaluate(plain.graph, {{"labels", {0, 2, -100, 2}}}).at("y") == std::vector<double>{3});
}

TEST_CASE("squared error and binary cross-entropy agree with finite differences") {
  for (const char* type : {"MeanSquaredError", "BinaryCrossEntropy"}) {
    const OneOp c(type, {{"scale", 0.25}}, {{"x", {2, 3}}, {"target", {2, 3}}});
    Values v = random_inputs(c);
    v["target"] = {0, 1, 1, 0.5, 0, 1};
    check_gradient(c, v, 1);
  }
}

TEST_CASE("binary cross-entropy of a large logit is the logit or nothing") {
  const OneOp c("BinaryCrossEntropy", {}, {{"x", {1}, DType::f32}, {"target", {1}, DType::f32}});
  CHECK(evaluate(c.graph, {{"x", {1000}}, {"target", {0}}}).at("y")[0] == 1000);
  CHECK(evaluate(c.graph, {{"x", {-1000}}, {"target", {0}}}).at("y")[0] == 0);
}

TEST_CASE("a reshape is split where leading axes can be cut alike") {
  const auto text = [](const Shape& from, const Shape& to) {
    const OneOp c("Reshape", {{"shape", to}}, {{"x", from}});
    return to_text("Reshape", space_of(c.graph, c.op));
  };
  CHECK(text({2, 3, 2, 2}, {2, 12}) == "Reshape(g0:S=2, g1:A=3) [g0, g1, :, :] -> [g0, 4g1+4]");
  CHECK(text({4, 3}, {6, 2}) == "Reshape(g0:S=2) [2g0+2, :] -> [3g0+3, :]");
  CHECK(text({8, 1, 5}, {4, 2, 5, 1}) == "Reshape(g0:S=4, g1:A=5) [2g0+2, :, g1] -> [g0, :, g1, :]");
}

}  // namespace ff::test
