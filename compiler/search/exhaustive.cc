#include "compiler/search/exhaustive.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "compiler/base/check.h"
#include "compiler/search/baselines.h"
#include "compiler/search/bound.h"
#include "compiler/simulator/delta.h"

namespace ff {
namespace {

constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();
constexpr size_t kAtOnce = 1024;  // configs of an op that are bounded and sorted together

struct Child {
  Nanoseconds bound;
  Config config;
};

class Walk {
 public:
  Walk(const Problem& problem, const Machine& machine, CostModel& costs, const SearchOptions& options)
      : problem_(problem),
        options_(options),
        limits_(memory_limits(machine, options.memory_limit)),
        bound_(problem, machine, costs, options.space),
        simulator_(problem, machine, costs),
        strategy_{std::vector<Config>(problem.graph().ops.size())} {
    updates_.resize(problem.graph().ops.size());
    for (OpId op : problem.leaders()) {
      if (!is_update(problem, op)) {
        ops_.push_back(op);
      } else if (const OpId reader = weight_reader(problem, op); reader.valid()) {
        updates_[reader.index()].push_back(op);
      } else {
        set(op, follow_readers(problem, strategy_, op));
      }
    }
  }

  ExhaustiveResult run(std::span<const Strategy> starts) {
    out_.strategies = 1;
    for (OpId op : ops_) out_.strategies *= ConfigStream(problem_, op, options_.space).count();
    for (const Strategy& start : starts) {
      if (is_candidate(start)) judge(start);
    }
    const Nanoseconds least = bound_.value();
    if (ops_.empty()) judge(strategy_);
    if (!ops_.empty() && least < limit()) go_into(0, least);
    out_.complete = open_ == kNever;
    out_.lower_bound = std::max(least, std::min(open_, out_.best ? out_.cost : kNever));
    if (out_.best) out_.lower_bound = std::min(out_.lower_bound, out_.cost);
    return std::move(out_);
  }

 private:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  }
  bool stopped() const {
    return (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed)) ||
           (options_.proposals >= 0 && out_.judged >= options_.proposals) ||
           (options_.budget_seconds >= 0 && seconds() >= options_.budget_seconds);
  }
  /// What a strategy must be below.
  Nanoseconds limit() const { return out_.best ? out_.cost : kNever; }
  void leave_open(Nanoseconds bound) {
    if (bound < limit()) open_ = std::min(open_, bound);
  }

  bool is_candidate(const Strategy& strategy) const {
    return std::all_of(problem_.leaders().begin(), problem_.leaders().end(), [&](OpId op) {
      const Config& config = strategy.configs[op.index()];
      return is_update(problem_, op) ? config == follow_readers(problem_, strategy, op)
                                     : is_streamed(problem_, op, options_.space, config);
    });
  }

  void set(OpId leader, Config config) {
    bound_.set(leader, config);
    strategy_.configs[leader.index()] = std::move(config);
  }
  void set_with_updates(OpId leader, const Config& config) {
    set(leader, config);
    for (OpId update : updates_[leader.index()]) set(update, follow_readers(problem_, strategy_, update));
  }
  void clear_with_updates(OpId leader) {
    bound_.clear(leader);
    strategy_.configs[leader.index()] = {};
    for (OpId update : updates_[leader.index()]) {
      bound_.clear(update);
      strategy_.configs[update.index()] = {};
    }
  }

  /// All ways to go on from what is set, of which none is faster than `bound`.
  void go_into(size_t depth, Nanoseconds bound) {
    const OpId op = ops_[depth];
    ConfigStream stream(problem_, op, options_.space);
    for (bool more = true; more;) {
      std::vector<Child> children;
      Config config;
      while (children.size() < kAtOnce && (more = stream.next(config))) {
        if (stopped()) return leave_open(bound);
        set_with_updates(op, config);
        ++out_.judged;
        if (const Nanoseconds least = std::max(bound, bound_.value()); least < limit())
          children.push_back({least, config});
      }
      clear_with_updates(op);
      std::stable_sort(children.begin(), children.end(),
                       [](const Child& a, const Child& b) { return a.bound < b.bound; });
      for (const Child& child : children) {
        if (child.bound >= limit()) break;
        if (stopped()) return leave_open(more ? bound : child.bound);
        set_with_updates(op, child.config);
        if (depth + 1 < ops_.size()) {
          go_into(depth + 1, child.bound);
        } else {
          judge(strategy_);
        }
        clear_with_updates(op);
      }
      if (stopped() && more) return leave_open(bound);
    }
  }

  /// Simulates a whole strategy and keeps it if it is better than the best.
  void judge(const Strategy& strategy) {
    ++out_.judged;
    if (!simulated_) {
      simulated_ = strategy;
      simulator_.reset(strategy);
    } else {
      std::vector<OpId> changed;
      for (OpId op : problem_.leaders()) {
        if (simulated_->configs[op.index()] != strategy.configs[op.index()]) changed.push_back(op);
      }
      if (!simulator_.propose(strategy, changed, limit() - 1)) return;
      simulator_.accept();
      simulated_ = strategy;
    }
    if (simulator_.overrun(limits_) > 0 || simulator_.makespan() >= limit()) return;
    out_.best = strategy;
    out_.cost = simulator_.makespan();
    out_.trace.push_back({out_.judged, out_.cost});
    if (options_.progress) options_.progress({out_.judged, seconds(), out_.cost});
  }

  const Problem& problem_;
  const SearchOptions& options_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::vector<int64_t> limits_;  // of memory, by device
  LowerBound bound_;
  DeltaSimulator simulator_;
  std::optional<Strategy> simulated_;  // where simulator_ stands
  Strategy strategy_;                  // what is set
  std::vector<OpId> ops_;
  std::vector<std::vector<OpId>> updates_;  // by op: of the weights that it reads first
  Nanoseconds open_ = kNever;               // the least bound of what was not gone into
  ExhaustiveResult out_;
};

}  // namespace

std::vector<Config> all_configs(const Problem& problem, OpId leader, Space space, size_t limit) {
  ConfigStream stream(problem, leader, space);
  if (stream.count() > static_cast<double>(limit)) {
    throw UserError("op '" + problem.graph().op(leader).name + "' has more than " + std::to_string(limit) +
                        " configs: too many to list",
                    "use fewer devices");
  }
  std::vector<Config> configs;
  for (Config config; stream.next(config);) configs.push_back(config);
  return configs;
}

ExhaustiveResult exhaustive(const Problem& problem, const Machine& machine, CostModel& costs,
                            std::span<const Strategy> starts, const SearchOptions& options) {
  return Walk(problem, machine, costs, options).run(starts);
}

}  // namespace ff
