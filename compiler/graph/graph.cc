#include "compiler/graph/graph.h"

#include "compiler/base/check.h"

namespace ff {

TensorId Graph::add_tensor(Tensor tensor) {
  tensors.push_back(std::move(tensor));
  return TensorId(static_cast<int64_t>(tensors.size()) - 1);
}

OpId Graph::add_op(Op op) {
  const OpId id(static_cast<int64_t>(ops.size()));
  if (!op.config_of.valid()) op.config_of = id;
  ops.push_back(std::move(op));
  return id;
}

void verify(const Graph& graph) {
  std::vector<bool> written(graph.tensors.size(), false);
  for (const Op& op : graph.ops) {
    const OpId leader = op.config_of;
    FF_CHECK(leader.valid() && leader.index() < graph.ops.size()) << "op " << op.name;
    FF_CHECK_EQ(graph.op(leader).config_of, leader) << "op " << op.name << " follows a follower";
    for (TensorId input : op.inputs) {
      if (!input.valid()) continue;
      FF_CHECK_LT(input.index(), graph.tensors.size()) << "op " << op.name;
      if (graph.tensor(input).kind == TensorKind::activation) {
        FF_CHECK(written[input.index()])
            << "op " << op.name << " reads " << graph.tensor(input).name << " before it is written";
      }
    }
    for (TensorId output : op.outputs) {
      if (output.valid()) written.at(output.index()) = true;
    }
  }
}

std::string to_string(const Graph& graph) {
  constexpr const char* kRoles[] = {"trained", "frozen", "state"};
  const auto type = [](const Tensor& t) {
    return std::string(name(t.dtype)) + "[" + to_string(t.shape) + "]" +
           (t.layout == Layout::channels_last ? " last" : "");
  };
  const auto names = [&graph](const std::vector<TensorId>& ids) {
    std::string out;
    for (TensorId id : ids)
      out += (out.empty() ? "" : ", ") + (id.valid() ? graph.tensor(id).name : std::string("-"));
    return out;
  };
  std::string out = "graph " + graph.name + " batch " + std::to_string(graph.batch) + "\n";
  for (TensorId id : graph.inputs)
    out += "input " + graph.tensor(id).name + ": " + type(graph.tensor(id)) + "\n";
  for (const Tensor& t : graph.tensors) {
    if (t.kind != TensorKind::parameter) continue;
    out += std::string("parameter ") + t.name + ": " + type(t) + " " +
           kRoles[static_cast<int>(t.source.role)] + "\n";
  }
  for (const Op& op : graph.ops) {
    out += op.name + " = " + op.type + "(" + names(op.inputs) + ") -> " + names(op.outputs);
    if (const std::string attributes = to_string(op.attributes); !attributes.empty())
      out += " {" + attributes + "}";
    if (graph.op(op.config_of).name != op.name) out += " as " + graph.op(op.config_of).name;
    if (op.stage_of.valid()) out += " stage of " + graph.op(op.stage_of).name;
    for (TensorId id : op.outputs) out += id.valid() ? " : " + type(graph.tensor(id)) : std::string(" : -");
    out += "\n";
  }
  out += "outputs " + names(graph.outputs) + "\n";
  if (graph.loss.valid()) out += "loss " + graph.tensor(graph.loss).name + "\n";
  return out;
}

}  // namespace ff
