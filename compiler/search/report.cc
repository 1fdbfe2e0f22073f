#include "compiler/search/report.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "compiler/base/check.h"

namespace ff {
namespace {

double seconds(Nanoseconds time) { return static_cast<double>(time) * 1e-9; }

}  // namespace

std::string gap_line(const SearchResult& result) {
  const auto gap = optimality_gap(result);
  FF_CHECK(gap.has_value()) << "there is no lower bound";
  char percent[32];
  std::snprintf(percent, sizeof percent, "%.1f %%", *gap * 100);
  return "no " + result.bounded + " takes less than " + format_seconds(seconds(*result.lower_bound)) +
         ": this one is at most " + percent + " longer";
}

std::string search_report(const SearchResult& result, const ReportHeader& header, const CostCounts& costs) {
  nlohmann::ordered_json json;
  json["model"] = header.model;
  json["machine"] = header.machine;
  json["seed"] = header.seed;
  json["predicted_step_seconds"] = seconds(result.cost);
  if (const auto gap = optimality_gap(result)) {
    json["lower_bound"] = seconds(*result.lower_bound);
    json["optimality_gap"] = *gap;
  }
  json["baselines"] = nlohmann::ordered_json::object();
  for (const Baseline& baseline : result.baselines) {
    json["baselines"][baseline.kind] = {{"predicted_step_seconds", seconds(baseline.cost)},
                                        {"fits_memory", baseline.fits}};
  }
  auto& search = json["search"];
  search["proposals"] = result.proposals;
  search["accepted"] = result.accepted;
  search["seconds"] = result.seconds;
  search["proposals_per_second"] =
      result.seconds > 0 ? static_cast<double>(result.proposals) / result.seconds : 0.0;
  search["trace"] = nlohmann::ordered_json::array();
  for (const TracePoint& point : result.trace)
    search["trace"].push_back(
        {{"proposals", point.proposals}, {"predicted_step_seconds", seconds(point.best)}});
  json["tasks"] = result.simulation.num_tasks;
  json["bytes_moved"] = result.simulation.bytes_moved;
  json["devices"] = nlohmann::ordered_json::array();
  for (size_t d = 0; d < result.simulation.peak_bytes.size(); ++d) {
    json["devices"].push_back({{"peak_bytes", result.simulation.peak_bytes[d]},
                               {"busy_seconds", seconds(result.simulation.busy[d])}});
  }
  json["costs"] = {
      {"measured", costs.measured}, {"interpolated", costs.interpolated}, {"estimated", costs.estimated}};
  return json.dump(2) + "\n";
}

}  // namespace ff
