#include "compiler/search/mcmc.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <memory>
#include <thread>

#include "compiler/base/check.h"

namespace ff {
namespace {

constexpr int64_t kRound = 32;  // proposals of a chain between two meetings
constexpr double kFirstBeta = 30, kLastBeta = 1000;
constexpr int kRoundsBetweenJumps = 8;
constexpr double kFarBehind = 1.25;

/// Runs body(0) ... body(count - 1) on threads; rethrows the error of the lowest index.
void parallel(size_t count, int threads, const std::function<void(size_t)>& body) {
  std::vector<std::exception_ptr> errors(count);
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        body(i);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  if (threads <= 0) threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  std::vector<std::thread> pool;
  for (size_t t = 1; t < std::min(count, static_cast<size_t>(threads)); ++t) pool.emplace_back(work);
  work();
  for (std::thread& thread : pool) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

/// A search without a limit ends after so many proposals an op, though there may be a thousandth to gain.
constexpr int64_t kMostAnOp = 500;

class Walks {
 public:
  Walks(const Problem& problem, const Machine& machine, CostModel& costs, const std::vector<Strategy>& starts,
        const SearchOptions& options)
      : options_(options),
        leaders_(static_cast<int64_t>(problem.leaders().size())),
        patience_(50 * leaders_) {
    chains_.resize(static_cast<size_t>(std::max(1, options.chains)));
    parallel(chains_.size(), options.threads, [&](size_t i) {
      chains_[i] = std::make_unique<Chain>(problem, machine, costs, options, starts[i % starts.size()],
                                           counter_random(options.seed, 1, i));
    });
    meet();
  }

  void run() {
    for (int round = 1; !done(); ++round) {
      const double beta = kFirstBeta * std::pow(kLastBeta / kFirstBeta, progress());
      const auto counts = shares();
      parallel(chains_.size(), options_.threads,
               [&](size_t i) { chains_[i]->run(counts[i], beta, [this] { return interrupted(); }); });
      meet();
      if (round % kRoundsBetweenJumps == 0) catch_up();
      if (options_.progress) options_.progress({proposals_, seconds(), best_ ? best_->best_cost() : 0});
    }
  }

  McmcResult result() const {
    McmcResult r;
    const auto leanest = std::min_element(chains_.begin(), chains_.end(), [](const auto& a, const auto& b) {
      return a->least_over() < b->least_over();
    });
    r.leanest = (*leanest)->leanest();
    if (best_ != nullptr) r.best = best_->best();
    r.proposals = proposals_;
    for (const auto& chain : chains_) r.accepted += chain->accepted();
    r.trace = trace_;
    return r;
  }

 private:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  }
  bool interrupted() const {
    return (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed)) ||
           (options_.budget_seconds >= 0 && seconds() >= options_.budget_seconds);
  }
  bool done() const {
    if (interrupted()) return true;
    if (options_.proposals >= 0) return proposals_ >= options_.proposals;
    if (options_.budget_seconds >= 0) return false;
    return proposals_ >= kMostAnOp * leaders_ || (proposals_ >= patience_ && proposals_ >= 2 * improved_at_);
  }
  /// How far the search is, for the temperature.
  double progress() const {
    double done = 0;
    if (options_.proposals > 0) {
      done = static_cast<double>(proposals_) / static_cast<double>(options_.proposals);
    } else if (options_.budget_seconds > 0) {
      done = seconds() / options_.budget_seconds;
    } else {
      done = static_cast<double>(proposals_) /
             static_cast<double>(std::max<int64_t>({1, patience_, 2 * improved_at_}));
    }
    return std::min(1.0, done);
  }
  /// Proposals of each chain in this round; the last round shares out the rest.
  std::vector<int64_t> shares() const {
    const auto n = static_cast<int64_t>(chains_.size());
    int64_t total = kRound * n;
    if (options_.proposals >= 0) total = std::min(total, options_.proposals - proposals_);
    std::vector<int64_t> counts;
    for (int64_t i = 0; i < n; ++i) counts.push_back((i + 1) * total / n - i * total / n);
    return counts;
  }
  /// Looks at what the chains found, in their order.
  void meet() {
    proposals_ = 0;
    for (const auto& chain : chains_) proposals_ += chain->proposals();
    Nanoseconds before = best_ != nullptr ? best_cost_ : -1;
    for (const auto& chain : chains_) {
      if (!chain->best() || (best_ != nullptr && chain->best_cost() >= best_cost_)) continue;
      best_ = chain.get();
      best_cost_ = chain->best_cost();
    }
    if (best_ != nullptr && best_cost_ != before) {
      // A gain below one part in a thousand is no reason to go on.
      if (before < 0 || static_cast<double>(best_cost_) < 0.999 * static_cast<double>(stop_cost_)) {
        improved_at_ = proposals_;
        stop_cost_ = best_cost_;
      }
      trace_.push_back({proposals_, best_cost_});
    }
  }
  /// A chain that is far behind walks on from the best.
  void catch_up() {
    if (best_ == nullptr) return;
    for (const auto& chain : chains_) {
      if (chain->current_score().penalised() > kFarBehind * static_cast<double>(best_cost_))
        chain->jump(*best_->best());
    }
  }

  const SearchOptions& options_;
  int64_t leaders_, patience_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::vector<std::unique_ptr<Chain>> chains_;
  const Chain* best_ = nullptr;
  Nanoseconds best_cost_ = 0, stop_cost_ = 0;
  int64_t proposals_ = 0, improved_at_ = 0;
  std::vector<TracePoint> trace_;
};

}  // namespace

double acceptance_threshold(double current, double u, double beta) {
  // u <= exp(-beta * (new - current) / current), solved for new; 1 - u lies in (0, 1].
  return current * (1 - std::log(1 - u) / beta);
}

Chain::Chain(const Problem& problem, const Machine& machine, CostModel& costs, const SearchOptions& options,
             Strategy start, uint64_t seed)
    : options_(options),
      limits_(memory_limits(machine, options.memory_limit)),
      simulator_(problem, machine, costs),
      proposer_(problem, machine, options.space),
      rng_(seed),
      current_(std::move(start)),
      leanest_(current_) {
  jump(current_);
  least_over_ = current_score_.over;
  keep();
}

Score Chain::score() { return {simulator_.makespan(), simulator_.overrun(limits_)}; }

/// Remembers the current strategy if it is better than all before.
void Chain::keep() {
  if (current_score_.over < least_over_) {
    least_over_ = current_score_.over;
    leanest_ = current_;
  }
  if (!current_score_.fits() || (best_ && current_score_.cost >= best_cost_)) return;
  best_ = current_;
  best_cost_ = current_score_.cost;
  best_at_ = proposals_;
}

void Chain::run(int64_t proposals, double beta, const std::function<bool()>& stopped) {
  for (int64_t i = 0; i < proposals && !stopped(); ++i) {
    ++proposals_;
    const double threshold = acceptance_threshold(current_score_.penalised(), rng_.uniform(), beta);
    StrategyEdit edit(current_);
    proposer_.propose(edit, rng_);
    // What takes longer than the threshold is rejected, whatever its memory.
    const auto limit = static_cast<Nanoseconds>(std::min(threshold, 9e18));
    if (!edit.changed() || !simulator_.propose(current_, edit.leaders(), limit)) {
      edit.undo();
      continue;
    }
    const Score proposed = score();
    if (proposed.penalised() > threshold) {
      simulator_.reject();
      edit.undo();
      continue;
    }
    simulator_.accept();
    ++accepted_;
    current_score_ = proposed;
    keep();
  }
}

void Chain::jump(const Strategy& strategy) {
  current_ = strategy;
  simulator_.reset(current_);
  current_score_ = score();
}

McmcResult mcmc(const Problem& problem, const Machine& machine, CostModel& costs,
                const std::vector<Strategy>& starts, const SearchOptions& options) {
  FF_CHECK(!starts.empty());
  Walks walks(problem, machine, costs, starts, options);
  walks.run();
  return walks.result();
}

}  // namespace ff
