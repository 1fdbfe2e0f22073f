// From a strategy to its task graph: the runs of every active op, the steps of every tensor, and the edges.

#include <algorithm>

#include "compiler/simulator/parts.h"
#include "compiler/simulator/simulator.h"

namespace ff {
namespace {

class GraphBuilder {
 public:
  GraphBuilder(const Problem& problem, const Machine& machine, Parts& parts, const Homes* homes)
      : problem_(problem), machine_(machine), parts_(parts), homes_(homes) {}

  TaskGraph build(const Strategy& strategy) {
    const Graph& graph = problem_.graph();
    out_.first_link = 2 * machine_.num_devices();
    out_.num_resources = out_.first_link + machine_.num_links();
    out_.tensors.resize(graph.tensors.size());
    keys_ = keys_of(problem_, strategy);
    for (size_t i = 0; i < graph.ops.size(); ++i) {
      const OpId id(static_cast<int64_t>(i));
      runs_.push_back(parts_.op(id, strategy.configs[graph.ops[i].config_of.index()], keys_[i]));
      add_runs(id);
    }
    for (size_t t = 0; t < out_.tensors.size(); ++t) add_tensor(TensorId(static_cast<int64_t>(t)));
    finish_edges();
    return std::move(out_);
  }

 private:
  void add_runs(OpId id) {
    const Op& node = problem_.graph().op(id);
    out_.ops.push_back(*runs_.back());
    OpRuns& op = out_.ops.back();
    op.instances.assign(op.runs.size() * (node.inputs.size() + node.outputs.size()), -1);
    first_task_.push_back(static_cast<int32_t>(out_.tasks.size()));
    for (size_t r = 0; r < op.runs.size(); ++r) {
      out_.tasks.push_back({Task::Kind::run, id.value, static_cast<int32_t>(r), op.cost.time});
      out_.resources.items.push_back(op.devices[r]);
      out_.resources.begin.push_back(static_cast<int32_t>(out_.resources.items.size()));
    }
  }

  void add_tensor(TensorId id) {
    const std::vector<TensorWrite>* home = nullptr;
    if (homes_ != nullptr && !(*homes_)[id.index()].empty()) home = &(*homes_)[id.index()];
    const auto part = parts_.tensor(id, runs_, keys_, home);
    if (!part->plan) return;
    const auto& participants = parts_.participants(id);
    const auto set_places = [&](const std::vector<TensorPart::Use>& uses,
                                const std::vector<int32_t>& instances) {
      for (size_t i = 0; i < uses.size(); ++i) {
        OpRuns& op = out_.ops[participants[static_cast<size_t>(uses[i].owner) - 1].index()];
        op.instances[static_cast<size_t>(uses[i].place)] = instances[i];
      }
    };
    set_places(part->writes, part->plan->write_instance);
    set_places(part->reads, part->plan->read_instance);
    std::vector<int32_t> first{static_cast<int32_t>(out_.tasks.size())};  // by owner
    for (OpId op : participants) first.push_back(first_task_[op.index()]);
    for (int32_t s = 0; s < part->steps(); ++s) {
      const auto step = static_cast<size_t>(s);
      out_.tasks.push_back({Task::Kind::step, id.value, s, part->durations[step]});
      const auto resources = part->resources[step];
      out_.resources.items.insert(out_.resources.items.end(), resources.begin(), resources.end());
      out_.resources.begin.push_back(static_cast<int32_t>(out_.resources.items.size()));
    }
    out_.bytes_moved += part->bytes_moved;
    for (size_t owner = 0; owner < first.size(); ++owner) {
      const int32_t nodes = part->first[owner + 1] - part->first[owner];
      for (int32_t i = 0; i < nodes; ++i) {
        for (const TensorPart::Node& to : part->successors_of(static_cast<int32_t>(owner), i))
          edges_.emplace_back(first[owner] + i, first[static_cast<size_t>(to.owner)] + to.index);
      }
    }
    out_.tensors[id.index()] = part->plan;
  }

  /// Sorts the edges by their ends, one of each, into the successors of every task.
  void finish_edges() {
    const size_t n = out_.tasks.size();
    std::vector<int32_t> end(n + 1, 0);  // of each task's successors
    for (const auto& [from, to] : edges_) ++end[static_cast<size_t>(from) + 1];
    for (size_t i = 0; i < n; ++i) end[i + 1] += end[i];
    std::vector<int32_t> next(end.begin(), end.end() - 1), all(edges_.size());
    for (const auto& [from, to] : edges_) all[static_cast<size_t>(next[static_cast<size_t>(from)]++)] = to;
    out_.predecessors.assign(n, 0);
    out_.successors.begin.assign(1, 0);
    out_.successors.items.reserve(all.size());
    for (size_t i = 0; i < n; ++i) {
      const auto first = all.begin() + end[i], last = all.begin() + end[i + 1];
      std::sort(first, last);
      out_.successors.items.insert(out_.successors.items.end(), first, std::unique(first, last));
      out_.successors.begin.push_back(static_cast<int32_t>(out_.successors.items.size()));
    }
    for (int32_t to : out_.successors.items) ++out_.predecessors[static_cast<size_t>(to)];
  }

  const Problem& problem_;
  const Machine& machine_;
  Parts& parts_;
  const Homes* homes_;
  TaskGraph out_;
  std::vector<std::shared_ptr<const OpRuns>> runs_;  // by op
  std::vector<PartKey> keys_;                        // by op: of its leader's config
  std::vector<int32_t> first_task_;                  // by op: of its runs
  std::vector<std::pair<int32_t, int32_t>> edges_;
};

}  // namespace

TaskGraph Simulator::build(const Strategy& strategy, const Homes* homes) {
  return GraphBuilder(problem_, machine_, *parts_, homes).build(strategy);
}

}  // namespace ff
