// Losses that a model brings along, and what is trained through nodes that become several ops: gradients of
// the whole graph against finite differences of it.
#include <cmath>

#include "compiler/training/training.h"
#include "test/onnx/model_text.h"

using namespace ff;
using namespace ff::test;

namespace {

Graph training_graph(const std::string& text, const std::string& loss = "graph") {
  TrainingOptions options;
  options.losses = {parse_loss(loss)};
  options.optimizer = "sgd";
  options.precision = DType::f64;
  std::vector<std::string> notes;
  return make_training_graph(import_text(text).graph, options, notes);
}

/// A model of scores [3, 4, 2] that are trained, labels and more, whose nodes give the loss y.
std::string model(const std::string& nodes) {
  return "(float[3, 4, 2] x, int64[3, 2] labels, float[4] weights, int64[3] lengths) => (float y) <float[3, "
         "4, 2] w = {" +
         std::string("0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23") +
         "}> { s = Add (x, w) " + nodes + " }";
}

Values random_given(int64_t ignored) {
  Values given{{"labels", {0, 3, static_cast<double>(ignored), 1, 2, 3}},
               {"weights", {0.5, 2, 1, 1.5}},
               {"lengths", {3, 1, 4}}};
  for (int i = 0; i < 24; ++i) {
    given["x"].push_back(std::sin(3.7 * i));
    given["w"].push_back(std::cos(2.3 * i));
  }
  return given;
}

double loss_of(const Graph& graph, const Values& given) {
  return values_of(graph, given).at(graph.tensor(graph.loss).name)[0];
}

void check_gradient(const std::string& nodes, int64_t ignored = 2) {
  INFO(nodes);
  Graph graph = training_graph(model(nodes));
  std::erase_if(graph.ops, [](const Op& op) { return op.phase == Phase::update || op.stage_of.valid(); });
  Values given = random_given(ignored);
  const std::vector<double> gradient = values_of(graph, given).at("grad:w");
  REQUIRE(gradient.size() == 24);
  double largest = 0;
  for (size_t i = 0; i < gradient.size(); ++i) {
    const double h = 1e-5, old = given["w"][i];
    given["w"][i] = old + h;
    const double up = loss_of(graph, given);
    given["w"][i] = old - h;
    CHECK(gradient[i] == Approx((up - loss_of(graph, given)) / (2 * h)).margin(1e-9).epsilon(1e-6));
    given["w"][i] = old;
    largest = std::max(largest, std::abs(gradient[i]));
  }
  CHECK(largest > 1e-3);
}

}  // namespace

TEST_CASE("losses of the model train its scores, whatever is made of them") {
  for (const std::string type : {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"}) {
    for (const std::string reduction : {"mean", "sum"}) {
      check_gradient("y = " + type + " <reduction = \"" + reduction + "\"> (s, labels)");
      for (const std::string operands : {"(s, labels)", "(s, labels, weights)"}) {
        const std::string loss = type + " <reduction = \"" + reduction + "\", ignore_index = -1> " + operands;
        check_gradient("y = " + loss, -1);
        check_gradient("l = " + loss + " m = Mul (l, l) y = Neg (m)", -1);
      }
    }
    const std::string each = type + " <reduction = \"none\", ignore_index = 9> (s, labels, weights)";
    check_gradient("l = " + each + " m = Mul (l, l) y = ReduceMean <keepdims = 0> (m)", 9);
    check_gradient("l = " + type + " <reduction = \"none\"> (s, labels) y = ReduceMean <keepdims = 0> (l)");
  }
}

TEST_CASE("the logarithms of the probabilities that a loss gives are trained too") {
  check_gradient(
      "l, p = SoftmaxCrossEntropyLoss (s, labels, weights) m = ReduceMax <keepdims = 0> (p) "
      "y = Add (l, m)");
}

TEST_CASE("a sequence in reverse gives its gradient to the steps that it took") {
  check_gradient(
      "r = ReverseSequence <time_axis = 1, batch_axis = 0> (s, lengths) m = Mul (r, x) "
      "y = ReduceSum <keepdims = 0> (m)");
  check_gradient(
      "t = Transpose <perm = [1, 0, 2]> (s) u = Transpose <perm = [1, 0, 2]> (x) "
      "r = ReverseSequence (t, lengths) m = Mul (r, u) y = ReduceSum <keepdims = 0> (m)");
}

TEST_CASE("a model's own loss is one number, and comes alone or first") {
  CHECK_THROWS_WITH(training_graph(model("y = Neg (s)")), "loss graph: output 'y' (3x4x2) is not one number");
  CHECK_THROWS_WITH(training_graph(model("y = ReduceMean <keepdims = 0> (s)"), "graph*2"),
                    "loss graph: the model's own loss has no weight and comes before others");
}

TEST_CASE("nothing before a choice of the largest is trained") {
  CHECK_THROWS_WITH(training_graph(model("h = Hardmax (s) y = ReduceMean <keepdims = 0> (h)")),
                    "node 'h' (OneHot): has no gradient, and trained parameters come before it");
}
