// Additive costs: each node has some candidates with a cost each, each edge a cost for every pair of its
// ends' candidates; wanted is a choice for every node with the least sum.
//
//   nodes a, b, c with two candidates each, edges a-b and b-c that cost 5 where the ends differ, node costs
//   [0 3] [4 0] [0 3]: all first costs 0 + 4 + 0 = 4, all second 3 + 0 + 3 = 6, b alone second 0 + 5 + 0 + 5
//   + 0 = 10: 4 is the least
//
// By elimination (Jia, Lin, Qi, Aiken, "Exploring Hidden Dimensions in Parallelizing Convolutional Neural
// Networks", ICML 2018): a node with two neighbours becomes an edge between them, a node with one is added
// to it, and parallel edges become one. What does not reduce is cut open: every candidate of a node is tried
// while that is affordable, else the node is given the candidate that looks cheapest.
#pragma once

#include <cstddef>
#include <vector>

#include "compiler/base/units.h"

namespace ff {

struct AdditiveCosts {
  struct Edge {
    size_t a = 0, b = 0;             // nodes, different
    std::vector<Nanoseconds> costs;  // [candidate of a * candidates of b + candidate of b]
  };
  std::vector<std::vector<Nanoseconds>> nodes;  // by node and candidate; one candidate at least
  std::vector<Edge> edges;                      // parallel ones add up

  Nanoseconds cost(const std::vector<size_t>& choice) const;
};

struct LeastChoice {
  std::vector<size_t> choice;  // a candidate of each node
  Nanoseconds cost = 0;
  size_t guessed = 0;  // nodes whose candidate was taken because it looked cheapest; 0: `cost` is the least
};

/// `most_trials`: of candidates of nodes that do not reduce, all together.
LeastChoice least_choice(const AdditiveCosts& costs, int64_t most_trials = 20'000);

}  // namespace ff
