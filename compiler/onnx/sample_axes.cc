// Which axes of a model's inputs count samples, where that is not the first one: recurrent layers read time
// first, so that their second axis, followed back to the inputs, says it.
//
//   x [20, 4] -> Gather -> [20, 4, 128] -> LSTM        samples on axis 1 of x: 4 of them
#include <map>

#include "compiler/base/check.h"
#include "compiler/onnx/importer.h"
#include "compiler/ops/op_table.h"

namespace ff::onnx_import {
namespace {

struct Axis {
  TensorId tensor;
  size_t axis;
};

bool is_recurrent(const Op& op) { return op.type == "LSTM" || op.type == "GRU" || op.type == "RNN"; }

/// The axes of an op's inputs that run with an axis of its output.
void follow(const Graph& graph, const Op& op, const Axis& from, std::vector<Axis>& out) {
  const OpSpace space = op_def(op.type).space(graph, op);
  for (size_t o = 0; o < op.outputs.size(); ++o) {
    if (op.outputs[o] != from.tensor || from.axis >= space.outputs[o].axes.size()) continue;
    const int dim = space.outputs[o].axes[from.axis].dim;
    if (dim < 0) continue;
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      for (size_t a = 0; a < space.inputs[i].axes.size(); ++a) {
        if (op.inputs[i].valid() && space.inputs[i].axes[a].dim == dim) out.push_back({op.inputs[i], a});
      }
    }
  }
}

}  // namespace

std::map<std::string, int> recurrent_sample_axes(const Graph& graph) {
  std::vector<Axis> stack;
  std::map<TensorId, const Op*> producer;
  for (const Op& op : graph.ops) {
    if (op.phase != Phase::forward) continue;
    if (is_recurrent(op)) stack.push_back({op.inputs[0], 1});
    for (TensorId id : op.outputs) {
      if (id.valid()) producer[id] = &op;
    }
  }
  std::map<std::string, int> out;
  std::set<std::pair<TensorId, size_t>> seen;
  while (!stack.empty()) {
    const Axis at = stack.back();
    stack.pop_back();
    if (!seen.insert({at.tensor, at.axis}).second) continue;
    const Tensor& t = graph.tensor(at.tensor);
    if (t.kind == TensorKind::input) {
      out.emplace(t.name, static_cast<int>(at.axis));
    } else if (const auto it = producer.find(at.tensor); it != producer.end()) {
      follow(graph, *it->second, at, stack);
    }
  }
  return out;
}

}  // namespace ff::onnx_import

namespace ff {
namespace {

/// The options with the axes that the model's recurrent layers say, where they are others than those that
/// were taken; `notes` of them.
ImportOptions with_sample_axes(const Graph& graph, ImportOptions options, std::vector<std::string>& notes) {
  for (const auto& [name, axis] : onnx_import::recurrent_sample_axes(graph)) {
    for (TensorId id : graph.inputs) {
      const Tensor& t = graph.tensor(id);
      if (t.name != name || t.batch_axis == axis || !options.batch_axes.emplace(name, axis).second) continue;
      notes.push_back("input '" + name + "': samples are counted by axis " + std::to_string(axis) +
                      ", as recurrent layers read them (--batch-axis " + name + "=K says otherwise)");
    }
  }
  return options;
}

/// What the model says with the batch that it was written for; empty if it cannot be read so.
ImportOptions as_written(const std::string& path, const ImportOptions& options,
                         std::vector<std::string>& notes) {
  ImportOptions written = options;
  written.batch = 0;
  try {
    return with_sample_axes(onnx_import::Importer(path, written).run().graph, options, notes);
  } catch (const UserError&) {
    return options;
  }
}

}  // namespace

ImportedModel import_model(const std::string& path, const ImportOptions& options) {
  std::vector<std::string> notes;
  ImportOptions better = options;
  ImportedModel model;
  try {
    model = onnx_import::Importer(path, options).run();
    better = with_sample_axes(model.graph, options, notes);
    if (notes.empty()) return model;
  } catch (const UserError&) {
    // Perhaps the new batch went to the axis of time.
    if (options.batch > 0) better = as_written(path, options, notes);
    if (notes.empty()) throw;
  }
  model = onnx_import::Importer(path, better).run();
  model.notes.insert(model.notes.begin(), notes.begin(), notes.end());
  return model;
}

}  // namespace ff
