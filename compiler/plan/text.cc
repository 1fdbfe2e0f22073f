#include "compiler/plan/text.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "compiler/base/units.h"

namespace ff {
namespace {

constexpr const char* kKinds[] = {"kernel",         "send",       "receive",  "all_reduce",
                                  "reduce_scatter", "all_gather", "broadcast"};
constexpr const char* kAccess[] = {"in", "out", "inout"};
constexpr const char* kOrigins[] = {"computed", "parameter", "input"};

template <typename Values>
std::string join(const Values& values, const char* separator) {
  std::ostringstream out;
  const char* between = "";
  for (const auto& value : values) {
    out << between << value;
    between = separator;
  }
  return out.str();
}

std::string kernel_text(const Instruction& in) {
  std::string out = in.call.kernel;
  if (const std::string attributes = to_string(in.call.attributes); !attributes.empty())
    out += " " + attributes;
  out += " (";
  for (size_t i = 0; i < in.call.operands.size(); ++i) {
    const Operand& operand = in.call.operands[i];
    if (i > 0) out += ", ";
    if (is_absent(operand) || i >= in.operands.size() || in.operands[i] < 0) {
      out += "none";
      continue;
    }
    out += "b" + std::to_string(in.operands[i]) + " " + kAccess[static_cast<int>(operand.access)] + " " +
           std::string(name(operand.dtype)) + ":" + std::string(name(operand.layout)) + ":" +
           to_string(operand.shape);
  }
  out += ")";
  if (in.workspace >= 0) out += " workspace b" + std::to_string(in.workspace);
  return out;
}

std::string buffer_text(const Instruction& in, size_t operand, const std::vector<Buffer>& buffers) {
  if (operand >= in.operands.size() || in.operands[operand] < 0) return "none";
  const auto buffer = static_cast<size_t>(in.operands[operand]);
  return "b" + std::to_string(buffer) + (buffer < buffers.size() ? to_string(buffers[buffer].box) : "[?]");
}

std::string comm_text(const Instruction& in, const std::vector<Buffer>& buffers,
                      const std::vector<std::vector<int32_t>>& groups) {
  std::string out = kKinds[static_cast<int>(in.kind)];
  out += " " + buffer_text(in, 0, buffers);
  if (in.kind == InstructionKind::send || in.kind == InstructionKind::receive) {
    return out + (in.kind == InstructionKind::send ? " to " : " from ") + std::to_string(in.peer) + " tag " +
           std::to_string(in.tag);
  }
  if (in.operands.size() > 1 && in.operands[1] != in.operands[0])
    out += " into " + buffer_text(in, 1, buffers);
  if (in.combine_max) out += " max";
  if (!in.counts.empty()) out += " counts " + join(in.counts, ",");
  if (in.kind == InstructionKind::broadcast) out += " root " + std::to_string(in.root);
  out += " group " + std::to_string(in.group);
  if (in.group >= 0 && static_cast<size_t>(in.group) < groups.size())
    out += " of " + device_ranges(groups[static_cast<size_t>(in.group)]);
  return out;
}

std::string idle_text(const OpSummary& op, int64_t num_devices) {
  std::vector<int32_t> idle;
  for (int32_t d = 0; d < num_devices; ++d) {
    if (std::find(op.devices.begin(), op.devices.end(), d) == op.devices.end()) idle.push_back(d);
  }
  return idle.empty() ? "" : "idle: " + device_ranges(idle);
}

std::string time_text(int64_t ns) { return format_seconds(static_cast<double>(ns) * 1e-9); }

}  // namespace

std::string to_string(const Buffer& buffer) {
  std::string out = buffer.region == Region::persistent ? "persistent" : "scratch";
  out += " +" + std::to_string(buffer.offset) + " " + std::to_string(buffer.bytes) + " B " +
         std::string(name(buffer.dtype)) + ":" + std::string(name(buffer.layout)) + " " +
         to_string(buffer.box) + " " + kOrigins[static_cast<int>(buffer.origin)];
  if (!buffer.tensor.empty()) out += " " + buffer.tensor;
  return out;
}

std::string to_string(const Instruction& in, const std::vector<Buffer>& buffers,
                      const std::vector<std::vector<int32_t>>& groups) {
  std::string out = in.stream == Stream::compute ? "compute " : "comm    ";
  out += in.kind == InstructionKind::kernel ? kernel_text(in) : comm_text(in, buffers, groups);
  if (!in.waits.empty()) out += "  waits " + join(in.waits, ",");
  if (!in.op.empty()) out += "  | " + in.op;
  return out;
}

std::string program_text(const Program& program, const std::vector<std::vector<int32_t>>& groups) {
  std::ostringstream out;
  out << "memory persistent " << program.persistent_bytes << " B scratch " << program.scratch_bytes << " B\n";
  for (size_t i = 0; i < program.buffers.size(); ++i)
    out << "b" << i << " " << to_string(program.buffers[i]) << "\n";
  for (const Entry& entry : program.entries) {
    out << "entry " << entry.name << "\n";
    for (size_t i = 0; i < entry.instructions.size(); ++i)
      out << "#" << i << " " << to_string(entry.instructions[i], program.buffers, groups) << "\n";
    out << "outputs";
    for (const int32_t output : entry.outputs) out << " b" << output;
    out << "\n";
  }
  return out.str();
}

std::string text_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string degrees_text(const OpSummary& op) {
  std::string out;
  for (size_t i = 0; i < op.dims.size() && i < op.degrees.size(); ++i) {
    if (op.degrees[i] == 1) continue;
    const size_t colon = op.dims[i].find(':');
    const std::string dim = op.dims[i].substr(0, colon);
    const std::string role = colon == std::string::npos ? "" : "(" + op.dims[i].substr(colon + 1) + ")";
    out += (out.empty() ? "" : " ") + dim + ":" + std::to_string(op.degrees[i]) + role;
  }
  if (op.replicas > 1)
    out += (out.empty() ? "" : " ") + std::string("replicas:") + std::to_string(op.replicas);
  return out.empty() ? "-" : out;
}

std::string device_list(const std::vector<int32_t>& devices) {
  std::string out;
  for (size_t i = 0; i < devices.size();) {
    size_t end = i + 1;  // of the arithmetic progression from i
    const int32_t step = end < devices.size() ? devices[end] - devices[i] : 0;
    while (step != 0 && end < devices.size() && devices[end] - devices[end - 1] == step) ++end;
    // Two numbers are shorter written out.
    if (end - i < 3 && !(end - i == 2 && step == 1)) end = i + 1;
    out += (out.empty() ? "" : ",") + std::to_string(devices[i]);
    if (end - i > 1) out += "-" + std::to_string(devices[end - 1]);
    if (end - i > 1 && step != 1) out += ":" + std::to_string(step);
    i = end;
  }
  return out;
}

std::string device_ranges(std::vector<int32_t> devices) {
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  std::string out;
  for (size_t i = 0; i < devices.size();) {
    size_t last = i;
    while (last + 1 < devices.size() && devices[last + 1] == devices[last] + 1) ++last;
    out += (out.empty() ? "" : ",") + std::to_string(devices[i]);
    if (last > i) out += "-" + std::to_string(devices[last]);
    i = last + 1;
  }
  return out;
}

std::string summary_text(const Plan& plan) {
  std::ostringstream out;
  out << "model       " << plan.model_path << " (" << plan.model_hash << ")\n";
  out << "machine     " << plan.machine_name << " (" << plan.machine_hash << ")\n";
  out << "devices     " << plan.num_devices << ", threads per rank " << plan.threads_per_rank << "\n";
  out << "batch       " << plan.batch << "\n";
  out << "optimizer   " << (plan.optimizer.empty() ? "none" : plan.optimizer) << ", batchnorm "
      << plan.batchnorm << ", seed " << plan.seed << "\n";
  if (!plan.options.empty()) out << "options     " << plan.options << "\n";
  if (!plan.library_versions.empty()) out << "libraries   " << plan.library_versions << "\n";
  for (const Input& input : plan.inputs)
    out << "input       " << input.name << " " << name(input.dtype) << " " << to_string(input.shape) << "\n";
  for (const std::string& output : plan.outputs) out << "output      " << output << "\n";
  int64_t trained = 0;
  for (const Parameter& parameter : plan.parameters)
    trained += parameter.kind == ParameterKind::trained ? volume(parameter.shape) : 0;
  out << "parameters  " << plan.parameters.size() << ", " << trained << " trained elements\n";
  int64_t largest = 0;
  for (const Program& program : plan.programs) largest = std::max(largest, program.arena_bytes());
  out << "memory      " << format_bytes(largest) << " on the fullest device\n";
  out << "step        " << time_text(plan.step_ns) << " predicted";
  if (plan.data_parallel_ns > 0 && plan.step_ns > 0) {
    out.precision(3);
    out << ", " << static_cast<double>(plan.data_parallel_ns) / static_cast<double>(plan.step_ns)
        << " times faster than data parallelism (" << time_text(plan.data_parallel_ns) << ")";
  }
  out << "\n";
  if (plan.num_devices == 1)
    out << "run         ffrun PLAN.soap\n";
  else
    out << "run         mpirun -n " << plan.num_devices << " ffrun PLAN.soap\n";
  return out.str();
}

std::string ops_table(const Plan& plan) {
  std::vector<std::vector<std::string>> rows = {
      {"op", "type", "degrees", "devices", "compute", "traffic", "memory", ""}};
  for (const OpSummary& op : plan.ops) {
    rows.push_back({op.op, op.type, degrees_text(op), device_ranges(op.devices), time_text(op.compute_ns),
                    format_bytes(op.traffic_bytes), format_bytes(op.memory_bytes),
                    idle_text(op, plan.num_devices)});
  }
  return text_table(rows);
}

std::string memory_table(const Plan& plan) {
  std::vector<std::vector<std::string>> rows = {{"device", "persistent", "scratch", "arena", "live peak"}};
  for (size_t d = 0; d < plan.program_of.size(); ++d) {
    const Program& program = plan.programs[static_cast<size_t>(plan.program_of[d])];
    const bool predicted = d < plan.devices.size();
    rows.push_back({std::to_string(d), format_bytes(program.persistent_bytes),
                    format_bytes(program.scratch_bytes), format_bytes(program.arena_bytes()),
                    predicted ? format_bytes(plan.devices[d].live_peak_bytes) : "-"});
  }
  std::string out = text_table(rows);
  std::map<std::string, int64_t> tensors;
  for (const int32_t p : plan.program_of) {
    for (const Buffer& buffer : plan.programs[static_cast<size_t>(p)].buffers)
      tensors[buffer.tensor.empty() ? "(workspaces)" : buffer.tensor] += buffer.bytes;
  }
  std::vector<std::pair<std::string, int64_t>> largest(tensors.begin(), tensors.end());
  std::stable_sort(largest.begin(), largest.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  largest.resize(std::min<size_t>(largest.size(), 20));
  rows = {{"tensor", "bytes over all devices (not all at once)"}};
  for (const auto& [tensor, bytes] : largest) rows.push_back({tensor, format_bytes(bytes)});
  return out + "\n" + text_table(rows);
}

}  // namespace ff
