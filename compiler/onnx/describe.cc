// What `ffcompile --dry-run` prints of a model.

#include "compiler/onnx/import.h"

namespace ff {

std::string describe(const ImportedModel& model) {
  const Graph& graph = model.graph;
  const auto type = [](const Tensor& t) {
    return std::string(name(t.dtype)) + "[" + to_string(t.shape) + "]";
  };
  std::string out = "model " + model.file + ", batch " + std::to_string(graph.batch) + "\ninputs:\n";
  for (TensorId id : graph.inputs) out += "  " + graph.tensor(id).name + ": " + type(graph.tensor(id)) + "\n";
  out += "outputs:\n";
  for (TensorId id : graph.outputs)
    out += "  " + graph.tensor(id).name + ": " + type(graph.tensor(id)) + "\n";
  constexpr const char* kTitles[] = {"trained parameters", "frozen parameters", "state"};
  for (int role = 0; role < 3; ++role) {
    int64_t elements = 0;
    std::string lines;
    for (const Tensor& t : graph.tensors) {
      if (t.kind != TensorKind::parameter || static_cast<int>(t.source.role) != role) continue;
      elements += volume(t.shape);
      lines += "  " + t.name + ": " + type(t) + "\n";
    }
    if (!lines.empty())
      out += std::string(kTitles[role]) + " (" + std::to_string(elements) + " elements):\n" + lines;
  }
  if (!model.unsupported.empty()) out += "unsupported nodes:\n";
  for (const UnsupportedNode& u : model.unsupported)
    out += "  node '" + u.node + "' (" + u.type + "): " + u.reason + "\n";
  for (const std::string& note : model.notes) out += "note: " + note + "\n";
  return out;
}

}  // namespace ff
