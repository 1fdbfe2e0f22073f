#include <map>

#include "compiler/base/check.h"
#include "compiler/training/training.h"

namespace ff {
namespace {

struct Optimizer {
  std::string op;
  std::vector<std::string> states;
};

const Optimizer& optimizer_of(const std::string& name) {
  static const std::map<std::string, Optimizer> all{{"sgd", {"Sgd", {}}},
                                                    {"momentum", {"Momentum", {"velocity"}}},
                                                    {"adam", {"Adam", {"exp_avg", "exp_avg_sq"}}},
                                                    {"adamw", {"AdamW", {"exp_avg", "exp_avg_sq"}}}};
  const auto it = all.find(name);
  if (it == all.end()) throw UserError("no optimizer '" + name + "'", "one of sgd, momentum, adam, adamw");
  return it->second;
}

}  // namespace

void add_updates(Graph& graph, const std::string& optimizer, std::vector<std::string>& notes) {
  const Optimizer& kind = optimizer_of(optimizer);
  std::map<std::string, TensorId> gradients;
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    if (graph.tensors[t].kind == TensorKind::gradient)
      gradients[graph.tensors[t].name] = TensorId(static_cast<int64_t>(t));
  }
  const size_t count = graph.tensors.size();
  for (size_t t = 0; t < count; ++t) {
    const Tensor weight = graph.tensors[t];
    if (weight.kind != TensorKind::parameter || weight.source.role != ParameterRole::trained) continue;
    const auto gradient = gradients.find("grad:" + weight.name);
    if (gradient == gradients.end()) {
      notes.push_back("parameter '" + weight.name + "' does not reach the loss and is not trained");
      graph.tensors[t].source.role = ParameterRole::frozen;
      continue;
    }
    Op op;
    op.name = weight.name;
    op.type = kind.op;
    op.phase = Phase::update;
    op.inputs = {TensorId(static_cast<int64_t>(t)), gradient->second};
    op.outputs = {op.inputs[0]};
    for (const std::string& state : kind.states) {
      Tensor s;
      s.name = weight.name + "." + state;
      s.shape = weight.shape;
      s.dtype = weight.dtype;
      s.kind = TensorKind::parameter;
      s.source.role = ParameterRole::state;
      s.source.kind = ParameterSource::Kind::fill;
      const TensorId id = graph.add_tensor(std::move(s));
      op.inputs.push_back(id);
      op.outputs.push_back(id);
    }
    graph.add_op(std::move(op));
  }
}

}  // namespace ff
