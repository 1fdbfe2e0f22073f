#include "tools/ffplan-dump/difference.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "compiler/base/check.h"
#include "compiler/base/units.h"
#include "compiler/plan/codec.h"
#include "compiler/plan/text.h"

namespace ff {
namespace {

using Json = nlohmann::ordered_json;

void add(OpFigures& sum, const OpFigures& f, int sign) {
  sum.compute_ns += sign * f.compute_ns;
  sum.sent_bytes += sign * f.sent_bytes;
  sum.memory_bytes += sign * f.memory_bytes;
}

bool alike(const OpSummary& a, const OpSummary& b) {
  return a.dims == b.dims && a.degrees == b.degrees && a.replicas == b.replicas && a.devices == b.devices;
}

std::vector<PlanDifference::Field> header_of(const Plan& plan) {
  std::string outputs;
  for (const std::string& output : plan.outputs) outputs += (outputs.empty() ? "" : ", ") + output;
  return {{"model", plan.model_path, ""},
          {"machine", plan.machine_name + " (" + plan.machine_hash + ")", ""},
          {"devices", std::to_string(plan.num_devices), ""},
          {"threads per rank", std::to_string(plan.threads_per_rank), ""},
          {"batch", std::to_string(plan.batch), ""},
          {"optimizer", plan.optimizer, ""},
          {"batchnorm", plan.batchnorm, ""},
          {"seed", std::to_string(plan.seed), ""},
          {"options", plan.options, ""},
          {"libraries", plan.library_versions, ""},
          {"profile", plan.profile_hash, ""},
          {"outputs", outputs, ""}};
}

void compare_headers(PlanDifference& d) {
  d.header = header_of(d.first.plan);
  const auto others = header_of(d.second.plan);
  for (size_t i = 0; i < others.size(); ++i) d.header[i].second = others[i].first;
  if (encode_parameters(d.first.plan) != encode_parameters(d.second.plan))
    d.header.push_back({"parameters", std::to_string(d.first.plan.parameters.size()),
                        std::to_string(d.second.plan.parameters.size()) + ", which differ"});
  std::erase_if(d.header, [](const PlanDifference::Field& f) { return f.first == f.second; });
}

void compare_ops(PlanDifference& d) {
  std::map<std::string, const OpSummary*> seconds;
  for (const OpSummary& op : d.second.plan.ops) seconds[op.op] = &op;
  for (const OpSummary& op : d.first.plan.ops) {
    OpDifference one{.first = &op, .second = nullptr, .change = {}};
    add(one.change, figures_of(op), -1);
    if (const auto at = seconds.find(op.op); at != seconds.end()) {
      one.second = at->second;
      add(one.change, figures_of(*at->second), 1);
      seconds.erase(at);
    }
    if (one.second != nullptr && alike(op, *one.second)) {
      ++d.others;
      add(d.others_change, one.change, 1);
    } else {
      d.ops.push_back(one);
    }
  }
  for (const OpSummary& op : d.second.plan.ops) {
    if (!seconds.contains(op.op)) continue;
    d.ops.push_back({.first = nullptr, .second = &op, .change = figures_of(op)});
  }
}

void compare_programs(PlanDifference& d) {
  const auto encoded = [](const Plan& plan, size_t device) {
    return encode(plan.programs[static_cast<size_t>(plan.program_of[device])]);
  };
  const size_t devices = std::min(d.first.plan.program_of.size(), d.second.plan.program_of.size());
  for (size_t i = 0; i < devices; ++i)
    d.programs += encoded(d.first.plan, i) != encoded(d.second.plan, i) ? 1 : 0;
}

std::string time_text(int64_t ns) { return format_seconds(static_cast<double>(ns) * 1e-9); }

/// "+111.4 us (+10.2 %)".
std::string change_text(int64_t from, int64_t to, const std::string& difference) {
  if (from == 0 || from == to) return difference;
  char percent[32];
  std::snprintf(percent, sizeof percent, " (%+.1f %%)",
                100.0 * static_cast<double>(to - from) / static_cast<double>(from));
  return difference + percent;
}

std::string figures_table(const PlanFigures& a, const PlanFigures& b) {
  const auto time = [](const std::string& name, int64_t x, int64_t y, const std::string& note) {
    return std::vector<std::string>{name, time_text(x), time_text(y),
                                    change_text(x, y, format_time_difference(y - x)), note};
  };
  const auto bytes = [](const std::string& name, int64_t x, int64_t y, const std::string& note) {
    return std::vector<std::string>{name, format_bytes(x), format_bytes(y),
                                    change_text(x, y, format_byte_difference(y - x)), note};
  };
  const int64_t more = b.instructions - a.instructions;
  return text_table({{"", "first", "second", "difference"},
                     time("predicted step", a.step_ns, b.step_ns, ""),
                     time("compute", a.compute_ns, b.compute_ns, "of the busiest device"),
                     bytes("sent", a.sent_bytes, b.sent_bytes, "by all devices"),
                     bytes("memory", a.memory_bytes, b.memory_bytes, "of the fullest device"),
                     {"instructions", std::to_string(a.instructions), std::to_string(b.instructions),
                      (more > 0 ? "+" : "") + std::to_string(more), "of the longest program"}});
}

std::string place_text(const OpSummary* op) {
  return op == nullptr ? "not there" : degrees_text(*op) + " on " + device_list(op->devices);
}

std::string ops_text(const PlanDifference& d) {
  if (d.ops.empty()) {
    return "no op differs" +
           (d.programs > 0 ? ", but the programs of " + std::to_string(d.programs) + " devices do\n" : "\n");
  }
  std::vector<std::vector<std::string>> rows = {
      {"op", "type", "first", "second", "compute", "sent", "memory"}};
  const auto add_row = [&](std::vector<std::string> row, const OpFigures& change) {
    row.push_back(format_time_difference(change.compute_ns));
    row.push_back(format_byte_difference(change.sent_bytes));
    row.push_back(format_byte_difference(change.memory_bytes));
    rows.push_back(std::move(row));
  };
  for (const OpDifference& op : d.ops) {
    const OpSummary& any = op.first != nullptr ? *op.first : *op.second;
    add_row({any.op, any.type, place_text(op.first), place_text(op.second)}, op.change);
  }
  if (d.others > 0) add_row({"others: " + std::to_string(d.others), "", "", ""}, d.others_change);
  return text_table(rows) +
         "compute: of the op's busiest device; sent and memory: of what it writes, on all devices\n";
}

Json figures_json(const PlanFigures& f) {
  return {{"predicted_step_seconds", static_cast<double>(f.step_ns) * 1e-9},
          {"busy_seconds", static_cast<double>(f.compute_ns) * 1e-9},
          {"bytes_moved", f.sent_bytes},
          {"peak_bytes", f.memory_bytes},
          {"instructions", f.instructions}};
}

Json figures_json(const OpFigures& f) {
  return {{"compute_ns", f.compute_ns}, {"traffic_bytes", f.sent_bytes}, {"memory_bytes", f.memory_bytes}};
}

Json op_json(const OpSummary* op) {
  if (op == nullptr) return nullptr;
  return {{"dims", op->dims}, {"degrees", op->degrees}, {"replicas", op->replicas}, {"devices", op->devices}};
}

PlanFigures less(const PlanFigures& b, const PlanFigures& a) {
  return {b.step_ns - a.step_ns, b.compute_ns - a.compute_ns, b.sent_bytes - a.sent_bytes,
          b.memory_bytes - a.memory_bytes, b.instructions - a.instructions};
}

}  // namespace

PlanFigures figures_of(const Plan& plan) {
  PlanFigures f;
  f.step_ns = plan.step_ns;
  for (const DevicePrediction& device : plan.devices) {
    f.compute_ns = std::max(f.compute_ns, device.busy_ns);
    f.memory_bytes = std::max(f.memory_bytes, device.peak_bytes);
  }
  for (const OpSummary& op : plan.ops) f.sent_bytes += op.traffic_bytes;
  for (const Program& program : plan.programs) {
    if (program.entries.empty()) continue;
    f.instructions = std::max(f.instructions, static_cast<int64_t>(program.entries[0].instructions.size()));
  }
  return f;
}

OpFigures figures_of(const OpSummary& op) {
  // Its cells take equally long: the device with most of them is the busiest.
  std::map<int32_t, int64_t> cells;
  int64_t most = 0;
  for (const int32_t device : op.devices) most = std::max(most, ++cells[device]);
  const auto all = std::max<int64_t>(1, static_cast<int64_t>(op.devices.size()));
  return {.compute_ns = op.compute_ns * most / all,
          .sent_bytes = op.traffic_bytes,
          .memory_bytes = op.memory_bytes};
}

PlanDifference compare(NamedPlan first, NamedPlan second) {
  const Plan &a = first.plan, &b = second.plan;
  if (a.model_hash != b.model_hash) {
    throw UserError("--diff " + second.path + ": a plan of another model: " + b.model_path + " (" +
                        b.model_hash + "); that of " + first.path + " is " + a.model_path + " (" +
                        a.model_hash + ")",
                    "compile both plans from the same ONNX file");
  }
  PlanDifference d;
  d.first = std::move(first);
  d.second = std::move(second);
  d.first_figures = figures_of(d.first.plan);
  d.second_figures = figures_of(d.second.plan);
  compare_headers(d);
  compare_ops(d);
  compare_programs(d);
  return d;
}

std::string difference_text(const PlanDifference& d) {
  std::ostringstream out;
  out << "first   " << d.first.path << "\nsecond  " << d.second.path << "\n";
  for (const PlanDifference::Field& f : d.header)
    out << f.name << ": " << f.first << " | " << f.second << "\n";
  if (d.first.plan.machine_hash != d.second.plan.machine_hash)
    out << "times are predicted for different machines\n";
  out << "\n" << figures_table(d.first_figures, d.second_figures) << "\n" << ops_text(d);
  return out.str();
}

std::string difference_json(const PlanDifference& d) {
  Json out;
  const auto add_plan = [&](const char* which, const NamedPlan& named, const PlanFigures& figures) {
    out[which] = {{"plan", named.path}};
    out[which].update(figures_json(figures));
  };
  add_plan("first", d.first, d.first_figures);
  add_plan("second", d.second, d.second_figures);
  out["difference"] = figures_json(less(d.second_figures, d.first_figures));
  out["header"] = Json::object();
  for (const PlanDifference::Field& f : d.header) out["header"][f.name] = {f.first, f.second};
  out["differing_programs"] = d.programs;
  out["ops"] = Json::array();
  for (const OpDifference& op : d.ops) {
    const OpSummary& any = op.first != nullptr ? *op.first : *op.second;
    out["ops"].push_back({{"op", any.op},
                          {"type", any.type},
                          {"first", op_json(op.first)},
                          {"second", op_json(op.second)},
                          {"difference", figures_json(op.change)}});
  }
  out["other_ops"] = {{"count", d.others}, {"difference", figures_json(d.others_change)}};
  return out.dump(1) + "\n";
}

}  // namespace ff
