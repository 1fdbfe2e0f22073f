#include "compiler/search/additive.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "compiler/base/check.h"

namespace ff {
namespace {

constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

/// What is left of the graph while it is reduced.
class Reduction {
 public:
  explicit Reduction(const AdditiveCosts& costs)
      : nodes_(costs.nodes), edges_(costs.nodes.size()), gone_(costs.nodes.size(), 0) {
    for (const AdditiveCosts::Edge& edge : costs.edges) add_edge(edge.a, edge.b, edge.costs);
  }

  LeastChoice solve(int64_t trials) {
    std::vector<Gone> order;
    while (const auto node = fewest_neighbours()) {
      if (edges_[*node].size() > 2) break;
      order.push_back(eliminate(*node));
    }
    LeastChoice out;
    if (const auto node = most_neighbours()) {
      out = cut(*node, trials);
    } else {
      out.choice.assign(nodes_.size(), 0);
    }
    out.cost += constant_;
    for (size_t i = order.size(); i-- > 0;) {
      size_t at = 0;
      for (size_t near : order[i].neighbours) at = at * nodes_[near].size() + out.choice[near];
      out.choice[order[i].node] = order[i].best[at];
    }
    return out;
  }

 private:
  using Table = std::vector<Nanoseconds>;  // [candidate of the owner * candidates of the other + ...]
  struct Gone {
    size_t node;
    std::vector<size_t> neighbours;
    std::vector<size_t> best;  // by the neighbours' candidates
  };

  static Table transposed(const Table& table, size_t rows, size_t columns) {
    Table out(table.size());
    for (size_t r = 0; r < rows; ++r) {
      for (size_t c = 0; c < columns; ++c) out[c * rows + r] = table[r * columns + c];
    }
    return out;
  }

  void add_edge(size_t a, size_t b, const Table& table) {
    FF_CHECK_EQ(table.size(), nodes_[a].size() * nodes_[b].size());
    add(edges_[a][b], table);
    add(edges_[b][a], transposed(table, nodes_[a].size(), nodes_[b].size()));
  }

  static void add(Table& to, const Table& table) {
    to.resize(table.size(), 0);
    for (size_t i = 0; i < table.size(); ++i) to[i] += table[i];
  }

  std::optional<size_t> fewest_neighbours() const {
    std::optional<size_t> found;
    for (size_t n = 0; n < nodes_.size(); ++n) {
      if (!gone_[n] && (!found || edges_[n].size() < edges_[*found].size())) found = n;
    }
    return found;
  }
  std::optional<size_t> most_neighbours() const {
    std::optional<size_t> found;
    for (size_t n = 0; n < nodes_.size(); ++n) {
      if (!gone_[n] && (!found || edges_[n].size() > edges_[*found].size())) found = n;
    }
    return found;
  }

  void remove(size_t node) {
    gone_[node] = 1;
    for (const auto& [near, table] : edges_[node]) edges_[near].erase(node);
    edges_[node].clear();
  }

  /// Takes out a node with two neighbours at most: what it costs at best becomes a cost of theirs.
  Gone eliminate(size_t node) {
    Gone gone{node, {}, {}};
    std::vector<Table> tables;
    size_t combinations = 1;
    for (const auto& [near, table] : edges_[node]) {
      gone.neighbours.push_back(near);
      tables.push_back(table);
      combinations *= nodes_[near].size();
    }
    Table least(combinations, kNever);
    gone.best.assign(combinations, 0);
    const size_t last = tables.empty() ? 1 : nodes_[gone.neighbours.back()].size();
    for (size_t at = 0; at < combinations; ++at) {
      for (size_t c = 0; c < nodes_[node].size(); ++c) {
        Nanoseconds cost = nodes_[node][c];
        if (!tables.empty()) cost += tables.back()[c * last + at % last];
        if (tables.size() == 2) cost += tables[0][c * (combinations / last) + at / last];
        if (cost >= least[at]) continue;
        least[at] = cost;
        gone.best[at] = c;
      }
    }
    remove(node);
    if (gone.neighbours.size() == 2) {
      add_edge(gone.neighbours[0], gone.neighbours[1], least);
    } else if (gone.neighbours.size() == 1) {
      add(nodes_[gone.neighbours[0]], least);
    } else {
      constant_ += least[0];
    }
    return gone;
  }

  /// The node has this candidate: its edges become costs of its neighbours.
  void fix(size_t node, size_t candidate) {
    constant_ += nodes_[node][candidate];
    for (const auto& [near, table] : edges_[node]) {
      const auto row = table.begin() + static_cast<std::ptrdiff_t>(candidate * nodes_[near].size());
      add(nodes_[near], Table(row, row + static_cast<std::ptrdiff_t>(nodes_[near].size())));
    }
    remove(node);
  }

  LeastChoice cut(size_t node, int64_t trials) const {
    const auto candidates = static_cast<int64_t>(nodes_[node].size());
    LeastChoice best;
    best.cost = kNever;
    const auto attempt = [&](size_t candidate, int64_t rest) {
      Reduction with = *this;
      with.constant_ = 0;
      with.fix(node, candidate);
      LeastChoice found = with.solve(rest);
      found.choice[node] = candidate;
      if (found.cost < best.cost) best = std::move(found);
    };
    if (trials >= candidates) {
      for (int64_t c = 0; c < candidates; ++c) attempt(static_cast<size_t>(c), trials / candidates);
      return best;
    }
    attempt(cheapest(node), trials);
    ++best.guessed;
    return best;
  }

  size_t cheapest(size_t node) const {
    size_t best = 0;
    Nanoseconds least = kNever;
    for (size_t c = 0; c < nodes_[node].size(); ++c) {
      Nanoseconds cost = nodes_[node][c];
      for (const auto& [near, table] : edges_[node]) {
        Nanoseconds side = kNever;
        for (size_t n = 0; n < nodes_[near].size(); ++n)
          side = std::min(side, nodes_[near][n] + table[c * nodes_[near].size() + n]);
        cost += side;
      }
      if (cost >= least) continue;
      least = cost;
      best = c;
    }
    return best;
  }

  std::vector<Table> nodes_;
  std::vector<std::map<size_t, Table>> edges_;  // by node, by neighbour; each edge from both sides
  std::vector<char> gone_;
  Nanoseconds constant_ = 0;
};

}  // namespace

Nanoseconds AdditiveCosts::cost(const std::vector<size_t>& choice) const {
  Nanoseconds sum = 0;
  for (size_t n = 0; n < nodes.size(); ++n) sum += nodes[n][choice[n]];
  for (const Edge& edge : edges) sum += edge.costs[choice[edge.a] * nodes[edge.b].size() + choice[edge.b]];
  return sum;
}

LeastChoice least_choice(const AdditiveCosts& costs, int64_t most_trials) {
  return Reduction(costs).solve(most_trials);
}

}  // namespace ff
