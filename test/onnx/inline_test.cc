// Functions, If and Loop take the shape of the nodes that they stand for. Models are in ONNX's own text form.
#include "test/onnx/model_text.h"

using namespace ff;
using namespace ff::test;

namespace {

std::string refusal_of_text(const std::string& text) {
  ImportOptions options;
  options.allow_unsupported = true;
  const ImportedModel model = import_text(text, options);
  REQUIRE(model.unsupported.size() == 1);
  return model.unsupported[0].node + " (" + model.unsupported[0].type + "): " + model.unsupported[0].reason;
}

using Numbers = std::vector<double>;

}  // namespace

TEST_CASE("a function's body takes the place of its call with the call's attributes") {
  const std::string functions = R"(
    <domain: "own", opset_import: ["" : 17]> leaky <slope> (a) => (b) { b = LeakyRelu <alpha : float = @slope> (a) }
    <domain: "own", opset_import: ["" : 17, "own" : 1]> twice (a) => (c) {
      b = own.leaky <slope = 0.5> (a)
      c = own.leaky <slope = 0.25> (b)
    })";
  CHECK(value_of("(float[2] x) => (float[2] y) { y = own.twice (x) }" + functions, {-8, 3}) ==
        Numbers{-1, 3});
  // The values of two calls do not mix.
  CHECK(value_of("(float[2] x) => (float[2] y) { a = own.twice (x)  b = own.twice (a)  y = Add (a, b) }" +
                     functions,
                 {-64, 3}) == Numbers{-9, 6});
}

TEST_CASE("an attribute that a call leaves out is the op's default") {
  CHECK(value_of(R"((float[1] x) => (float[1] y) { y = own.leaky (x) }
    <domain: "own", opset_import: ["" : 17]> leaky <slope> (a) => (b) {
      b = LeakyRelu <alpha : float = @slope> (a) })",
                 {-100})[0] == Approx(-1));
}

TEST_CASE("a function is read with the meaning of its own opset") {
  // Before opset 13 softmax worked on all axes from the first one on.
  const std::string body = "soft (a) => (b) { b = Softmax (a) }";
  const std::string call = "(float[1, 2, 2] x) => (float[1, 2, 2] y) { y = own.soft (x) }";
  CHECK(value_of(call + R"(<domain: "own", opset_import: ["" : 11]> )" + body, {1, 1, 1, 1}) ==
        Numbers{0.25, 0.25, 0.25, 0.25});
  CHECK(value_of(call + R"(<domain: "own", opset_import: ["" : 17]> )" + body, {1, 1, 1, 1}) ==
        Numbers{0.5, 0.5, 0.5, 0.5});
}

TEST_CASE("a function that calls itself is refused by name") {
  CHECK_THROWS_WITH(import_text(R"((float[1] x) => (float[1] y) { y = own.again (x) }
    <domain: "own", opset_import: ["" : 17, "own" : 1]> again (a) => (b) { b = own.again (a) })"),
                    contains_text("function 'again' calls itself"));
}

TEST_CASE("the branch of a known condition takes the place of an If") {
  const auto branches = [](const std::string& condition) {
    return "(float[2, 3] x) => (float[2, 3] y) { s = Shape (x)  n = Size (s)  k = Constant <value = int64 {" +
           condition + R"(}> ()  c = Equal (n, k)
      y = If (c) <then_branch = yes () => (float[2, 3] a) { a = Neg (x) },
                  else_branch = no () => (float[2, 3] b) { t = Neg (x)  b = Neg (t) }> })";
  };
  const Numbers x{1, 2, 3, 4, 5, 6};
  CHECK(value_of(branches("2"), x) == Numbers{-1, -2, -3, -4, -5, -6});
  CHECK(value_of(branches("3"), x) == x);
}

TEST_CASE("a loop of a known number of turns is unrolled") {
  // The state doubles every turn; what it was before is scanned.
  const std::string loop = R"((float[2] x) => (float[2] last, float[3, 2] all) {
    n = Constant <value = int64 {3}> ()  yes = Constant <value = bool {1}> ()
    last, all = Loop (n, yes, x) <body = turn (int64 i, bool go, float[2] s) => (bool on, float[2] t, float[2] was) {
      on = Identity (go)  t = Add (s, s)  was = Identity (s) }> })";
  CHECK(value_of(loop, {1, -2}) == Numbers{8, -16});
  const ImportedModel model = import_text(loop);
  CHECK(model.graph.tensor(model.graph.outputs.at(1)).shape == Shape{3, 2});
}

TEST_CASE("the number of the turn is known in each turn of a loop") {
  CHECK(value_of(R"((float[1] x) => (float[1] y) {
    n = Constant <value = int64 {4}> ()
    y = Loop (n, , x) <body = turn (int64 i, bool go, float[1] s) => (bool on, float[1] t) {
      on = Identity (go)  f = Cast <to = 1> (i)  t = Add (s, f) }> })",
                 {0}) == Numbers{6});
}

TEST_CASE("control flow that depends on data is refused and says so") {
  CHECK(refusal_of_text(R"((float[2] x) => (float[2] y) { z = Sub (x, x)  c = Greater (x, z)
    y = If (c) <then_branch = yes () => (float[2] a) { a = Neg (x) },
                else_branch = no () => (float[2] b) { b = Identity (x) }> })") ==
        "y (If): control flow: its condition is not known before the model runs");
  CHECK(refusal_of_text(R"((int64 n, float[2] x) => (float[2] y) {
    y = Loop (n, , x) <body = turn (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go)  t = Add (s, s) }> })") ==
        "y (Loop): control flow: its trip count is not known before the model runs");
  CHECK(refusal_of_text(R"((float[2] x) => (float[2] y) { n = Constant <value = int64 {3}> ()
    y = Loop (n, , x) <body = turn (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      two = Constant <value = int64 {2}> ()  on = Less (i, two)  t = Add (s, s) }> })") ==
        "y (Loop): control flow: its condition is computed in every turn");
}

TEST_CASE("an output that is not computed is refused only if the model's outputs depend on it") {
  const std::string pool = "v, i = MaxPool <kernel_shape = [2]> (x)  ";
  CHECK(value_of("(float[1, 1, 2] x) => (float[1, 1, 1] y) { " + pool + "unused = Neg (i)  y = Neg (v) }",
                 {1, 2}) == Numbers{-2});
  CHECK(refusal_of_text("(float[1, 1, 2] x) => (int64[1, 1, 1] y) { " + pool + "y = Neg (i) }") ==
        "v (MaxPool): its second output, the indices, is used");
}

TEST_CASE("a model without its weights says that it cannot be trained") {
  onnx::ModelProto model = parse("(float[1, 2] x, float[2, 3] w) => (float[1, 3] y) { y = MatMul (x, w) }");
  auto& w = *model.mutable_graph()->add_initializer();
  w.set_name("w");
  w.set_data_type(onnx::TensorProto::FLOAT);
  w.add_dims(2);
  w.add_dims(3);
  const std::vector<std::string> notes = import_written(model).notes;
  REQUIRE(notes.size() == 1);
  CHECK(notes[0] == "1 initializer carries no data, the first is 'w': this file cannot be trained");
}
