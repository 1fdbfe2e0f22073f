// Translation of LSTM, GRU and RNN. Layout 1 (samples first) is layout 0 between transposes.
//
// With --rnn-chunk N a sequence is several ops of N steps that share the weights, each beginning with the
// state that the one before ended with, so that they may be placed on different devices:
//
//   LSTM x [20, 4, 8]  ->  LSTM x [0:8], LSTM x [8:16], LSTM x [16:20], Concat        N = 8

#include "compiler/onnx/fold.h"
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

/// A layer cut in time. Operands as in import_recurrent; two directions are cut each by itself.
class Chunks {
 public:
  Chunks(Node& node, std::vector<TensorId> inputs, Attributes attributes)
      : node_(node),
        type_(node.proto().op_type()),
        inputs_(std::move(inputs)),
        attributes_(std::move(attributes)) {}

  /// y, y_h and, of an LSTM, y_c.
  std::vector<TensorId> emit(int64_t steps) {
    if (attributes_.string("direction") != "bidirectional")
      return emit_direction(inputs_, attributes_, steps);
    std::vector<std::vector<TensorId>> both;
    for (int64_t d : {0, 1}) {
      std::vector<TensorId> own = inputs_;
      for (size_t i = 1; i < own.size(); ++i) {
        if (own[i].valid() && i != kLengths) own[i] = slice(own[i], 0, d, d + 1);
      }
      Attributes attributes = attributes_;
      attributes.set("direction", std::string(d == 0 ? "forward" : "reverse"));
      both.push_back(emit_direction(own, attributes, steps));
    }
    std::vector<TensorId> out;
    for (size_t o = 0; o < both[0].size(); ++o)
      out.push_back(concat({both[0][o], both[1][o]}, o == 0 ? 1 : 0));
    return out;
  }

 private:
  static constexpr size_t kLengths = 4, kState = 5, kCell = 6;

  std::string part() { return "chunk" + std::to_string(count_++); }

  TensorId slice(TensorId x, size_t axis, int64_t begin, int64_t end) {
    const Shape& shape = node_.graph().tensor(x).shape;
    Shape starts(shape.size(), 0), ends = shape;
    starts[axis] = begin, ends[axis] = end;
    return node_.emit("Slice", {{"starts", starts}, {"ends", ends}, {"steps", Shape(shape.size(), 1)}}, {x},
                      part());
  }

  TensorId concat(const std::vector<TensorId>& parts, int64_t axis) {
    return parts.size() == 1 ? parts[0] : node_.emit("Concat", {{"axis", axis}}, parts, part());
  }

  /// How much of each sequence is in [begin, begin + steps).
  TensorId lengths_in(TensorId lengths, int64_t begin, int64_t steps) {
    const DType type = node_.graph().tensor(lengths).dtype;
    const auto number = [&](int64_t v) {
      return node_.frozen(part(), generate_integers(type, {}, [v](int64_t) { return v; }));
    };
    TensorId rest = node_.emit("Sub", {}, {lengths, number(begin)}, part());
    rest = node_.emit("Max", {}, {rest, number(0)}, part());
    return node_.emit("Min", {}, {rest, number(steps)}, part());
  }

  std::vector<TensorId> emit_direction(const std::vector<TensorId>& inputs, const Attributes& attributes,
                                       int64_t steps) {
    const int64_t time = node_.graph().tensor(inputs[0]).shape[0];
    const bool reverse = attributes.string("direction") == "reverse";
    const int64_t count = (time + steps - 1) / steps;
    std::vector<TensorId> own = inputs, parts(static_cast<size_t>(count)), last;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t chunk = reverse ? count - 1 - i : i, begin = chunk * steps;
      own[0] = slice(inputs[0], 0, begin, std::min(time, begin + steps));
      if (inputs[kLengths].valid()) own[kLengths] = lengths_in(inputs[kLengths], begin, steps);
      last = node_.emit_all(part(), type_, attributes, own);
      parts[static_cast<size_t>(chunk)] = last[0];
      own[kState] = last[1];
      if (type_ == "LSTM") own[kCell] = last[2];
    }
    std::vector<TensorId> out{concat(parts, 0), last[1]};
    if (type_ == "LSTM") out.push_back(last[2]);
    return out;
  }

  Node& node_;
  std::string type_;
  std::vector<TensorId> inputs_;
  Attributes attributes_;
  int count_ = 0;
};

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
  const int64_t chunk = node.options().rnn_chunk, time = node.graph().tensor(inputs[0]).shape.at(0);
  const auto out = chunk > 0 && chunk < time
                       ? Chunks(node, inputs, attributes).emit(chunk)
                       : node.emit_all(samples_first ? "sequence" : "", type, attributes, inputs);
  for (int i = 0; i < node.output_count(); ++i) {
    TensorId y = out.at(static_cast<size_t>(i));
    if (samples_first && node.output_used(i))
      y = swapped(node, y, i == 0 ? Ints{2, 0, 1, 3} : Ints{1, 0, 2}, "output" + std::to_string(i));
    node.result(y, i);
  }
}

}  // namespace ff::onnx_import
