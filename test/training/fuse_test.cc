// Chains that exporters write for activations become one op, which computes the same.
#include "compiler/training/training.h"
#include "test/onnx/model_text.h"

using namespace ff;
using namespace ff::test;

namespace {

std::vector<std::string> types_of(const Graph& graph) {
  std::vector<std::string> out;
  for (const Op& op : graph.ops) out.push_back(op.type);
  return out;
}

/// The types of the ops after the pass, which leaves the values of the outputs as they were.
std::vector<std::string> fused(const std::string& body, const std::string& outputs = "float[5] y") {
  Graph graph = import_text("(float[5] x) => (" + outputs + ") { " + body + " }").graph;
  const Values given{{"x", {-2.5, -0.5, 0, 0.75, 3}}};
  const Values before = values_of(graph, given);
  fuse_activations(graph);
  const Values after = values_of(graph, given);
  for (TensorId id : graph.outputs) {
    const std::string& name = graph.tensor(id).name;
    INFO(name);
    for (size_t i = 0; i < 5; ++i)
      CHECK(after.at(name)[i] == Approx(before.at(name)[i]).epsilon(1e-6).margin(1e-7));
  }
  return types_of(graph);
}

using Types = std::vector<std::string>;

const std::string kNumbers =
    "root = Constant <value = float {1.4142135623730951}> ()  one = Constant <value = float {1.0}> ()  "
    "half = Constant <value = float {0.5}> ()  inverse = Constant <value = float {0.70710678118}> ()  ";

}  // namespace

TEST_CASE("the chain that PyTorch exports for GELU becomes Gelu") {
  CHECK(fused(kNumbers +
              "s = Div (x, root)  e = Erf (s)  a = Add (e, one)  m = Mul (x, a)  y = Mul (m, half)") ==
        Types{"Gelu"});
}

TEST_CASE("the chain that Keras exports for GELU becomes Gelu") {
  CHECK(fused(kNumbers +
              "h = Mul (half, x)  s = Mul (x, inverse)  e = Erf (s)  a = Add (one, e)  y = Mul (h, a)") ==
        Types{"Gelu"});
}

TEST_CASE("a sigmoid times its argument becomes Swish") {
  CHECK(fused("s = Sigmoid (x)  y = Mul (x, s)") == Types{"Swish"});
  CHECK(fused("s = Sigmoid (x)  y = Mul (s, x)") == Types{"Swish"});
}

TEST_CASE("a chain stays where its numbers are others or its parts are read elsewhere") {
  CHECK(fused(kNumbers + "s = Div (x, one)  e = Erf (s)  a = Add (e, one)  m = Mul (x, a)  y = Mul (m, half)")
            .size() == 5);
  CHECK(
      fused(kNumbers + "s = Div (x, root)  e = Erf (s)  a = Add (e, half)  m = Mul (x, a)  y = Mul (m, half)")
          .size() == 5);
  CHECK(
      fused(kNumbers + "s = Div (x, root)  e = Erf (s)  a = Add (e, one)  m = Mul (x, a)  y = Mul (m, half)",
            "float[5] y, float[5] e")
          .size() == 5);
  CHECK(fused("s = Sigmoid (x)  n = Neg (x)  y = Mul (n, s)").size() == 3);
  CHECK(fused("s = Sigmoid (x)  y = Mul (x, s)", "float[5] y, float[5] s").size() == 2);
}
