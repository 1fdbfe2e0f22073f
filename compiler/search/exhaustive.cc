#include "compiler/search/exhaustive.h"

#include <algorithm>

#include "compiler/base/check.h"
#include "compiler/search/baselines.h"

namespace ff {
namespace {

constexpr double kMostStrategies = 5e6;
constexpr size_t kMostConfigs = 5000;

/// Every way to choose and order `count` of `all` devices.
void arrangements(int all, size_t count, std::vector<DeviceId>& chosen, const std::function<void()>& visit) {
  if (chosen.size() == count) return visit();
  for (int d = 0; d < all; ++d) {
    if (std::find(chosen.begin(), chosen.end(), DeviceId(d)) != chosen.end()) continue;
    chosen.emplace_back(d);
    arrangements(all, count, chosen, visit);
    chosen.pop_back();
  }
}

}  // namespace

std::vector<Config> all_configs(const Problem& problem, OpId leader, Space space, size_t limit) {
  const size_t dims = problem.space(leader).dims.size();
  const int all = problem.num_devices();
  std::vector<Config> configs;
  Config config = whole_on(problem, leader, {DeviceId(0)});
  const std::function<void(size_t)> split = [&](size_t dim) {
    if (dim == dims) {
      std::vector<DeviceId> chosen;
      arrangements(all, static_cast<size_t>(config.num_cells()), chosen, [&] {
        configs.push_back({config.degrees, 1, chosen});
        if (configs.size() <= limit) return;
        throw UserError("op '" + problem.graph().op(leader).name + "' has more than " +
                            std::to_string(limit) + " configs: too many for --search exhaustive",
                        "use --search mcmc");
      });
      return;
    }
    const int64_t so_far = config.num_cells();
    for (int32_t degree = 1; so_far * degree <= all; ++degree) {
      if (all % (so_far * degree) != 0) continue;
      if (degree > 1 && (!may_split(problem, leader, dim, space) || degree > problem.max_degree(leader, dim)))
        break;
      config.degrees[dim] = degree;
      split(dim + 1);
    }
    config.degrees[dim] = 1;
  };
  split(0);
  return configs;
}

std::optional<Strategy> exhaustive(Simulator& simulator, const SearchOptions& options, int64_t& evaluated) {
  const Problem& problem = simulator.problem();
  std::vector<OpId> ops;
  std::vector<std::vector<Config>> choices;
  double strategies = 1;
  for (OpId op : problem.leaders()) {
    if (is_update(problem, op)) continue;
    ops.push_back(op);
    choices.push_back(all_configs(problem, op, options.space, kMostConfigs));
    strategies *= static_cast<double>(choices.back().size());
  }
  if (strategies > kMostStrategies) {
    throw UserError("there are more than 5 million strategies: too many for --search exhaustive",
                    "use --search mcmc, or fewer devices");
  }
  std::optional<Strategy> best;
  Nanoseconds best_cost = 0;
  Strategy strategy{std::vector<Config>(problem.graph().ops.size())};
  const std::function<void(size_t)> choose = [&](size_t i) {
    if (options.stop != nullptr && options.stop->load(std::memory_order_relaxed)) return;
    if (i == ops.size()) {
      follow_all(problem, strategy);
      ++evaluated;
      const Score score = score_of(simulator.evaluate(strategy), simulator.machine(), options.memory_limit);
      if (!score.fits() || (best && score.cost >= best_cost)) return;
      best = strategy;
      best_cost = score.cost;
      return;
    }
    for (const Config& config : choices[i]) {
      strategy.configs[ops[i].index()] = config;
      choose(i + 1);
    }
  };
  choose(0);
  return best;
}

}  // namespace ff
