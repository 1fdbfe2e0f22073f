// Reverse-mode differentiation over the op table. A tensor's gradient is written by every op that reads the
// tensor; the writers are addends, so no op adds them. Where one op alone reads it, and its gradient is the
// result's as it is (a sum), the two are one tensor.

#include <algorithm>
#include <map>

#include "compiler/base/check.h"
#include "compiler/base/model_data.h"
#include "compiler/ops/op_table.h"
#include "compiler/training/training.h"

namespace ff {
namespace {

class Differentiation : public GradientBuilder {
 public:
  explicit Differentiation(Graph& graph)
      : graph_(graph), needs_(graph.tensors.size(), false), readers_(graph.tensors.size(), 0) {
    for (size_t t = 0; t < graph.tensors.size(); ++t) {
      const Tensor& tensor = graph.tensors[t];
      needs_[t] = tensor.kind == TensorKind::parameter && tensor.source.role == ParameterRole::trained;
    }
    for (const Op& op : graph.ops) {
      if (op.phase != Phase::forward) continue;
      for (TensorId i : op.inputs) {
        if (i.valid()) ++readers_[i.index()];
      }
      const bool any = std::any_of(op.inputs.begin(), op.inputs.end(),
                                   [&](TensorId i) { return i.valid() && needs_[i.index()]; });
      for (TensorId out : op.outputs) {
        if (out.valid() && any) needs_[out.index()] = true;
      }
    }
  }

  void run() {
    const size_t forward = graph_.ops.size();
    seed();
    for (size_t i = forward; i-- > 0;) {
      const Op op = graph_.ops[i];  // a copy: emitting grows the vector
      if (op.phase != Phase::forward) continue;
      const bool wanted = std::any_of(op.inputs.begin(), op.inputs.end(),
                                      [&](TensorId t) { return t.valid() && needs_[t.index()]; });
      const bool arrives =
          gives_loss(op) || std::any_of(op.outputs.begin(), op.outputs.end(),
                                        [&](TensorId t) { return t.valid() && gradients_.contains(t); });
      if (!wanted || !arrives) continue;
      const OpDef& def = op_def(op.type);
      if (def.gradient == nullptr) {
        throw UserError(
            "node '" + op.name + "' (" + op.type +
                "): has no gradient, and trained parameters come before it",
            "freeze what comes before it with --freeze, or train up to another value with --output");
      }
      forward_ = &op;
      leader_ = op.config_of;
      def.gradient(op, *this);
    }
  }

  const Graph& graph() const override { return graph_; }

  TensorId output_gradient(TensorId output) override {
    const auto it = gradients_.find(output);
    return it == gradients_.end() ? TensorId() : it->second;
  }

  TensorId input_gradient(TensorId input) override {
    if (!input.valid() || !needs_[input.index()]) return {};
    const auto [it, added] = gradients_.try_emplace(input);
    if (added) {
      const Tensor& of = graph_.tensor(input);
      Tensor t;
      t.name = "grad:" + of.name;
      t.shape = of.shape;
      t.dtype = of.dtype;
      t.kind = TensorKind::gradient;
      t.batch_axis = of.batch_axis;
      it->second = graph_.add_tensor(std::move(t));
    }
    return it->second;
  }

  bool pass_gradient(TensorId input, TensorId dy) override {
    if (!input.valid() || !needs_[input.index()]) return true;
    if (readers_[input.index()] != 1 || graph_.tensor(input).kind == TensorKind::parameter) return false;
    FF_CHECK(graph_.tensor(input).shape == graph_.tensor(dy).shape) << graph_.tensor(input).name;
    return gradients_.try_emplace(input, dy).second;
  }

  void emit(std::string_view part, std::string type, Attributes attributes, std::vector<TensorId> inputs,
            std::vector<TensorId> outputs) override {
    Op op;
    op.name = forward_->name + "/" + std::string(part);
    op.type = std::move(type);
    op.attributes = std::move(attributes);
    op.inputs = std::move(inputs);
    op.outputs = std::move(outputs);
    op.phase = Phase::backward;
    op.config_of = leader_;
    graph_.add_op(std::move(op));
  }

  TensorId temporary(std::string_view part, TensorId like) override {
    Tensor t = graph_.tensor(like);
    t.name = forward_->name + "/" + std::string(part);
    t.kind = TensorKind::gradient;
    t.source = {};
    return graph_.add_tensor(std::move(t));
  }

 private:
  bool gives_loss(const Op& op) const {
    return std::find(op.outputs.begin(), op.outputs.end(), graph_.loss) != op.outputs.end();
  }

  /// The gradients of loss ops are those of the training loss. At other ops that compute it a 1 arrives.
  void seed() {
    const bool needed = std::any_of(graph_.ops.begin(), graph_.ops.end(), [&](const Op& op) {
      return gives_loss(op) && op_def(op.type).family != "loss";
    });
    if (!needed) return;
    Tensor one = graph_.tensor(graph_.loss);
    one.name = "grad:" + one.name;
    one.kind = TensorKind::parameter;
    one.source.role = ParameterRole::frozen;
    one.source.kind = ParameterSource::Kind::inlined;
    one.source.model_shape = one.shape;
    one.source.model_dtype = one.dtype;
    append_element(one.source.bytes, one.dtype, 1);
    gradients_[graph_.loss] = graph_.add_tensor(std::move(one));
  }

  Graph& graph_;
  std::vector<bool> needs_;
  std::vector<int> readers_;  // forward ops
  std::map<TensorId, TensorId> gradients_;
  const Op* forward_ = nullptr;
  OpId leader_;
};

}  // namespace

void differentiate(Graph& graph) { Differentiation(graph).run(); }

}  // namespace ff
