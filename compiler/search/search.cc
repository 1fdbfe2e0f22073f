#include "compiler/search/search.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>

#include "compiler/base/check.h"
#include "compiler/search/baselines.h"
#include "compiler/search/bound.h"
#include "compiler/search/exhaustive.h"
#include "compiler/search/mcmc.h"
#include "compiler/search/optcnn.h"

namespace ff {
namespace {

int64_t limit_of(const Machine& machine, DeviceId device, int64_t memory_limit) {
  int64_t limit = machine.kind_of(device).memory_bytes;
  if (limit <= 0) limit = std::numeric_limits<int64_t>::max();
  return memory_limit > 0 ? std::min(limit, memory_limit) : limit;
}

[[noreturn]] void refuse_memory(const SimulationResult& result, const Machine& machine,
                                int64_t memory_limit) {
  const auto worst = std::max_element(result.peak_bytes.begin(), result.peak_bytes.end());
  const DeviceId device(worst - result.peak_bytes.begin());
  throw UserError("no strategy was found that fits the memory: the smallest peak is " + format_bytes(*worst) +
                      " on device '" + machine.devices()[device.index()].name + "', which may use " +
                      format_bytes(limit_of(machine, device, memory_limit)),
                  "use a smaller --batch, more devices or a larger --memory-limit");
}

struct Start {
  std::string kind;
  Strategy strategy;
  Score score;
};

/// Redistributions that dynamic programming may price for a search that only begins with its strategy.
constexpr double kCheapPricing = 1e5;

/// OptCNN's strategy, if it is asked for or cheap; what it could not decide is said in the notes.
std::optional<Strategy> run_optcnn(const Problem& problem, const Machine& machine, CostModel& costs,
                                   const SearchOptions& options, SearchResult& result) {
  const bool wanted = options.kind == "optcnn";
  const bool walks = options.kind == "mcmc" || options.kind == "exhaustive";
  if (!wanted && !(walks && options.price_all)) return std::nullopt;
  OptcnnModel model = optcnn_candidates(problem, machine, costs, options.space);
  if (!wanted && pricing_effort(problem, model) > kCheapPricing) return std::nullopt;
  OptcnnResult found = optcnn(problem, machine, costs, std::move(model));
  if (wanted && found.guessed > 0) {
    result.notes.push_back("the graph does not reduce to nothing by eliminating nodes and edges: " +
                           std::to_string(found.guessed) +
                           " ops have the config that looked cheapest, the others the best beside them");
  }
  return std::move(found.strategy);
}

/// Every baseline, the given strategy and a random one, best first (the given one before all).
std::vector<Start> starts_of(Simulator& simulator, CostModel& costs, const SearchOptions& options,
                             SearchResult& result) {
  const Problem& problem = simulator.problem();
  const Machine& machine = simulator.machine();
  std::vector<Start> starts;
  const auto add = [&](const std::string& kind, Strategy strategy) {
    const Score score = score_of(simulator.evaluate(strategy), machine, options.memory_limit);
    starts.push_back({kind, std::move(strategy), score});
  };
  const auto add_baseline = [&](const std::string& kind, Strategy strategy) {
    add(kind, std::move(strategy));
    result.baselines.push_back({kind, starts.back().score.cost, starts.back().score.fits()});
  };
  for (const char* kind : {"data-parallel", "model-parallel", "expert"})
    add_baseline(kind, baseline_strategy(kind, problem, machine));
  if (auto strategy = run_optcnn(problem, machine, costs, options, result))
    add_baseline("optcnn", std::move(*strategy));
  Rng rng(counter_random(options.seed, 0, 0));
  add("random", Proposer(problem, machine, options.space).random_strategy(rng));
  std::stable_sort(starts.begin(), starts.end(),
                   [](const Start& a, const Start& b) { return a.score.penalised() < b.score.penalised(); });
  if (options.init) {
    problem.check(*options.init);
    add("init", *options.init);
    std::rotate(starts.begin(), starts.end() - 1, starts.end());
  }
  return starts;
}

std::vector<Strategy> strategies_of(const std::vector<Start>& starts) {
  std::vector<Strategy> strategies;
  strategies.reserve(starts.size());
  for (const Start& start : starts) strategies.push_back(start.strategy);
  return strategies;
}

std::optional<Strategy> run_mcmc(const Problem& problem, const Machine& machine, CostModel& costs,
                                 const SearchOptions& options, const std::vector<Start>& starts,
                                 SearchResult& result, Strategy& leanest) {
  McmcResult found = mcmc(problem, machine, costs, strategies_of(starts), options);
  result.proposals = found.proposals;
  result.accepted = found.accepted;
  result.trace = std::move(found.trace);
  leanest = std::move(found.leanest);
  return std::move(found.best);
}

std::optional<Strategy> run_exhaustive(const Problem& problem, const Machine& machine, CostModel& costs,
                                       const SearchOptions& options, const std::vector<Start>& starts,
                                       SearchResult& result) {
  ExhaustiveResult found = exhaustive(problem, machine, costs, strategies_of(starts), options);
  result.proposals = found.judged;
  result.trace = std::move(found.trace);
  result.lower_bound = found.lower_bound;
  result.bounded = "plan without replicas and sharded updates";
  char number[32] = "more than 1e300";
  if (found.strategies < 1e300) std::snprintf(number, sizeof number, "%.3g", found.strategies);
  if (!found.complete) {
    for (const Start& start : starts) {
      if (!start.score.fits() || (found.best && start.score.cost >= found.cost)) continue;
      found.best = start.strategy;
      found.cost = start.score.cost;
      result.lower_bound.reset();  // of the candidates, which this is not one of
      result.bounded = SearchResult().bounded;
    }
    result.notes.push_back("exhaustive search was stopped: the best so far of " + std::string(number) +
                           " strategies, and how far it may be from the optimum");
  } else if (found.best) {
    result.notes.push_back("no other of " + std::string(number) + " strategies is faster");
  }
  return std::move(found.best);
}

}  // namespace

bool is_bounded(const Problem& problem, const Strategy& strategy, Space space) {
  for (OpId leader : problem.leaders()) {
    const Degrees& degrees = strategy.configs[leader.index()].degrees;
    if (cells_of(degrees) > problem.num_devices()) return false;
    for (size_t d = 0; d < degrees.size(); ++d) {
      if (degrees[d] > 1 && !may_split(problem, leader, d, space)) return false;
    }
  }
  return true;
}

std::optional<double> optimality_gap(const SearchResult& result) {
  if (!result.lower_bound) return std::nullopt;
  return static_cast<double>(result.cost) / static_cast<double>(*result.lower_bound) - 1;
}

std::vector<int64_t> memory_limits(const Machine& machine, int64_t memory_limit) {
  std::vector<int64_t> limits;
  limits.reserve(machine.devices().size());
  for (int d = 0; d < machine.num_devices(); ++d)
    limits.push_back(limit_of(machine, DeviceId(d), memory_limit));
  return limits;
}

Score score_of(const SimulationResult& result, const Machine& machine, int64_t memory_limit) {
  Score score{.cost = result.makespan, .over = 0};
  const std::vector<int64_t> limits = memory_limits(machine, memory_limit);
  for (size_t d = 0; d < result.peak_bytes.size(); ++d)
    score.over =
        std::max(score.over, static_cast<double>(result.peak_bytes[d]) / static_cast<double>(limits[d]) - 1);
  return score;
}

Strategy baseline_strategy(const std::string& kind, const Problem& problem, const Machine& machine) {
  if (kind == "data-parallel") return data_parallel(problem, machine);
  if (kind == "model-parallel") return model_parallel(problem, machine);
  if (kind == "expert") return expert(problem, machine);
  throw UserError("--search " + kind + " is not built in",
                  "use mcmc, data-parallel, model-parallel, expert, optcnn or exhaustive");
}

SearchResult search(const Problem& problem, const Machine& machine, CostModel& costs,
                    const SearchOptions& options) {
  const auto started = std::chrono::steady_clock::now();
  SearchResult result;
  Simulator simulator(problem, machine, costs);
  std::vector<Start> starts = starts_of(simulator, costs, options, result);
  std::optional<Strategy> best;
  Strategy leanest = starts.front().strategy;
  if (options.kind == "mcmc") {
    best = run_mcmc(problem, machine, costs, options, starts, result, leanest);
    // With few chains not every start is a chain's.
    Nanoseconds cost = best ? simulator.evaluate(*best).makespan : 0;
    for (const Start& start : starts) {
      if (!start.score.fits() || (best && start.score.cost >= cost)) continue;
      best = start.strategy;
      cost = start.score.cost;
    }
  } else if (options.kind == "exhaustive") {
    best = run_exhaustive(problem, machine, costs, options, starts, result);
  } else if (options.kind == "optcnn") {
    best = std::find_if(starts.begin(), starts.end(), [](const Start& s) {
             return s.kind == "optcnn";
           })->strategy;
  } else {
    best = baseline_strategy(options.kind, problem, machine);
  }
  result.best = best ? std::move(*best) : std::move(leanest);
  problem.check(result.best);
  result.simulation = simulator.evaluate(result.best);
  result.cost = result.simulation.makespan;
  if (!best) result.lower_bound.reset();  // of strategies that `result.best` may not be one of
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  if (!score_of(result.simulation, machine, options.memory_limit).fits())
    refuse_memory(result.simulation, machine, options.memory_limit);
  if (options.price_all && !result.lower_bound && is_bounded(problem, result.best, options.space))
    result.lower_bound = LowerBound(problem, machine, costs, options.space).value();
  return result;
}

}  // namespace ff
