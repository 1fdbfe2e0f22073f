// Weight updates: ops over the parameter's own dimensions, in place, each element by itself. Formulas are
// PyTorch's.

#include "compiler/ops/families.h"

namespace ff {
namespace {

OpSpace space(const Graph& graph, const Op& op) {
  const Shape& shape = graph.tensor(op.inputs.at(0)).shape;
  OpSpace out;
  AccessMap map;
  for (size_t d = 0; d < shape.size(); ++d) {
    out.dims.push_back({"d" + std::to_string(d), Role::parameter, shape[d], shape[d]});
    map.axes.push_back(AxisMap::identity(static_cast<int>(d)));
  }
  out.inputs.assign(op.inputs.size(), map);
  out.outputs.assign(op.outputs.size(), map);
  return out;
}

Work work(const Graph& graph, const Op& op, const Cell& cell) {
  const auto n = static_cast<double>(cell.boxes[0].volume());
  // Every operand is read, every one but the gradient is written.
  const double streams = static_cast<double>(op.inputs.size() + op.outputs.size());
  return {n * 4 * static_cast<double>(op.outputs.size()),
          n * streams * static_cast<double>(size_of(graph.tensor(op.inputs[0]).dtype))};
}

}  // namespace

std::span<const OpDef> update_ops() {
  static const std::vector<OpDef> rows = [] {
    std::vector<OpDef> out;
    for (std::string_view type : {"Sgd", "Momentum", "Adam", "AdamW"}) {
      OpDef def;
      def.type = type;
      def.family = "update";
      def.space = space;
      def.work = work;
      def.forward_in_eval = false;
      out.push_back(def);
    }
    return out;
  }();
  return rows;
}

}  // namespace ff
