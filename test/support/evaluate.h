// Runs a graph on one device, every op as one whole cell, through the CPU kernels: the oracle of tests, which
// knows nothing of partitions, programs and communicators.
//
//   RuleBuilder rules(graph);                                  // a gradient or staged form, without the
//   compiler rules.differentiate(op, {op.inputs[0]}); Values v = evaluate(graph, {{"x", {1, 2, 3}}},
//   Flavor::reference); v.at("grad_x");
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/ops/op_table.h"
#include "executor/kernels/cpu/registry.h"

namespace ff::test {

/// Values by tensor name, in the logical order of the tensor's dimensions, whatever its layout.
using Values = std::map<std::string, std::vector<double>>;

enum class Form : uint8_t { fused, staged };

/// The value of every tensor after all ops have run; `given`: the inputs' and parameters'. A tensor with
/// several writers is their sum. `form`: which of an op's two forms runs, where the graph has both.
Values evaluate(const Graph& graph, const Values& given, cpu::Flavor flavor = cpu::Flavor::fast,
                Form form = Form::fused, const RunContext& context = {});

/// The same in cells: every op that has a dimension of this name runs in `degree` blocks of it, and what the
/// cells write is added up.
Values evaluate_split(const Graph& graph, const Values& given, const std::string& dim, int64_t degree);

/// Appends an op and the tensors that its row infers: named `name`, then name/1, name/2, ...
OpId add_op(Graph& graph, std::string name, std::string type, Attributes attributes,
            std::vector<TensorId> inputs);

/// Calls an op's gradient or stage rule and appends what it emits. The gradient of tensor t is named grad_t.
class RuleBuilder final : public GradientBuilder, public StageBuilder {
 public:
  explicit RuleBuilder(Graph& g) : graph_(g) {}

  /// `wanted`: the inputs whose gradients are needed. Gives the op's outputs gradient tensors `grad_...` that
  /// the caller sets through `evaluate`.
  void differentiate(OpId op, const std::vector<TensorId>& wanted);
  /// Appends the staged form of an op, marked as replacing it.
  void stage(OpId op);

  const Graph& graph() const override { return graph_; }
  TensorId output_gradient(TensorId output) override { return gradient(output); }
  TensorId input_gradient(TensorId input) override;
  bool pass_gradient(TensorId, TensorId) override {
    return false;
  }  // a copy, so that there is a tensor to look at
  TensorId temporary(std::string_view part, TensorId like) override;
  TensorId temporary(std::string_view part, TensorType type) override;
  void emit(std::string_view part, std::string type, Attributes attributes, std::vector<TensorId> inputs,
            std::vector<TensorId> outputs) override;

 private:
  TensorId gradient(TensorId of);

  Graph& graph_;
  std::vector<TensorId> wanted_;
  std::map<TensorId, TensorId> gradients_;
  std::string prefix_;
  OpId follows_, replaces_;
};

}  // namespace ff::test
