#include "tools/ffplan-dump/dump.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "compiler/plan/text.h"

namespace ff {
namespace {

using Json = nlohmann::ordered_json;

Json program_json(const Program& program, const std::vector<std::vector<int32_t>>& groups) {
  Json out;
  out["persistent_bytes"] = program.persistent_bytes;
  out["scratch_bytes"] = program.scratch_bytes;
  out["arena_bytes"] = program.arena_bytes();
  out["buffers"] = Json::array();
  for (const Buffer& b : program.buffers) {
    out["buffers"].push_back({{"region", b.region == Region::persistent ? "persistent" : "scratch"},
                              {"tensor", b.tensor},
                              {"dtype", name(b.dtype)},
                              {"layout", name(b.layout)},
                              {"box", to_string(b.box)},
                              {"offset", b.offset},
                              {"bytes", b.bytes}});
  }
  out["entries"] = Json::array();
  for (const Entry& entry : program.entries) {
    Json instructions = Json::array();
    for (const Instruction& in : entry.instructions) {
      instructions.push_back({{"text", to_string(in, program.buffers, groups)},
                              {"op", in.op},
                              {"start_ns", in.start_ns},
                              {"duration_ns", in.duration_ns}});
    }
    out["entries"].push_back(
        {{"name", entry.name}, {"instructions", instructions}, {"outputs", entry.outputs}});
  }
  return out;
}

Json header_json(const Plan& plan) {
  Json out;
  out["model"] = plan.model_path;
  out["model_hash"] = plan.model_hash;
  out["machine"] = plan.machine_name;
  out["machine_hash"] = plan.machine_hash;
  out["profile_hash"] = plan.profile_hash;
  out["options"] = plan.options;
  out["library_versions"] = plan.library_versions;
  out["num_devices"] = plan.num_devices;
  out["batch"] = plan.batch;
  out["threads_per_rank"] = plan.threads_per_rank;
  out["seed"] = plan.seed;
  out["optimizer"] = plan.optimizer;
  out["batchnorm"] = plan.batchnorm;
  out["outputs"] = plan.outputs;
  out["predicted_step_seconds"] = static_cast<double>(plan.step_ns) * 1e-9;
  out["data_parallel_step_seconds"] = static_cast<double>(plan.data_parallel_ns) * 1e-9;
  return out;
}

const Program& program_of(const Plan& plan, size_t device) {
  return plan.programs[static_cast<size_t>(plan.program_of[device])];
}

std::string instruction_title(const Instruction& in) {
  constexpr const char* kNames[] = {"",           "send",     "receive", "all-reduce", "reduce-scatter",
                                    "all-gather", "broadcast"};
  const std::string what =
      in.kind == InstructionKind::kernel ? in.call.kernel : kNames[static_cast<int>(in.kind)];
  return in.op.empty() ? what : in.op + " (" + what + ")";
}

}  // namespace

std::string plan_json(const Plan& plan) {
  Json out = header_json(plan);
  out["inputs"] = Json::array();
  for (const Input& input : plan.inputs)
    out["inputs"].push_back({{"name", input.name}, {"dtype", name(input.dtype)}, {"shape", input.shape}});
  out["parameters"] = Json::array();
  constexpr const char* kKinds[] = {"trained", "frozen", "state"};
  for (const Parameter& p : plan.parameters) {
    out["parameters"].push_back({{"name", p.name},
                                 {"kind", kKinds[static_cast<int>(p.kind)]},
                                 {"dtype", name(p.dtype)},
                                 {"shape", p.shape}});
  }
  out["groups"] = plan.groups;
  out["ops"] = Json::array();
  for (const OpSummary& op : plan.ops) {
    out["ops"].push_back({{"op", op.op},
                          {"type", op.type},
                          {"dims", op.dims},
                          {"degrees", op.degrees},
                          {"replicas", op.replicas},
                          {"devices", op.devices},
                          {"compute_ns", op.compute_ns},
                          {"traffic_bytes", op.traffic_bytes},
                          {"memory_bytes", op.memory_bytes}});
  }
  out["devices"] = Json::array();
  for (size_t d = 0; d < plan.program_of.size(); ++d) {
    Json device = {{"program", plan.program_of[d]}, {"arena_bytes", program_of(plan, d).arena_bytes()}};
    if (d < plan.devices.size()) {
      device["busy_ns"] = plan.devices[d].busy_ns;
      device["live_peak_bytes"] = plan.devices[d].live_peak_bytes;
      device["peak_bytes"] = plan.devices[d].peak_bytes;
    }
    out["devices"].push_back(device);
  }
  out["programs"] = Json::array();
  for (const Program& program : plan.programs) out["programs"].push_back(program_json(program, plan.groups));
  if (plan.reference) out["reference"] = program_json(*plan.reference, {});
  return out.dump(1) + "\n";
}

std::string plan_trace(const Plan& plan) {
  Json events = Json::array();
  for (size_t d = 0; d < plan.program_of.size(); ++d) {
    events.push_back({{"name", "process_name"},
                      {"ph", "M"},
                      {"pid", d},
                      {"args", {{"name", "device " + std::to_string(d)}}}});
    for (const int tid : {0, 1}) {
      events.push_back({{"name", "thread_name"},
                        {"ph", "M"},
                        {"pid", d},
                        {"tid", tid},
                        {"args", {{"name", tid == 0 ? "compute, predicted" : "communication, predicted"}}}});
    }
    if (program_of(plan, d).entries.empty()) continue;
    for (const Instruction& in : program_of(plan, d).entries[0].instructions) {
      events.push_back({{"name", instruction_title(in)},
                        {"ph", "X"},
                        {"pid", d},
                        {"tid", in.stream == Stream::compute ? 0 : 1},
                        {"ts", static_cast<double>(in.start_ns) * 1e-3},
                        {"dur", static_cast<double>(in.duration_ns) * 1e-3}});
    }
  }
  return Json({{"traceEvents", events}, {"displayTimeUnit", "ms"}}).dump() + "\n";
}

std::string plan_dot(const Plan& plan) {
  std::ostringstream out;
  out << "digraph plan {\n  node [shape=box, fontsize=10];\n";
  std::map<std::tuple<size_t, size_t, int32_t>, std::string> senders;  // from, to, tag
  const auto node = [](size_t d, size_t i) { return "d" + std::to_string(d) + "_" + std::to_string(i); };
  for (size_t d = 0; d < plan.program_of.size(); ++d) {
    if (program_of(plan, d).entries.empty()) continue;
    const auto& list = program_of(plan, d).entries[0].instructions;
    out << "  subgraph cluster_" << d << " {\n    label=\"device " << d << "\";\n";
    for (size_t i = 0; i < list.size(); ++i) {
      out << "    " << node(d, i)
          << " [label=" << Json("#" + std::to_string(i) + " " + instruction_title(list[i])).dump() << "];\n";
      if (i > 0) out << "    " << node(d, i - 1) << " -> " << node(d, i) << " [style=dotted];\n";
      for (const int32_t wait : list[i].waits)
        out << "    " << node(d, static_cast<size_t>(wait)) << " -> " << node(d, i) << ";\n";
      if (list[i].kind == InstructionKind::send)
        senders[{d, static_cast<size_t>(list[i].peer), list[i].tag}] = node(d, i);
    }
    out << "  }\n";
  }
  for (size_t d = 0; d < plan.program_of.size(); ++d) {
    if (program_of(plan, d).entries.empty()) continue;
    const auto& list = program_of(plan, d).entries[0].instructions;
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i].kind != InstructionKind::receive) continue;
      const auto from = senders.find({static_cast<size_t>(list[i].peer), d, list[i].tag});
      if (from != senders.end()) out << "  " << from->second << " -> " << node(d, i) << " [color=blue];\n";
    }
  }
  out << "}\n";
  return out.str();
}

}  // namespace ff
