// What a run tells other programs: the report (one JSON object), the log (a JSON object a line), and the
// trace (Chrome trace events, predicted and measured; opens in Perfetto).
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "compiler/plan/plan.h"
#include "executor/runtime/interpreter.h"
#include "executor/runtime/verification.h"

namespace ff {

struct RunReport {
  int64_t steps = 0;
  double step_seconds_median = 0;
  double predicted_step_seconds = 0;
  double samples_per_second = 0;
  std::vector<int64_t> arena_bytes;  // by device
  std::optional<double> loss_first, loss_last;
  std::optional<double> accuracy;
  std::optional<Comparison> verify;
  std::vector<std::string> differing_replicas;
};

/// Throws RunError if the file cannot be written; "-" is stdout.
void write_report(const std::string& path, const RunReport& report);

/// A file of lines, each written as soon as it is known.
class RunLog {
 public:
  /// An empty path: no log. Throws UserError if the file cannot be made.
  explicit RunLog(const std::string& path);
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;
  ~RunLog();
  void step(int64_t step, int64_t epoch, std::optional<double> loss, double seconds);
  void accuracy(int64_t step, int64_t epoch, double accuracy);

 private:
  void write(const std::string& line);
  std::string path_;
  std::FILE* file_ = nullptr;
};

/// This rank's events of the last execution of `entry`, as the inside of a JSON array. `origin_ns`: the
/// steady clock's time that is zero in the trace, one moment for all ranks.
std::string trace_events(int rank, const Interpreter& interpreter, const Entry& entry, int64_t origin_ns);
/// Joins all ranks' events into a trace file. Throws RunError if it cannot be written.
void write_trace(const std::string& path, const std::vector<std::string>& events);

}  // namespace ff
