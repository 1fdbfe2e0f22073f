#include <algorithm>
#include <array>
#include <charconv>

#include "compiler/base/check.h"
#include "compiler/ops/op_table.h"
#include "compiler/training/training.h"

namespace ff {
namespace {

constexpr std::array<std::string_view, 5> kKinds{"softmax-cross-entropy", "nll", "bce", "mse", "graph"};

Op* producer(Graph& graph, TensorId tensor) {
  for (Op& op : graph.ops) {
    if (std::find(op.outputs.begin(), op.outputs.end(), tensor) != op.outputs.end()) return &op;
  }
  return nullptr;
}

class LossBuilder {
 public:
  LossBuilder(Graph& graph, size_t count, std::vector<std::string>& notes)
      : graph_(graph), several_(count > 1), notes_(notes) {}

  void add(const LossSpec& spec) {
    const TensorId output = find_output(spec);
    if (spec.kind == "graph") return use_graph_loss(spec, output);
    TensorId x = output;
    std::string type;
    Op* last = producer(graph_, output);
    const std::string before = last == nullptr ? "" : last->type;
    if (spec.kind == "softmax-cross-entropy" || spec.kind == "nll") {
      const bool log = before == "LogSoftmax";
      if (log || (before == "Softmax" && spec.kind == "softmax-cross-entropy")) {
        x = last->inputs[0];
        notes_.push_back("loss " + spec.kind + ": the model's own " + before + " '" + last->name +
                         "' is part of it, not applied twice");
      }
      type = spec.kind == "nll" && !log ? "NegativeLogLikelihood" : "SoftmaxCrossEntropy";
    } else if (spec.kind == "bce") {
      if (before != "Sigmoid") {
        throw UserError("loss bce: output '" + name_of(output) + "' is not a Sigmoid",
                        "end the model in a Sigmoid, or use mse");
      }
      x = last->inputs[0];
      notes_.push_back("loss bce: the model's own Sigmoid '" + last->name +
                       "' is part of it, not applied twice");
      type = "BinaryCrossEntropy";
    } else {
      type = "MeanSquaredError";
    }
    emit(spec, type, x, name_of(output));
  }

 private:
  std::string name_of(TensorId id) const { return graph_.tensor(id).name; }

  TensorId find_output(const LossSpec& spec) const {
    std::string names;
    for (TensorId id : graph_.outputs) {
      if (name_of(id) == spec.output || (spec.output.empty() && graph_.outputs.size() == 1)) return id;
      names += (names.empty() ? "'" : ", '") + name_of(id) + "'";
    }
    if (spec.output.empty()) {
      throw UserError("loss " + spec.kind + ": the model has " + std::to_string(graph_.outputs.size()) +
                          " outputs: " + names,
                      "name one: --loss " + spec.kind + ":" +
                          (graph_.outputs.empty() ? "OUTPUT" : name_of(graph_.outputs[0])));
    }
    throw UserError("loss " + spec.kind + ": the model has no output '" + spec.output + "'; it has " + names);
  }

  void use_graph_loss(const LossSpec& spec, TensorId output) {
    const Tensor& t = graph_.tensor(output);
    if (volume(t.shape) != 1 || !is_float(t.dtype)) {
      throw UserError("loss graph: output '" + t.name + "' (" + to_string(t.shape) + ") is not one number",
                      "reduce it in the model, or take another loss of the output before it");
    }
    if (spec.weight != 1 || graph_.loss.valid())
      throw UserError("loss graph: the model's own loss has no weight and comes before others");
    graph_.loss = output;
    std::erase(graph_.outputs, output);
  }

  TensorId labels(const Shape& shape, DType type, int batch_axis, const std::string& output) {
    Tensor t;
    t.name = several_ ? "labels." + output : "labels";
    t.shape = shape;
    t.dtype = type;
    t.kind = TensorKind::input;
    t.batch_axis = batch_axis;
    const TensorId id = graph_.add_tensor(std::move(t));
    graph_.inputs.push_back(id);
    return id;
  }

  void emit(const LossSpec& spec, const std::string& type, TensorId x, const std::string& output) {
    const Tensor logits = graph_.tensor(x);
    Op op;
    op.name = several_ ? "loss." + output : "loss";
    op.type = type;
    const bool classes = type == "SoftmaxCrossEntropy" || type == "NegativeLogLikelihood";
    Shape shape = logits.shape;
    int batch_axis = logits.batch_axis;
    if (classes) {
      const auto rank = static_cast<int64_t>(shape.size());
      const int64_t class_axis = spec.class_axis < 0 ? spec.class_axis + rank : spec.class_axis;
      if (class_axis < 0 || class_axis >= rank)
        throw UserError("loss " + spec.kind + ": output '" + output + "' (" + to_string(shape) +
                            ") has no class axis " + std::to_string(spec.class_axis),
                        "give the axis of the classes: --class-axis -1 is the last");
      const auto axis = static_cast<size_t>(class_axis);
      op.attributes = {
          {"axis", class_axis}, {"classes", shape[axis]}, {"label_smoothing", spec.label_smoothing}};
      if (spec.ignore_index) op.attributes.set("ignore_index", *spec.ignore_index);
      shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
      if (batch_axis > class_axis) --batch_axis;
    }
    const TensorId target = labels(shape, classes ? DType::i64 : logits.dtype, batch_axis, output);
    const bool counted = classes && spec.ignore_index && spec.mean;
    const double scale = spec.mean && !counted ? 1.0 / static_cast<double>(volume(shape)) : 1.0;
    op.attributes.set("scale", scale * spec.weight);
    op.attributes.set("weight", 1.0);
    op.inputs = {x, target};
    if (classes) {
      op.inputs.resize(4);
      if (counted) op.inputs[3] = count(spec, target, logits.dtype, op.name);
    }
    if (!graph_.loss.valid()) {
      Tensor t;
      t.name = "loss";
      t.dtype = logits.dtype;
      graph_.loss = graph_.add_tensor(std::move(t));
    }
    const auto types = op_def(type).infer(graph_, op);
    op.outputs = {graph_.loss};
    for (size_t o = 1; o < types.size(); ++o) {
      Tensor t;
      t.name = op.name + ":" + std::to_string(o);
      t.shape = types[o].shape;
      t.dtype = types[o].dtype;
      t.batch_axis = batch_axis;
      op.outputs.push_back(graph_.add_tensor(std::move(t)));
    }
    graph_.add_op(std::move(op));
  }

  TensorId count(const LossSpec& spec, TensorId target, DType type, const std::string& name) {
    Op op;
    op.name = name + "/count";
    op.type = "LossCount";
    op.attributes = {{"ignore_index", *spec.ignore_index}, {"float64", int64_t{type == DType::f64}}};
    op.inputs = {target, TensorId()};
    Tensor t;
    t.name = name + "/count";
    t.dtype = type;
    op.outputs = {graph_.add_tensor(std::move(t))};
    const TensorId out = op.outputs[0];
    graph_.add_op(std::move(op));
    return out;
  }

  Graph& graph_;
  bool several_;
  std::vector<std::string>& notes_;
};

}  // namespace

LossSpec parse_loss(const std::string& text) {
  LossSpec spec;
  std::string rest = text;
  if (const size_t star = rest.rfind('*'); star != std::string::npos) {
    const std::string weight = rest.substr(star + 1);
    const auto [end, error] = std::from_chars(weight.data(), weight.data() + weight.size(), spec.weight);
    if (error != std::errc() || end != weight.data() + weight.size()) {
      throw UserError("--loss " + text + ": '" + weight + "' is not a weight",
                      "write KIND[:OUTPUT][*WEIGHT]");
    }
    rest.resize(star);
  }
  const size_t colon = rest.find(':');
  spec.kind = rest.substr(0, colon);
  if (colon != std::string::npos) spec.output = rest.substr(colon + 1);
  if (std::find(kKinds.begin(), kKinds.end(), spec.kind) == kKinds.end()) {
    throw UserError("--loss " + text + ": no loss '" + spec.kind + "'",
                    "one of softmax-cross-entropy, nll, bce, mse, graph");
  }
  return spec;
}

void attach_losses(Graph& graph, const std::vector<LossSpec>& losses, std::vector<std::string>& notes) {
  if (losses.empty())
    throw UserError("no loss to train with",
                    "name one: --loss softmax-cross-entropy, nll, bce, mse or graph");
  LossBuilder builder(graph, losses.size(), notes);
  for (const LossSpec& spec : losses) builder.add(spec);
}

}  // namespace ff
