// What `ffcompile --explain OP` prints: other configs of an op beside its own, and a sentence that says why.
//
//   fc1 (MatMul), all else as it is; 4 other configs tried
//
//     config      devices  step     difference  compute   link      sent        memory
//   * n:2(P)      0-1      1.09 ms              993.4 us  92.3 us   269.1 KiB   2.1 MiB
//     replicas:2  0-1      1.14 ms  +55.6 us    +73.2 us  -26.9 us  -70.0 KiB   +188.0 KiB
//     m:2(S)      0-1      1.20 ms  +111.6 us   +51.2 us  +53.7 us  +205.9 KiB  +188.0 KiB  data parallel
//     ...
//
//   n:2(P) on 0-1 wins: the next, replicas:2 on 0-1, takes 55.6 us longer; it computes 73.2 us more on the
//   busiest device, sends 70.0 KiB less and keeps the busiest link 26.9 us less long.
#pragma once

#include <string>
#include <vector>

#include "compiler/search/explain.h"

namespace ff {

/// The ops that --explain names; UserError for a name that is none.
std::vector<OpId> find_ops(const std::vector<std::string>& names, const Problem& problem);
/// UserError if what --explain is given beside, "--dry-run" say, stops before there is a strategy.
void refuse_without_search(const std::string& option);

/// The table and the sentence of one op.
std::string explanation_text(const Explanation& explanation, const Problem& problem);

/// Those of several, with a legend; "" if there are none. On large machines it takes minutes: stderr says how
/// far it is.
std::string explanations_text(const std::vector<OpId>& ops, const Strategy& strategy, const Problem& problem,
                              const Machine& machine, CostModel& costs, const SearchOptions& options);

}  // namespace ff
