// Translation of LSTM, GRU and RNN. Layout 1 (samples first) is layout 0 between transposes.

#include "compiler/onnx/rules.h"

namespace ff::onnx_import {
namespace {

/// The activations of one direction, by ONNX's default.
std::vector<std::string> defaults_of(const std::string& type) {
  if (type == "LSTM") return {"Sigmoid", "Tanh", "Tanh"};
  if (type == "GRU") return {"Sigmoid", "Tanh"};
  return {"Tanh"};
}

/// The activation of an RNN; other cells have the default ones.
std::string activation_of(const Node& node, int64_t directions) {
  const std::string& type = node.proto().op_type();
  const std::vector<std::string> usual = defaults_of(type);
  const auto* given = node.attribute("activations");
  if (given == nullptr) return usual[0];
  std::string first;
  for (int i = 0; i < given->strings_size(); ++i) {
    const std::string& name = given->strings(i);
    const std::string& wanted = usual[static_cast<size_t>(i) % usual.size()];
    const bool fits = type == "RNN" ? (name == "Tanh" || name == "Relu") && (first.empty() || name == first)
                                    : name == wanted;
    if (!fits || given->strings_size() != directions * static_cast<int64_t>(usual.size()))
      throw Unsupported("the activation " + name + " there");
    first = name;
  }
  return first;
}

TensorId swapped(Node& node, TensorId x, const Ints& perm, const std::string& part) {
  return x.valid() ? node.emit("Transpose", {{"perm", perm}}, {x}, part) : x;
}

}  // namespace

void import_recurrent(Node& node) {
  const std::string& type = node.proto().op_type();
  const std::string direction = node.string("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    throw UserError("has no direction '" + direction + "'");
  if (node.has_attribute("clip")) throw Unsupported("clipped cells");
  if (node.integer("input_forget", 0) != 0) throw Unsupported("input_forget");
  const bool samples_first = node.integer("layout", 0) != 0;
  Attributes attributes{{"direction", direction}};
  const std::string activation = activation_of(node, direction == "bidirectional" ? 2 : 1);
  if (type == "RNN") attributes.set("activation", activation);
  if (type == "GRU") attributes.set("linear_before_reset", node.integer("linear_before_reset", 0));

  // x, w, r, bias, lengths, h0; LSTM: c0, peepholes.
  std::vector<TensorId> inputs;
  for (int i = 0; i < (type == "LSTM" ? 8 : 6); ++i) {
    const bool weight = (i >= 1 && i <= 3) || i == 7;
    inputs.push_back(node.operand(i, weight ? Use::weight : Use::data));
  }
  if (samples_first) {
    for (size_t i : {size_t{0}, size_t{5}, size_t{6}}) {
      if (i < inputs.size()) inputs[i] = swapped(node, inputs[i], {1, 0, 2}, "input" + std::to_string(i));
    }
  }
  const auto out = node.emit_all(samples_first ? "sequence" : "", type, attributes, inputs);
  for (int i = 0; i < node.output_count(); ++i) {
    TensorId y = out.at(static_cast<size_t>(i));
    if (samples_first && node.output_used(i))
      y = swapped(node, y, i == 0 ? Ints{2, 0, 1, 3} : Ints{1, 0, 2}, "output" + std::to_string(i));
    node.result(y, i);
  }
}

}  // namespace ff::onnx_import
