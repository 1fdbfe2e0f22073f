// The search report: JSON with fixed names, what `ffcompile --report` writes.
#pragma once

#include <string>

#include "compiler/search/search.h"

namespace ff {

struct ReportHeader {
  std::string model;
  std::string machine;
  uint64_t seed = 1;
};

/// Indented JSON; times in seconds.
std::string search_report(const SearchResult& result, const ReportHeader& header, const CostCounts& costs);

/// "no plan of this space takes less than 2.1 ms: this one is at most 4.0 % longer". Needs a lower bound.
std::string gap_line(const SearchResult& result);

}  // namespace ff
