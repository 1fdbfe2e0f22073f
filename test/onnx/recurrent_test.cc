// Recurrent layers cut in time give what whole ones give; samples are found where time comes first.
#include <algorithm>
#include <cmath>

#include "test/onnx/model_text.h"

using namespace ff;
using namespace ff::test;

namespace {

std::vector<double> numbers(const std::string& name, int64_t count) {
  std::vector<double> out;
  for (int64_t i = 0; i < count; ++i)
    out.push_back(0.8 * std::sin(static_cast<double>(name[0]) + 1.3 * static_cast<double>(i)));
  return out;
}

/// A layer of 7 steps, 2 samples, 2 features and 2 hidden units; its weights are inputs.
std::string layer(const std::string& type, int gates, int directions, const std::string& attributes,
                  bool lengths) {
  const std::string d = std::to_string(directions), g = std::to_string(2 * gates),
                    both = std::to_string(4 * gates);
  const std::string outputs = type == "LSTM" ? "y, h, c" : "y, h";
  const std::string cell = type == "LSTM" ? ", float[" + d + ",2,2] c" : "";
  return "(float[7,2,2] x, float[" + d + "," + g + ",2] w, float[" + d + "," + g + ",2] r, float[" + d + "," +
         both + "] b) => (float[7," + d + ",2,2] y, float[" + d + ",2,2] h" + cell + ") { " +
         (lengths ? "l = Constant <value = int32[2] {5, 2}> () " : "") + outputs + " = " + type +
         " <hidden_size = 2" + attributes + "> (x, w, r, b" + (lengths ? ", l" : "") + ") }";
}

Values outputs_of(const std::string& text, int64_t chunk, int gates, int directions) {
  ImportOptions options;
  options.rnn_chunk = chunk;
  const Graph graph = import_text(text, options).graph;
  const int64_t d = directions, g = gates;
  const Values given{{"x", numbers("x", 28)},
                     {"w", numbers("w", d * 4 * g)},
                     {"r", numbers("r", d * 4 * g)},
                     {"b", numbers("b", d * 4 * g)}};
  const Values all = values_of(graph, given);
  Values out;
  for (size_t o = 0; o < graph.outputs.size(); ++o)
    out[std::to_string(o)] = all.at(graph.tensor(graph.outputs[o]).name);
  return out;
}

size_t layers(const std::string& text, int64_t chunk, const std::string& type) {
  ImportOptions options;
  options.rnn_chunk = chunk;
  const Graph graph = import_text(text, options).graph;
  return static_cast<size_t>(
      std::count_if(graph.ops.begin(), graph.ops.end(), [&](const Op& op) { return op.type == type; }));
}

}  // namespace

TEST_CASE("a recurrent layer in chunks gives what the whole one gives") {
  for (const auto& [type, gates] : {std::pair<std::string, int>{"LSTM", 4}, {"GRU", 3}, {"RNN", 1}}) {
    for (const std::string direction : {"forward", "reverse", "bidirectional"}) {
      for (bool lengths : {false, true}) {
        const int directions = direction == "bidirectional" ? 2 : 1;
        const std::string text =
            layer(type, gates, directions, ", direction = \"" + direction + "\"", lengths);
        INFO(text);
        const Values whole = outputs_of(text, 0, gates, directions),
                     cut = outputs_of(text, 3, gates, directions);
        REQUIRE(whole.size() == (type == "LSTM" ? 3 : 2));
        for (const auto& [name, values] : whole) {
          INFO("output " << name);
          REQUIRE(cut.at(name).size() == values.size());
          for (size_t i = 0; i < values.size(); ++i)
            CHECK(cut.at(name)[i] == Approx(values[i]).margin(1e-12));
        }
        CHECK(layers(text, 0, type) == 1);
        CHECK(layers(text, 3, type) == static_cast<size_t>(3 * directions));
      }
    }
  }
}

TEST_CASE("samples are counted by the axis that recurrent layers read them from") {
  const std::string text =
      "(float[N, 4, 2] x) => (float[N, 1, 4, 2] y) { s = Constant <value = int64[3] {1, 8, 2}> ()  w = "
      "ConstantOfShape "
      "<value = float[1] {0.5}> (s)  y, h, c = LSTM <hidden_size = 2> (x, w, w) }";
  ImportOptions options;
  options.dims["N"] = 7;
  const ImportedModel model = import_text(text, options);
  CHECK(model.graph.tensor(model.graph.inputs.at(0)).batch_axis == 1);
  CHECK(model.graph.batch == 4);
  CHECK(model.graph.tensor(model.graph.outputs.at(0)).batch_axis == 2);
  // Another batch goes to that axis, not to time.
  options.batch = 6;
  CHECK(import_text(text, options).graph.tensor(model.graph.inputs.at(0)).shape == Shape{7, 6, 2});
}
