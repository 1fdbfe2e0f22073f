#include "compiler/search/candidate.h"

#include <algorithm>
#include <map>

#include "compiler/search/baselines.h"

namespace ff {
namespace {

std::vector<int> prime_factors(int n) {
  std::vector<int> factors;
  for (int p = 2; p * p <= n; ++p) {
    for (; n % p == 0; n /= p) factors.push_back(p);
  }
  if (n > 1) factors.push_back(n);
  return factors;
}

template <typename T>
const T& pick(const std::vector<T>& from, Rng& rng) {
  return from[static_cast<size_t>(rng.below(static_cast<int64_t>(from.size())))];
}

template <typename T>
void shuffle(std::vector<T>& items, Rng& rng) {
  for (size_t i = items.size(); i > 1; --i)
    std::swap(items[i - 1], items[static_cast<size_t>(rng.below(static_cast<int64_t>(i)))]);
}

/// Gives the cells of `degrees` these devices, the dimensions varying in a random order instead of the last
/// fastest: which of two split dimensions stays inside a node.
std::vector<DeviceId> transposed(const std::vector<int32_t>& degrees, int32_t replicas,
                                 const std::vector<DeviceId>& devices, Rng& rng) {
  std::vector<int32_t> sizes = degrees;
  sizes.push_back(replicas);
  std::vector<size_t> order(sizes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  shuffle(order, rng);
  std::vector<int64_t> stride(sizes.size());
  int64_t next = 1;
  for (size_t i : order) {
    stride[i] = next;
    next *= sizes[i];
  }
  std::vector<DeviceId> out;
  for (int64_t cell = 0; cell < next; ++cell) {
    int64_t rest = cell, at = 0;
    for (size_t d = sizes.size(); d-- > 0;) {
      at += rest % sizes[d] * stride[d];
      rest /= sizes[d];
    }
    out.push_back(devices[static_cast<size_t>(at)]);
  }
  return out;
}

/// Turns the replicas of every cell so that this device, if it has one, is the first of its own.
void serve_from(DeviceId device, Config& config) {
  const auto at = std::find(config.devices.begin(), config.devices.end(), device);
  if (at == config.devices.end() || config.replicas < 2) return;
  const auto turn = (at - config.devices.begin()) % config.replicas;
  for (auto group = config.devices.begin(); group != config.devices.end(); group += config.replicas)
    std::rotate(group, group + turn, group + config.replicas);
}

}  // namespace

void StrategyEdit::set(OpId leader, Config config) {
  Config& now = strategy_.configs[leader.index()];
  if (std::find(leaders_.begin(), leaders_.end(), leader) == leaders_.end()) {
    leaders_.push_back(leader);
    before_.push_back(std::move(now));
  }
  now = std::move(config);
}

void StrategyEdit::undo() {
  for (size_t i = 0; i < leaders_.size(); ++i) strategy_.configs[leaders_[i].index()] = std::move(before_[i]);
  leaders_.clear();
  before_.clear();
}

bool StrategyEdit::changed() const {
  for (size_t i = 0; i < leaders_.size(); ++i) {
    if (strategy_.configs[leaders_[i].index()] != before_[i]) return true;
  }
  return false;
}

Proposer::Proposer(const Problem& problem, const Machine& machine, Space space)
    : problem_(problem),
      machine_(machine),
      space_(space),
      servers_(machine.refinements().synchronization == Synchronization::kServer) {
  const Graph& graph = problem.graph();
  const size_t n = graph.ops.size();
  neighbours_.resize(n);
  updates_of_.resize(n);
  twins_.resize(n);
  splittable_.resize(n);
  for (int d = 1; d <= machine.num_devices(); ++d) {
    if (machine.num_devices() % d == 0) divisors_.push_back(d);
  }
  std::map<std::pair<std::string, std::vector<int64_t>>, std::vector<OpId>> shapes;
  for (OpId op : problem.leaders()) {
    std::vector<int64_t> extents;
    const auto& dims = problem.space(op).dims;
    for (size_t d = 0; d < dims.size(); ++d) {
      extents.push_back(dims[d].extent);
      if (may_split(problem, op, d, space)) splittable_[op.index()].push_back(d);
    }
    if (is_update(problem, op)) {
      updates_.push_back(op);
      if (const OpId reader = weight_reader(problem, op); reader.valid())
        updates_of_[reader.index()].push_back(op);
      continue;
    }
    movable_.push_back(op);
    neighbours_[op.index()] = neighbours(problem, op);
    shapes[{graph.op(op).type, std::move(extents)}].push_back(op);
  }
  for (const auto& [shape, ops] : shapes) {
    for (OpId op : ops) twins_[op.index()] = ops;
  }
}

int Proposer::random_divisor(Rng& rng) const {
  // All devices half of the time: most good configs use many.
  return rng.below(2) == 0 ? divisors_.back() : pick(divisors_, rng);
}

std::vector<DeviceId> Proposer::neighbour_devices(int count, OpId leader, const Strategy& strategy,
                                                  Rng& rng) const {
  const auto& near = neighbours_[leader.index()];
  if (near.empty()) return {};
  std::vector<DeviceId> devices = strategy.configs[pick(near, rng).index()].devices;
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  if (static_cast<int>(devices.size()) < count) return {};
  const auto stride = devices.size() / static_cast<size_t>(count);
  const size_t step = rng.below(2) == 0 ? 1 : stride;
  std::vector<DeviceId> out;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) out.push_back(devices[i * step]);
  return out;
}

std::vector<DeviceId> Proposer::place(int count, OpId leader, const Strategy& strategy, Rng& rng) const {
  const int all = machine_.num_devices();
  const int64_t kind = rng.below(100);
  if (kind < 25) {
    if (auto devices = neighbour_devices(count, leader, strategy, rng); !devices.empty()) return devices;
  }
  std::vector<DeviceId> devices = all_devices(all);
  const int blocks = all / count;
  const int which = static_cast<int>(rng.below(blocks));
  if (kind < 75) {  // consecutive, aligned: a node or a part of one where sizes allow
    return {devices.begin() + which * count, devices.begin() + (which + 1) * count};
  }
  if (kind < 90) {  // one of every so many: the same device of several nodes
    std::vector<DeviceId> out;
    out.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) out.push_back(devices[static_cast<size_t>(i * blocks + which)]);
    return out;
  }
  shuffle(devices, rng);
  devices.resize(static_cast<size_t>(count));
  return devices;
}

Config Proposer::random_config(OpId leader, const Strategy& strategy, Rng& rng) const {
  const auto& dims = splittable_[leader.index()];
  Config config = whole_on(problem_, leader, {DeviceId(0)});
  for (int factor : prime_factors(random_divisor(rng))) {
    if (space_ == Space::full && rng.below(12) == 0) {
      config.replicas *= factor;
      continue;
    }
    if (dims.empty()) continue;
    // Mostly the dimension that is split already: few dimensions, split far.
    size_t dim = pick(dims, rng);
    if (rng.below(2) == 0) {
      for (size_t d : dims) {
        if (config.degrees[d] > 1) dim = d;
      }
    }
    if (config.degrees[dim] * factor <= problem_.max_degree(leader, dim)) config.degrees[dim] *= factor;
  }
  config.devices = place(static_cast<int>(config.num_cells()), leader, strategy, rng);
  if (rng.below(4) == 0) config.devices = transposed(config.degrees, config.replicas, config.devices, rng);
  return config;
}

Config Proposer::preset(OpId leader, Rng& rng) const {
  const int all = machine_.num_devices();
  const int count = random_divisor(rng);
  const int first = static_cast<int>(rng.below(all / count)) * count;
  std::vector<DeviceId> devices;
  devices.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) devices.emplace_back(first + i);
  int dim = widest_dim(problem_, leader, rng.below(2) == 0 ? Role::sample : Role::parameter);
  if (dim < 0) dim = widest_dim(problem_, leader, Role::sample);
  return dim < 0 ? whole_on(problem_, leader, {devices[0]}) : split_over(problem_, leader, dim, devices);
}

Config Proposer::nudged(OpId leader, const Strategy& strategy, Rng& rng) const {
  Config config = strategy.configs[leader.index()];
  const auto& dims = splittable_[leader.index()];
  if (dims.empty()) return moved(leader, strategy, rng);
  // Take a factor from one dimension or from nowhere, and give it to another or to nobody.
  const auto factors = prime_factors(machine_.num_devices());
  const int factor = factors.empty() ? 1 : pick(factors, rng);
  const size_t from = pick(dims, rng), to = pick(dims, rng);
  const int64_t kind = rng.below(3);
  if (kind != 0 && config.degrees[from] % factor == 0) config.degrees[from] /= factor;
  if (kind != 1 && config.degrees[to] * factor <= problem_.max_degree(leader, to))
    config.degrees[to] *= factor;
  const int64_t cells = config.num_cells();
  if (cells > machine_.num_devices()) return strategy.configs[leader.index()];
  if (cells != static_cast<int64_t>(config.devices.size())) {
    if (cells < static_cast<int64_t>(config.devices.size())) {
      config.devices.resize(static_cast<size_t>(cells));
    } else if (machine_.num_devices() % cells == 0) {
      config.devices = place(static_cast<int>(cells), leader, strategy, rng);
    } else {
      return strategy.configs[leader.index()];
    }
  }
  return config;
}

Config Proposer::moved(OpId leader, const Strategy& strategy, Rng& rng) const {
  Config config = strategy.configs[leader.index()];
  const auto cells = static_cast<int>(config.devices.size());
  if (cells <= machine_.num_devices()) config.devices = place(cells, leader, strategy, rng);
  if (rng.below(2) == 0) config.devices = transposed(config.degrees, config.replicas, config.devices, rng);
  return config;
}

std::optional<Config> Proposer::copied(OpId leader, const Strategy& strategy, Rng& rng) const {
  const auto& near = neighbours_[leader.index()];
  if (near.empty()) return std::nullopt;
  return follow_neighbour(problem_, strategy, pick(near, rng), leader, space_);
}

void Proposer::set(StrategyEdit& edit, OpId leader, Config config) const {
  const Strategy& strategy = edit.strategy();
  // The dimension that each update is sharded by; kFollows: it follows.
  constexpr size_t kFollows = static_cast<size_t>(-1);
  std::vector<size_t> sharding;
  for (OpId update : updates_of_[leader.index()]) {
    const Config& now = strategy.configs[update.index()];
    sharding.push_back(kFollows);
    if (space_ == Space::soap || now.replicas == follow_readers(problem_, strategy, update).replicas)
      continue;
    const auto widest = std::max_element(now.degrees.begin(), now.degrees.end());
    if (widest != now.degrees.end()) sharding.back() = static_cast<size_t>(widest - now.degrees.begin());
  }
  edit.set(leader, std::move(config));
  size_t i = 0;
  for (OpId update : updates_of_[leader.index()]) {
    const size_t dim = sharding[i++];
    Config following = follow_readers(problem_, strategy, update);
    if (servers_) serve_from(strategy.configs[update.index()].devices[0], following);
    auto shards = dim == kFollows ? std::nullopt : sharded(update, following, dim);
    edit.set(update, shards ? std::move(*shards) : std::move(following));
  }
}

void Proposer::spread_to_light(StrategyEdit& edit, OpId from, Rng& rng) const {
  std::vector<OpId> frontier{from}, seen{from};
  const int64_t reach = 1 + rng.below(6);
  for (int64_t step = 0; step < reach && !frontier.empty(); ++step) {
    std::vector<OpId> next;
    for (OpId op : frontier) {
      for (OpId near : neighbours_[op.index()]) {
        if (!updates_of_[near.index()].empty()) continue;
        if (std::find(seen.begin(), seen.end(), near) != seen.end()) continue;
        seen.push_back(near);
        if (auto config = follow_neighbour(problem_, edit.strategy(), op, near, space_)) {
          set(edit, near, std::move(*config));
          next.push_back(near);
        }
      }
    }
    frontier = std::move(next);
  }
}

void Proposer::change_twins(StrategyEdit& edit, OpId leader, const Config& config) const {
  for (OpId twin : twins_[leader.index()]) {
    bool fits = true;
    for (size_t d = 0; d < config.degrees.size(); ++d)
      fits &= config.degrees[d] <= problem_.max_degree(twin, d);
    if (fits) set(edit, twin, config);
  }
}

std::optional<Config> Proposer::sharded(OpId update, const Config& following, size_t dim) const {
  // Replicas become blocks of a dimension, on the same devices: each holds a part of the weight's state.
  const int64_t replicas = following.replicas;
  if (replicas == 1 || following.degrees[dim] * replicas > problem_.max_degree(update, dim))
    return std::nullopt;
  // Cells of the dimensions after `dim` lie between it and the replicas: number the devices anew.
  int64_t inner = 1;
  for (size_t d = dim + 1; d < following.degrees.size(); ++d) inner *= following.degrees[d];
  const int64_t outer = following.num_cells() / (inner * replicas);
  Config config = following;
  config.degrees[dim] *= following.replicas;
  config.replicas = 1;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      for (int64_t r = 0; r < replicas; ++r)
        config.devices[static_cast<size_t>((o * replicas + r) * inner + i)] =
            following.devices[static_cast<size_t>((o * inner + i) * replicas + r)];
    }
  }
  return config;
}

void Proposer::shard_update(StrategyEdit& edit, Rng& rng) const {
  const OpId update = pick(updates_, rng);
  Config following = follow_readers(problem_, edit.strategy(), update);
  const Config& config = edit.strategy().configs[update.index()];
  if (config != following || splittable_[update.index()].empty()) {
    edit.set(update, std::move(following));
    return;
  }
  if (auto shards = sharded(update, following, pick(splittable_[update.index()], rng)))
    edit.set(update, std::move(*shards));
}

/// Another device that has the weight sums its gradient.
void Proposer::change_server(StrategyEdit& edit, Rng& rng) const {
  const OpId update = pick(updates_, rng);
  Config config = edit.strategy().configs[update.index()];
  serve_from(pick(config.devices, rng), config);
  edit.set(update, std::move(config));
}

Strategy Proposer::random_strategy(Rng& rng) const {
  Strategy strategy{std::vector<Config>(problem_.graph().ops.size())};
  for (OpId op : movable_) strategy.configs[op.index()] = whole_on(problem_, op, {DeviceId(0)});
  for (OpId op : movable_) strategy.configs[op.index()] = random_config(op, strategy, rng);
  follow_all(problem_, strategy);
  return strategy;
}

void Proposer::propose(StrategyEdit& edit, Rng& rng) const {
  const Strategy& current = edit.strategy();
  const int64_t kind = rng.below(100);
  if (kind < 8 && space_ == Space::full && !updates_.empty()) return shard_update(edit, rng);
  if (kind < 20 && servers_ && !updates_.empty()) return change_server(edit, rng);
  if (movable_.empty()) return;
  const OpId op = pick(movable_, rng);
  Config config;
  if (kind < 35) {
    config = random_config(op, current, rng);
  } else if (kind < 50) {
    config = copied(op, current, rng).value_or(current.configs[op.index()]);
  } else if (kind < 62) {
    config = moved(op, current, rng);
  } else if (kind < 75) {
    config = nudged(op, current, rng);
  } else {
    config = preset(op, rng);
  }
  const int64_t scope = rng.below(10);
  if (scope < 2) {
    change_twins(edit, op, config);
  } else {
    set(edit, op, std::move(config));
    if (scope < 7) spread_to_light(edit, op, rng);
  }
}

}  // namespace ff
