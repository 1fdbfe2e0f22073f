#include "executor/runtime/report.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "compiler/base/check.h"

namespace ff {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no NaN: null.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

void write_text(const std::string& path, const std::string& text) {
  if (path == "-") {
    std::cout << text;
    return;
  }
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw RunError(path + ": cannot be written: " + std::strerror(errno));
}

std::string instruction_title(const Instruction& in) {
  constexpr const char* kNames[] = {"",           "send",     "receive", "all-reduce", "reduce-scatter",
                                    "all-gather", "broadcast"};
  const std::string what =
      in.kind == InstructionKind::kernel ? in.call.kernel : kNames[static_cast<int>(in.kind)];
  return in.op.empty() ? what : in.op + " (" + what + ")";
}

}  // namespace

void write_report(const std::string& path, const RunReport& report) {
  Json out;
  out["steps"] = report.steps;
  out["step_seconds_median"] = number(report.step_seconds_median);
  out["predicted_step_seconds"] = number(report.predicted_step_seconds);
  out["samples_per_second"] = number(report.samples_per_second);
  out["devices"] = Json::array();
  for (const int64_t bytes : report.arena_bytes) out["devices"].push_back({{"arena_bytes", bytes}});
  if (report.loss_first) out["loss_first"] = number(*report.loss_first);
  if (report.loss_last) out["loss_last"] = number(*report.loss_last);
  if (report.accuracy) out["accuracy"] = number(*report.accuracy);
  if (report.verify) {
    out["verify"] = {{"max_relative_difference", number(report.verify->worst)},
                     {"parameter", report.verify->parameter},
                     {"tolerance", report.verify->tolerance},
                     {"differing_replicas", report.differing_replicas},
                     {"passed", report.verify->within && report.differing_replicas.empty()}};
  }
  write_text(path, out.dump(2) + "\n");
}

RunLog::RunLog(const std::string& path) : path_(path) {
  if (path.empty()) return;
  file_ = std::fopen(path.c_str(), "w");
  if (file_ == nullptr) throw UserError("--log " + path + ": " + std::strerror(errno));
}

RunLog::~RunLog() {
  if (file_ != nullptr) std::fclose(file_);
}

void RunLog::write(const std::string& line) {
  if (file_ == nullptr) return;
  if (std::fputs((line + "\n").c_str(), file_) < 0 || std::fflush(file_) != 0)
    throw RunError(path_ + ": cannot be written: " + std::strerror(errno));
}

void RunLog::step(int64_t step, int64_t epoch, std::optional<double> loss, double seconds) {
  if (file_ == nullptr) return;
  Json out = {{"step", step}, {"epoch", epoch}};
  if (loss) out["loss"] = number(*loss);
  out["seconds"] = seconds;
  write(out.dump());
}

void RunLog::accuracy(int64_t step, int64_t epoch, double accuracy) {
  write(Json({{"step", step}, {"epoch", epoch}, {"accuracy", number(accuracy)}}).dump());
}

std::string trace_events(int rank, const Interpreter& interpreter, const Entry& entry, int64_t origin_ns) {
  const std::string process = ",\"pid\":" + std::to_string(rank);
  std::string out;
  const auto add = [&out](const std::string& event) { out += (out.empty() ? "" : ",\n") + event; };
  add("{\"name\":\"process_name\",\"ph\":\"M\"" + process + ",\"args\":{\"name\":\"rank " +
      std::to_string(rank) + "\"}}");
  constexpr const char* kRows[] = {"compute", "communication", "compute, predicted",
                                   "communication, predicted"};
  for (int row = 0; row < 4; ++row) {
    add("{\"name\":\"thread_name\",\"ph\":\"M\"" + process + ",\"tid\":" + std::to_string(row) +
        ",\"args\":{\"name\":\"" + kRows[row] + "\"}}");
  }
  const int64_t shift = interpreter.began_ns() - origin_ns;
  for (size_t i = 0; i < entry.instructions.size(); ++i) {
    const Instruction& in = entry.instructions[i];
    const std::string title = Json(instruction_title(in)).dump();
    const int row = in.stream == Stream::compute ? 0 : 1;
    const auto event = [&](int tid, int64_t start_ns, int64_t duration_ns) {
      char times[96];
      std::snprintf(times, sizeof times, ",\"ts\":%.3f,\"dur\":%.3f", static_cast<double>(start_ns) * 1e-3,
                    static_cast<double>(duration_ns) * 1e-3);
      add("{\"name\":" + title + ",\"ph\":\"X\"" + process + ",\"tid\":" + std::to_string(tid) + times +
          ",\"args\":{\"instruction\":" + std::to_string(i) + "}}");
    };
    if (i < interpreter.timings().size()) {
      const InstructionTiming& timing = interpreter.timings()[i];
      event(row, shift + timing.start_ns, timing.duration_ns);
    }
    event(row + 2, in.start_ns, in.duration_ns);
  }
  return out;
}

void write_trace(const std::string& path, const std::vector<std::string>& events) {
  std::string out = "{\"traceEvents\":[\n";
  for (size_t i = 0; i < events.size(); ++i) out += (i == 0 ? "" : ",\n") + events[i];
  write_text(path, out + "\n],\"displayTimeUnit\":\"ms\"}\n");
}

}  // namespace ff
