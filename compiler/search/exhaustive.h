// Every strategy of a small graph: proves what the best is.
//
//   4 ops of one dimension on 2 devices, each whole on 0, whole on 1, or split both ways round: 4^4
//   strategies
//
// Updates follow the readers of their weights; degrees are divisors of the number of devices; no replicas.
#pragma once

#include "compiler/search/search.h"

namespace ff {

/// All configs of a leader: degrees whose product divides the number of devices, on distinct devices in
/// every order. `limit`: UserError naming the op beyond so many.
std::vector<Config> all_configs(const Problem& problem, OpId leader, Space space, size_t limit);

/// The best that fits, if any; UserError if there are more than a few million strategies.
std::optional<Strategy> exhaustive(Simulator& simulator, const SearchOptions& options, int64_t& evaluated);

}  // namespace ff
