#include "test/support/evaluate.h"

#include <algorithm>

#include "compiler/base/check.h"
#include "test/support/cell_kernel.h"

namespace ff::test {
namespace {

void run_op(const Graph& graph, OpId id, cpu::Flavor flavor, const RunContext& context, Values& values) {
  const Op& op = graph.op(id);
  const OpSpace space = space_of(graph, id);
  std::vector<Range> blocks;
  for (const IterDim& d : space.dims) blocks.push_back({0, d.extent});
  CellKernel kernel(graph, id, cell_of(graph, op, space, blocks), flavor);
  std::vector<std::vector<double>> given(kernel.operands());
  const auto tensor = [&](size_t i) -> const Tensor& { return graph.tensor(kernel.tensor(i)); };
  for (size_t i = 0; i < given.size(); ++i) {
    if (!kernel.reads(i)) continue;
    const auto it = values.find(tensor(i).name);
    FF_CHECK(it != values.end()) << op.name << " reads " << tensor(i).name << ", which has no value";
    FF_CHECK_EQ(it->second.size(), static_cast<size_t>(volume(tensor(i).shape))) << tensor(i).name;
    for (size_t e : elements_of(kernel.box(i), tensor(i).shape)) given[i].push_back(it->second[e]);
  }
  const std::vector<std::vector<double>> results = kernel.run(given, context);
  for (size_t i = 0; i < results.size(); ++i) {
    if (!kernel.writes(i)) continue;
    // What no op writes of a gradient is 0.
    std::vector<double>& value = values[tensor(i).name];
    value.resize(static_cast<size_t>(volume(tensor(i).shape)), 0.0);
    size_t next = 0;
    for (size_t e : elements_of(kernel.box(i), tensor(i).shape)) {
      const double written = results[i][next++];
      value[e] = kernel.reads(i) ? written : value[e] + written;
    }
  }
}

}  // namespace

Values evaluate(const Graph& graph, const Values& given, cpu::Flavor flavor, Form form,
                const RunContext& context) {
  Values values = given;
  std::vector<bool> has_stages(graph.ops.size(), false);
  for (const Op& op : graph.ops) {
    if (op.stage_of.valid()) has_stages[op.stage_of.index()] = true;
  }
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const bool skip = form == Form::staged ? static_cast<bool>(has_stages[i]) : graph.ops[i].stage_of.valid();
    if (!skip) run_op(graph, OpId(static_cast<int64_t>(i)), flavor, context, values);
  }
  return values;
}

OpId add_op(Graph& graph, std::string name, std::string type, Attributes attributes,
            std::vector<TensorId> inputs) {
  Op op{.name = name,
        .type = std::move(type),
        .attributes = std::move(attributes),
        .inputs = std::move(inputs),
        .outputs = {},
        .phase = Phase::forward,
        .config_of = {},
        .stage_of = {}};
  size_t i = 0;
  for (TensorType& t : op_def(op.type).infer(graph, op)) {
    Tensor tensor;
    tensor.name = i == 0 ? name : name + "/" + std::to_string(i);
    tensor.shape = std::move(t.shape);
    tensor.dtype = t.dtype;
    op.outputs.push_back(graph.add_tensor(std::move(tensor)));
    ++i;
  }
  return graph.add_op(std::move(op));
}

TensorId RuleBuilder::gradient(TensorId of) {
  if (const auto it = gradients_.find(of); it != gradients_.end()) return it->second;
  Tensor t = graph_.tensor(of);
  t.name = "grad_" + t.name;
  t.kind = TensorKind::gradient;
  return gradients_[of] = graph_.add_tensor(std::move(t));
}

TensorId RuleBuilder::input_gradient(TensorId input) {
  return std::find(wanted_.begin(), wanted_.end(), input) != wanted_.end() ? gradient(input) : TensorId();
}

TensorId RuleBuilder::temporary(std::string_view part, TensorId like) {
  Tensor t = graph_.tensor(like);
  t.name = prefix_ + std::string(part);
  t.kind = TensorKind::gradient;
  return graph_.add_tensor(std::move(t));
}

TensorId RuleBuilder::temporary(std::string_view part, TensorType type) {
  Tensor t;
  t.name = prefix_ + std::string(part);
  t.shape = std::move(type.shape);
  t.dtype = type.dtype;
  return graph_.add_tensor(std::move(t));
}

void RuleBuilder::emit(std::string_view part, std::string type, Attributes attributes,
                       std::vector<TensorId> inputs, std::vector<TensorId> outputs) {
  graph_.add_op({.name = prefix_ + std::string(part),
                 .type = std::move(type),
                 .attributes = std::move(attributes),
                 .inputs = std::move(inputs),
                 .outputs = std::move(outputs),
                 .phase = replaces_.valid() ? graph_.op(replaces_).phase : Phase::backward,
                 .config_of = follows_,
                 .stage_of = replaces_});
}

void RuleBuilder::differentiate(OpId id, const std::vector<TensorId>& wanted) {
  wanted_ = wanted;
  follows_ = graph_.op(id).config_of;
  replaces_ = {};
  const Op op = graph_.op(id);
  prefix_ = op.name + "/";
  FF_CHECK(op_def(op.type).gradient != nullptr) << op.type;
  op_def(op.type).gradient(op, *this);
}

void RuleBuilder::stage(OpId id) {
  follows_ = graph_.op(id).config_of;
  replaces_ = id;
  const Op op = graph_.op(id);
  prefix_ = op.name + "/stage_";
  FF_CHECK(op_def(op.type).stages != nullptr) << op.type;
  op_def(op.type).stages(op, *this);
}

}  // namespace ff::test
