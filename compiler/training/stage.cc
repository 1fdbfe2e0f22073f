#include "compiler/ops/op_table.h"
#include "compiler/training/training.h"

namespace ff {
namespace {

class Stages : public StageBuilder {
 public:
  Stages(Graph& graph, OpId fused, const Op& op, std::vector<Op>& out)
      : graph_(graph), fused_(fused), op_(op), out_(out) {}

  const Graph& graph() const override { return graph_; }

  TensorId temporary(std::string_view part, TensorType type) override {
    Tensor t;
    t.name = op_.name + "/" + std::string(part);
    t.shape = std::move(type.shape);
    t.dtype = type.dtype;
    return graph_.add_tensor(std::move(t));
  }

  void emit(std::string_view part, std::string type, Attributes attributes, std::vector<TensorId> inputs,
            std::vector<TensorId> outputs) override {
    Op op;
    op.name = op_.name + "/" + std::string(part);
    op.type = std::move(type);
    op.attributes = std::move(attributes);
    op.inputs = std::move(inputs);
    op.outputs = std::move(outputs);
    op.phase = op_.phase;
    op.config_of = op_.config_of;
    op.stage_of = fused_;
    out_.push_back(std::move(op));
  }

 private:
  Graph& graph_;
  OpId fused_;
  const Op& op_;
  std::vector<Op>& out_;
};

}  // namespace

void add_stages(Graph& graph) {
  const std::vector<Op> ops = std::move(graph.ops);
  std::vector<Op> out;
  std::vector<OpId> moved;  // of each old op
  for (const Op& old : ops) {
    Op op = old;
    // Leaders come before their followers.
    const OpId self(static_cast<int64_t>(out.size()));
    moved.push_back(self);
    op.config_of = moved[old.config_of.index()];
    out.push_back(op);
    if (op_def(op.type).stages == nullptr) continue;
    Stages stages(graph, self, op, out);
    op_def(op.type).stages(op, stages);
  }
  graph.ops = std::move(out);
}

}  // namespace ff
