#include "compiler/training/training.h"

#include <algorithm>

#include "compiler/base/check.h"
#include "compiler/ops/op_table.h"

namespace ff {
namespace {

/// Forward, backward, updates; within each as they were.
void order_by_phase(Graph& graph) {
  std::vector<size_t> order(graph.ops.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return graph.ops[a].phase < graph.ops[b].phase; });
  std::vector<OpId> moved(order.size());
  for (size_t i = 0; i < order.size(); ++i) moved[order[i]] = OpId(static_cast<int64_t>(i));
  std::vector<Op> ops;
  for (size_t i : order) {
    Op op = std::move(graph.ops[i]);
    op.config_of = moved[op.config_of.index()];
    ops.push_back(std::move(op));
  }
  graph.ops = std::move(ops);
}

/// All floats in f64: for comparisons that must be exact.
void widen(Graph& graph) {
  for (Tensor& t : graph.tensors) {
    if (!is_float(t.dtype)) continue;
    FF_CHECK(t.kind != TensorKind::parameter || t.source.kind != ParameterSource::Kind::inlined ||
             t.dtype == DType::f64 || t.dtype == DType::f32);
    if (t.source.kind == ParameterSource::Kind::inlined && t.dtype == DType::f32) {
      std::string wide;
      for (size_t i = 0; i + 4 <= t.source.bytes.size(); i += 4) {
        float f = 0;
        std::copy_n(t.source.bytes.data() + i, 4, reinterpret_cast<char*>(&f));
        const double d = f;
        wide.append(reinterpret_cast<const char*>(&d), 8);
      }
      t.source.bytes = std::move(wide);
    }
    t.dtype = DType::f64;
  }
}

/// Statistics of `groups` parts of the batch, each of its own.
void group_batch_norms(Graph& graph, int64_t groups) {
  for (Op& op : graph.ops) {
    if (op.type != "BatchNorm") continue;
    op.attributes.set("groups", groups);
    try {
      const auto types = op_def(op.type).infer(graph, op);
      for (size_t i : {size_t{1}, size_t{2}}) graph.tensor(op.outputs[i]).shape = types[i].shape;
    } catch (const UserError& error) {
      throw UserError("node '" + op.name + "': " + error.what(),
                      "--batchnorm local takes a --batch that is a multiple of the number of devices");
    }
  }
}

}  // namespace

Graph make_training_graph(Graph forward, const TrainingOptions& options, std::vector<std::string>& notes) {
  Graph graph = std::move(forward);
  if (options.precision == DType::f64) widen(graph);
  if (options.batchnorm_groups > 1) group_batch_norms(graph, options.batchnorm_groups);
  attach_losses(graph, options.losses, notes);
  if (options.fuse) {
    fuse_activations(graph);
    fuse_relu(graph);
  }
  differentiate(graph);
  add_updates(graph, options.optimizer, notes);
  order_by_phase(graph);
  assign_layouts(graph);
  add_stages(graph);
  verify(graph);
  return graph;
}

}  // namespace ff
