#include <map>

#include "compiler/base/check.h"
#include "compiler/training/training.h"

namespace ff {

Graph make_eval_graph(const Graph& training) {
  Graph out = training;
  out.ops.clear();
  // Running statistics, by the mean that a batch normalisation computes.
  std::map<TensorId, const Op*> running;
  for (const Op& op : training.ops) {
    if (op.type == "BatchNormRunning") running[op.inputs[0]] = &op;
  }
  for (const Op& old : training.ops) {
    if (old.phase != Phase::forward || old.stage_of.valid()) continue;
    Op op = old;
    op.config_of = OpId();
    if (op.type == "Dropout") {
      op.type = "Identity";
      op.attributes = {};
    }
    if (op.type == "BatchNorm") {
      const auto it = running.find(op.outputs[1]);
      FF_CHECK(it != running.end()) << "no running statistics for " << op.name;
      op.type = "BatchNormInference";
      op.attributes.erase("groups");
      op.inputs.push_back(it->second->inputs[2]);
      op.inputs.push_back(it->second->inputs[3]);
      op.outputs.resize(1);
    }
    out.add_op(std::move(op));
  }
  // Only what takes part: gradients and what updates need are gone.
  std::vector<bool> used(out.tensors.size(), false);
  const auto mark = [&](TensorId id) {
    if (id.valid()) used[id.index()] = true;
  };
  for (const Op& op : out.ops) {
    for (TensorId id : op.inputs) mark(id);
    for (TensorId id : op.outputs) mark(id);
  }
  for (size_t t = 0; t < out.tensors.size(); ++t) {
    if (!used[t] && out.tensors[t].kind == TensorKind::parameter)
      out.tensors[t].kind = TensorKind::activation;
  }
  add_stages(out);
  verify(out);
  return out;
}

}  // namespace ff
