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

}  // namespace ff
