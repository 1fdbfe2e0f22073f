#include "compiler/search/optcnn.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/search/baselines.h"
#include "compiler/search/degrees.h"
#include "compiler/simulator/parts.h"

namespace ff {
namespace {

size_t most_candidates(int devices) {
  if (devices <= 4) return SIZE_MAX;
  return devices <= 16 ? 16 : 10;
}

Config in_order(const Degrees& degrees) {
  return {degrees, 1, all_devices(static_cast<int>(cells_of(degrees)))};
}

/// By tensor: the nodes whose ops touch it, and those that write it.
struct TensorNodes {
  std::set<size_t> writers, readers;
};

/// Node of each op: its leader's, or for an update that of the first reader of its weight; -1: none.
std::vector<int> nodes_of(const Problem& problem, const std::vector<OpId>& ops) {
  std::vector<int> node(problem.graph().ops.size(), -1);
  for (size_t n = 0; n < ops.size(); ++n) node[ops[n].index()] = static_cast<int>(n);
  std::vector<int> out(node.size(), -1);
  for (OpId leader : problem.leaders()) {
    const OpId of = is_update(problem, leader) ? weight_reader(problem, leader) : leader;
    for (OpId op : problem.followers(leader)) out[op.index()] = of.valid() ? node[of.index()] : -1;
  }
  return out;
}

std::vector<TensorNodes> nodes_of_tensors(const Problem& problem, const std::vector<int>& node) {
  std::vector<TensorNodes> out(problem.graph().tensors.size());
  for (size_t t = 0; t < out.size(); ++t) {
    const TensorId id(static_cast<int64_t>(t));
    for (const auto& [op, output] : problem.writers(id)) {
      if (node[op.index()] >= 0) out[t].writers.insert(static_cast<size_t>(node[op.index()]));
    }
    for (const auto& [op, input] : problem.readers(id)) {
      if (node[op.index()] >= 0) out[t].readers.insert(static_cast<size_t>(node[op.index()]));
    }
  }
  return out;
}

/// Pairs of nodes with the tensors that go from one to the other.
std::map<std::pair<size_t, size_t>, std::vector<TensorId>> transfers(
    const std::vector<TensorNodes>& tensors) {
  std::map<std::pair<size_t, size_t>, std::vector<TensorId>> out;
  for (size_t t = 0; t < tensors.size(); ++t) {
    std::set<std::pair<size_t, size_t>> pairs;
    for (size_t w : tensors[t].writers) {
      for (size_t r : tensors[t].readers) {
        if (w != r) pairs.insert(std::minmax(w, r));
      }
    }
    for (const auto& pair : pairs) out[pair].emplace_back(static_cast<int64_t>(t));
  }
  return out;
}

class Pricer {
 public:
  Pricer(const Problem& problem, const Machine& machine, CostModel& costs, const OptcnnModel& model)
      : problem_(problem),
        model_(model),
        parts_(problem, machine, costs),
        strategy_{std::vector<Config>(problem.graph().ops.size())},
        runs_(problem.graph().ops.size(), std::make_shared<OpRuns>()),
        nothing_(runs_.front()),
        keys_(problem.graph().ops.size()),
        free_(static_cast<size_t>(2 * machine.num_devices() + machine.num_links())) {
    updates_.resize(problem.graph().ops.size());
    for (OpId op : problem.leaders()) {
      if (!is_update(problem, op)) continue;
      if (const OpId reader = weight_reader(problem, op); reader.valid())
        updates_[reader.index()].push_back(op);
    }
  }

  AdditiveCosts price() {
    const auto node = nodes_of(problem_, model_.ops);
    const auto tensors = nodes_of_tensors(problem_, node);
    std::vector<std::vector<TensorId>> inside(model_.ops.size());
    for (size_t t = 0; t < tensors.size(); ++t) {
      const auto& [writers, readers] = tensors[t];
      if (writers.size() == 1 && (readers.empty() || readers == writers))
        inside[*writers.begin()].emplace_back(static_cast<int64_t>(t));
    }
    AdditiveCosts out;
    for (size_t n = 0; n < model_.ops.size(); ++n) {
      out.nodes.emplace_back();
      for (const Config& config : model_.candidates[n]) {
        Nanoseconds cost = place(n, config);
        for (TensorId t : inside[n]) cost += time_of(t);
        out.nodes.back().push_back(cost);
      }
      lift(n);
    }
    for (const auto& [pair, list] : transfers(tensors)) {
      AdditiveCosts::Edge edge{pair.first, pair.second, {}};
      for (const Config& a : model_.candidates[edge.a]) {
        place(edge.a, a);
        for (const Config& b : model_.candidates[edge.b]) {
          place(edge.b, b);
          Nanoseconds cost = 0;
          for (TensorId t : list) cost += time_of(t);
          edge.costs.push_back(cost);
        }
      }
      lift(edge.a);
      lift(edge.b);
      out.edges.push_back(std::move(edge));
    }
    return out;
  }

 private:
  /// Gives a node's ops their runs; what they take if each device does its runs one after the other.
  Nanoseconds place(size_t node, const Config& config) {
    const OpId leader = model_.ops[node];
    strategy_.configs[leader.index()] = config;
    Nanoseconds cost = place_leader(leader, config);
    for (OpId update : updates_[leader.index()])
      cost += place_leader(update, follow_readers(problem_, strategy_, update));
    return cost;
  }

  Nanoseconds place_leader(OpId leader, const Config& config) {
    const PartKey key = key_of(config);
    Nanoseconds cost = 0;
    for (OpId op : problem_.followers(leader)) {
      runs_[op.index()] = parts_.op(op, config, key);
      keys_[op.index()] = key;
      std::map<int32_t, int64_t> runs;  // by device
      int64_t most = 0;
      for (int32_t device : runs_[op.index()]->devices) most = std::max(most, ++runs[device]);
      cost += most * runs_[op.index()]->cost.time;
    }
    return cost;
  }

  void lift(size_t node) {
    const auto away = [&](OpId leader) {
      for (OpId op : problem_.followers(leader)) {
        runs_[op.index()] = nothing_;
        keys_[op.index()] = {};
      }
    };
    away(model_.ops[node]);
    for (OpId update : updates_[model_.ops[node].index()]) away(update);
  }

  /// How long the tensor's redistribution takes between the ops that are placed.
  Nanoseconds time_of(TensorId tensor) {
    const auto& writers = problem_.writers(tensor);
    if (std::none_of(writers.begin(), writers.end(),
                     [&](const auto& w) { return runs_[w.first.index()]->active; }))
      return 0;
    const auto part = parts_.tensor(tensor, runs_, keys_);
    std::fill(free_.begin(), free_.end(), 0);
    std::vector<Nanoseconds> ends(part->durations.size(), 0);
    Nanoseconds last = 0;
    for (int32_t s = 0; s < part->steps(); ++s) {
      Nanoseconds start = 0;
      for (const auto& before : part->predecessors_of(0, s)) {
        if (before.owner == 0) start = std::max(start, ends[static_cast<size_t>(before.index)]);
      }
      const auto resources = part->resources[static_cast<size_t>(s)];
      for (int32_t r : resources) start = std::max(start, free_[static_cast<size_t>(r)]);
      const Nanoseconds end = start + part->durations[static_cast<size_t>(s)];
      for (int32_t r : resources) free_[static_cast<size_t>(r)] = end;
      ends[static_cast<size_t>(s)] = end;
      last = std::max(last, end);
    }
    return last;
  }

  const Problem& problem_;
  const OptcnnModel& model_;
  Parts parts_;
  Strategy strategy_;
  std::vector<std::shared_ptr<const OpRuns>> runs_;  // by op: of those that are placed
  std::shared_ptr<const OpRuns> nothing_;
  std::vector<PartKey> keys_;
  std::vector<std::vector<OpId>> updates_;  // by op: of the weights that it reads first
  std::vector<Nanoseconds> free_;           // by resource
};

}  // namespace

OptcnnModel optcnn_candidates(const Problem& problem, const Machine& machine, CostModel& costs, Space space) {
  OptcnnModel out;
  KernelCosts kernels;
  const size_t most = most_candidates(machine.num_devices());
  const auto compute = [&](OpId leader, const Degrees& degrees) {
    Nanoseconds time = 0;
    for (OpId op : problem.followers(leader)) {
      if (problem.active(op, {degrees, 1, {}}))
        time +=
            kernels.largest_cell(problem, machine, costs, op, problem.degrees_of(op, {degrees, 1, {}})).time;
    }
    return time;
  };
  for (OpId leader : problem.leaders()) {
    if (is_update(problem, leader)) continue;
    auto all = degrees_dividing(problem, leader, space, machine.num_devices());
    if (all.size() > most) {
      // First what splits one dimension the furthest, and the whole; then by compute.
      std::vector<std::pair<Nanoseconds, size_t>> order;
      for (size_t i = 0; i < all.size(); ++i) {
        const Degrees& d = all[i];
        const auto split = std::count_if(d.begin(), d.end(), [](int32_t degree) { return degree > 1; });
        const auto further = [&](const Degrees& e) {
          for (size_t k = 0; k < d.size(); ++k) {
            if ((d[k] == 1) != (e[k] == 1) || e[k] < d[k]) return false;
          }
          return e != d;
        };
        const bool kept = split == 0 || (split == 1 && std::none_of(all.begin(), all.end(), further));
        order.emplace_back(kept ? 0 : compute(leader, d), i);
      }
      std::sort(order.begin(), order.end());
      std::vector<Degrees> kept;
      for (size_t i = 0; i < most; ++i) kept.push_back(all[order[i].second]);
      all = std::move(kept);
    }
    out.ops.push_back(leader);
    out.candidates.emplace_back();
    for (const Degrees& degrees : all) out.candidates.back().push_back(in_order(degrees));
  }
  return out;
}

double pricing_effort(const Problem& problem, const OptcnnModel& model) {
  double effort = 0;
  for (const auto& [pair, tensors] : transfers(nodes_of_tensors(problem, nodes_of(problem, model.ops)))) {
    effort += static_cast<double>(model.candidates[pair.first].size() * model.candidates[pair.second].size() *
                                  tensors.size()) *
              problem.num_devices();
  }
  return effort;
}

void price(const Problem& problem, const Machine& machine, CostModel& costs, OptcnnModel& model) {
  model.costs = Pricer(problem, machine, costs, model).price();
}

OptcnnResult optcnn(const Problem& problem, const Machine& machine, CostModel& costs, OptcnnModel model) {
  price(problem, machine, costs, model);
  const LeastChoice least = least_choice(model.costs);
  OptcnnResult out{{std::vector<Config>(problem.graph().ops.size())}, least.cost, least.guessed};
  for (size_t n = 0; n < model.ops.size(); ++n)
    out.strategy.configs[model.ops[n].index()] = model.candidates[n][least.choice[n]];
  follow_all(problem, out.strategy);
  return out;
}

}  // namespace ff
