#include <algorithm>

#include "compiler/training/training.h"

namespace ff {

void fuse_relu(Graph& graph) {
  std::vector<int> readers(graph.tensors.size(), 0);
  std::vector<int32_t> producer(graph.tensors.size(), -1);
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    for (TensorId t : graph.ops[i].inputs) {
      if (t.valid()) ++readers[t.index()];
    }
    if (!graph.ops[i].outputs.empty()) producer[graph.ops[i].outputs[0].index()] = static_cast<int32_t>(i);
  }
  for (TensorId t : graph.outputs) ++readers[t.index()];
  std::vector<bool> gone(graph.ops.size(), false);
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const Op& relu = graph.ops[i];
    if (relu.type != "Relu" || readers[relu.inputs[0].index()] != 1) continue;
    const int32_t p = producer[relu.inputs[0].index()];
    if (p < 0 || gone[static_cast<size_t>(p)]) continue;
    Op& op = graph.ops[static_cast<size_t>(p)];
    if ((op.type != "Conv" && op.type != "BatchNorm" && op.type != "MatMul" && op.type != "Add") ||
        op.attributes.has("relu"))
      continue;
    op.attributes.set("relu", int64_t{1});
    op.outputs[0] = relu.outputs[0];
    gone[i] = true;
  }
  std::vector<Op> kept;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    if (!gone[i]) kept.push_back(std::move(graph.ops[i]));
  }
  graph.ops.clear();
  for (Op& op : kept) {
    op.config_of = OpId();
    graph.add_op(std::move(op));
  }
}

}  // namespace ff
