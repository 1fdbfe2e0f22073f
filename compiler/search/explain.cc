#include "compiler/search/explain.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>

#include "compiler/base/check.h"
#include "compiler/base/spelling.h"
#include "compiler/search/baselines.h"
#include "compiler/simulator/delta.h"

namespace ff {
namespace {

constexpr size_t kShown = 12;

/// Collects configs, each once.
class Collector {
 public:
  Collector(const Problem& problem, const Machine& machine, OpId leader, Space space, const Config& present)
      : problem_(problem), all_(machine.num_devices()), leader_(leader), space_(space) {
    lists_.push_back(all_devices(all_));
    known_.insert(key_of(present));
  }

  /// Devices that splits may be placed on, in this order.
  void use(const std::vector<DeviceId>& devices) {
    std::vector<DeviceId> once;
    for (DeviceId d : devices) {
      if (std::find(once.begin(), once.end(), d) == once.end()) once.push_back(d);
    }
    if (std::find(lists_.begin(), lists_.end(), once) == lists_.end()) lists_.push_back(std::move(once));
  }

  void add(Config config) {
    if (known_.insert(key_of(config)).second) out_.push_back(std::move(config));
  }

  /// Degrees of the dimensions from `dim` on, beside those of `config`.
  void split(size_t dim, Config& config) {
    if (dim == config.degrees.size()) return place(config);
    const int64_t so_far = config.num_cells();
    const int64_t most = may_split(problem_, leader_, dim, space_) ? problem_.max_degree(leader_, dim) : 1;
    for (int32_t degree = 1; degree <= most && so_far * degree <= all_; ++degree) {
      if (all_ % (so_far * degree) != 0) continue;
      config.degrees[dim] = degree;
      split(dim + 1, config);
    }
    config.degrees[dim] = 1;
  }

  std::vector<Config> take() { return std::move(out_); }

 private:
  using Key = std::pair<std::vector<int32_t>, std::vector<DeviceId>>;
  // Replicas are what is left of the number of devices.
  static Key key_of(const Config& config) { return {config.degrees, config.devices}; }

  void place(const Config& config) {
    const auto cells = static_cast<size_t>(config.num_cells());
    for (const auto& list : lists_) {
      if (list.size() < cells) continue;
      Config placed = config;
      placed.devices.assign(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(cells));
      add(std::move(placed));
    }
  }

  const Problem& problem_;
  int all_;
  OpId leader_;
  Space space_;
  std::vector<std::vector<DeviceId>> lists_;
  std::set<Key> known_;
  std::vector<Config> out_;
};

/// How long the busiest resource is held that is no device's compute.
Nanoseconds busiest_link(const TaskGraph& graph, int devices) {
  std::vector<Nanoseconds> held(static_cast<size_t>(graph.num_resources), 0);
  for (size_t t = 0; t < graph.tasks.size(); ++t) {
    for (int32_t r : graph.resources[t]) held[static_cast<size_t>(r)] += graph.tasks[t].duration;
  }
  return *std::max_element(held.begin() + devices, held.end());
}

Config data_parallel_config(const Problem& problem, const Machine& machine, OpId leader) {
  return baseline_strategy("data-parallel", problem, machine).configs[leader.index()];
}

}  // namespace

OpId find_op(const std::string& name, const Problem& problem) {
  const Graph& graph = problem.graph();
  std::vector<std::string> names;
  for (OpId leader : problem.leaders()) {
    names.push_back(graph.op(leader).name);
    if (names.back() == name) return leader;
  }
  for (const Op& op : graph.ops) {
    if (op.name != name) continue;
    const std::string& leader = graph.op(op.config_of).name;
    throw UserError("--explain " + name + ": it is split as '" + leader + "' is", "give --explain " + leader);
  }
  std::string near;
  for (const std::string& one : nearest_few(name, names, 3)) near += (near.empty() ? "'" : ", '") + one + "'";
  throw UserError("--explain " + name + ": no such op; close are " + near,
                  "ffplan-dump PLAN.soap and --emit strategy list the ops");
}

std::vector<Config> other_configs(const Problem& problem, const Machine& machine, const Strategy& strategy,
                                  OpId leader, Space space) {
  const Config& present = strategy.configs[leader.index()];
  Collector collector(problem, machine, leader, space, present);
  std::vector<OpId> near = neighbours(problem, leader);
  if (is_update(problem, leader)) {
    collector.add(follow_readers(problem, strategy, leader));
    if (space == Space::soap) return collector.take();  // which knows no other updates
    if (const OpId reader = weight_reader(problem, leader); reader.valid()) near.push_back(reader);
  }
  collector.use(present.devices);
  for (OpId op : near) collector.use(strategy.configs[op.index()].devices);
  for (OpId op : near) {
    if (auto config = follow_neighbour(problem, strategy, op, leader, space))
      collector.add(std::move(*config));
  }
  collector.add(whole_on(problem, leader, {present.devices.front()}));
  if (space == Space::full) collector.add(whole_on(problem, leader, all_devices(machine.num_devices())));
  collector.add(data_parallel_config(problem, machine, leader));
  Config config = whole_on(problem, leader, {present.devices.front()});
  collector.split(0, config);
  return collector.take();
}

Explainer::Explainer(const Problem& problem, const Machine& machine, CostModel& costs,
                     const SearchOptions& options)
    : problem_(problem),
      machine_(machine),
      costs_(costs),
      options_(options),
      simulator_(problem, machine, costs),
      proposer_(problem, machine, options.space) {}

Alternative Explainer::evaluated(const Strategy& strategy, OpId leader, const Config& config) {
  Strategy changed = strategy;
  if (config != strategy.configs[leader.index()]) {
    StrategyEdit edit(changed);
    proposer_.set(edit, leader, config);
  }
  const TaskGraph graph = simulator_.build(changed);
  const SimulationResult r = simulator_.evaluate(graph, simulate(graph));
  Alternative out{.config = config, .outcome = {}, .fits = true, .whole = false, .data_parallel = false};
  out.outcome = {.step = r.makespan,
                 .compute = *std::max_element(r.busy.begin(), r.busy.end()),
                 .link = busiest_link(graph, machine_.num_devices()),
                 .sent_bytes = r.bytes_moved,
                 .memory_bytes = *std::max_element(r.peak_bytes.begin(), r.peak_bytes.end())};
  out.fits = score_of(r, machine_, options_.memory_limit).fits();
  out.whole = config.num_cells() == 1;
  out.data_parallel = config == data_parallel_config(problem_, machine_, leader);
  return out;
}

std::vector<Config> Explainer::fastest(const Strategy& strategy, OpId leader,
                                       const std::vector<Config>& configs, int64_t& misfits) {
  const auto started = std::chrono::steady_clock::now();
  const std::vector<int64_t> limits = memory_limits(machine_, options_.memory_limit);
  DeltaSimulator simulator(problem_, machine_, costs_);
  simulator.reset(strategy);
  std::vector<std::pair<Nanoseconds, const Config*>> best;
  std::vector<Nanoseconds> misfit_steps;
  Strategy next = strategy;
  SearchProgress progress;
  for (const Config& config : configs) {
    StrategyEdit edit(next);
    proposer_.set(edit, leader, config);
    const Nanoseconds limit =
        best.size() < kShown ? std::numeric_limits<Nanoseconds>::max() : best.back().first;
    if (simulator.propose(next, edit.leaders(), limit)) {
      if (simulator.overrun(limits) > 0) {
        misfit_steps.push_back(simulator.makespan());
      } else {
        const auto after =
            std::upper_bound(best.begin(), best.end(), simulator.makespan(),
                             [](Nanoseconds step, const auto& one) { return step < one.first; });
        best.emplace(after, simulator.makespan(), &config);
        if (best.size() > kShown) best.pop_back();
      }
      simulator.reject();
    }
    edit.undo();
    progress.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    ++progress.proposals;
    if (!best.empty()) progress.best = best.front().first;
    if (options_.progress) options_.progress(progress);
  }
  misfits = std::count_if(misfit_steps.begin(), misfit_steps.end(), [&](Nanoseconds step) {
    return best.size() < kShown || step <= best.back().first;
  });
  std::vector<Config> out;
  out.reserve(best.size());
  for (const auto& [step, config] : best) out.push_back(*config);
  return out;
}

Explanation Explainer::explain(const Strategy& strategy, OpId leader) {
  const Config& present = strategy.configs[leader.index()];
  Explanation out{.op = leader, .chosen = evaluated(strategy, leader, present), .others = {}};
  std::vector<Config> configs = other_configs(problem_, machine_, strategy, leader, options_.space);
  out.tried = static_cast<int64_t>(configs.size());
  const Config whole = whole_on(problem_, leader, {present.devices.front()});
  const Config data = data_parallel_config(problem_, machine_, leader);
  const auto rest = std::stable_partition(configs.begin(), configs.end(),
                                          [&](const Config& c) { return c == whole || c == data; });
  // Many devices first: what is fast is found early, and the rest is given up early.
  std::stable_sort(rest, configs.end(),
                   [](const Config& a, const Config& b) { return a.devices.size() > b.devices.size(); });
  for (auto named = configs.begin(); named != rest; ++named)
    out.others.push_back(evaluated(strategy, leader, *named));
  for (const Config& config : fastest(strategy, leader, {rest, configs.end()}, out.misfits))
    out.others.push_back(evaluated(strategy, leader, config));
  std::stable_sort(out.others.begin(), out.others.end(), [](const Alternative& a, const Alternative& b) {
    return a.outcome.step < b.outcome.step;
  });
  return out;
}

}  // namespace ff
