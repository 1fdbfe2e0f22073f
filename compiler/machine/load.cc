// Names and files: which text a machine is, with how many nodes or devices.
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/base/check.h"
#include "compiler/base/spelling.h"
#include "compiler/machine/builder.h"

namespace ff {
namespace {

/// Keeps the first error; protobuf counts lines and columns from 0.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    if (!text_.empty()) return;
    text_ = (line < 0 ? "" : std::to_string(line + 1) + ":" + std::to_string(column + 1) + ": ") + message;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

machine::MachineFile parse(const std::string& text, const std::string& source) {
  machine::MachineFile file;
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (!parser.ParseFromString(text, &file)) throw UserError(source + ":" + error.text());
  return file;
}

int written_devices(const machine::NodeGroup& group) {
  int n = 0;
  for (const machine::DeviceGroup& d : group.device()) n += d.has_count() ? d.count() : 1;
  return n;
}

/// Keeps the first `wanted` nodes; if there are fewer, the last kind of node is repeated.
void take_nodes(machine::MachineFile& file, int64_t wanted) {
  int64_t left = wanted;
  int groups = 0;
  while (groups < file.node_size() && left > 0) {
    machine::NodeGroup& group = *file.mutable_node(groups++);
    const int64_t count = group.has_count() ? group.count() : 1;
    const int64_t taken = groups == file.node_size() ? left : std::min(count, left);
    if (taken != count) group.set_count(static_cast<int32_t>(taken));
    left -= taken;
  }
  file.mutable_node()->DeleteSubrange(groups, file.node_size() - groups);
}

/// Fills nodes in order; the last one may be used in part. A single node that no network joins grows instead.
void take_devices(machine::MachineFile& file, int64_t wanted) {
  if (file.node_size() == 0) return;
  machine::NodeGroup& only = *file.mutable_node(0);
  const bool networked = std::any_of(only.link().begin(), only.link().end(), [](const machine::Link& l) {
    return l.from() == "network" || l.to() == "network";
  });
  if (file.node_size() == 1 && !networked && only.device_size() == 1) {
    only.mutable_device(0)->set_count(static_cast<int32_t>(wanted));
    return;
  }
  int64_t nodes = 0, left = wanted;
  int kind = 0;
  for (; kind < file.node_size(); ++kind) {
    const machine::NodeGroup& group = file.node(kind);
    const int64_t each = written_devices(group);
    if (each <= 0) return;  // the builder says what is wrong
    const int64_t count = kind + 1 == file.node_size() ? left / each : group.has_count() ? group.count() : 1;
    const int64_t whole = std::min(count, left / each);
    nodes += whole;
    left -= whole * each;
    if (left == 0 || whole < count || kind + 1 == file.node_size()) break;
  }
  if (left == 0) return take_nodes(file, nodes);
  machine::NodeGroup partial = file.node(std::min(kind, file.node_size() - 1));
  partial.set_count(1);
  partial.set_use(static_cast<int32_t>(left));
  if (nodes == 0) {
    file.clear_node();
  } else {
    take_nodes(file, nodes);
  }
  *file.add_node() = partial;
}

void apply_variant(machine::MachineFile& file, const std::string& variant, const std::string& whole) {
  const size_t equals = variant.find('=');
  const std::string key = variant.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : variant.substr(equals + 1);
  int64_t n = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), n);
  const bool number = !value.empty() && end == value.data() + value.size() &&
                      (error == std::errc{} || error == std::errc::result_out_of_range);
  if ((key != "nodes" && key != "devices") || !number || (error == std::errc{} && n < 1)) {
    throw UserError("machine '" + whole + "': '" + variant +
                    "' is neither nodes=K nor devices=K with K of 1 or more");
  }
  if (error != std::errc{} || n > kMaxDevices) {
    throw UserError("machine '" + whole + "': " + variant + " is more than the " +
                    std::to_string(kMaxDevices) + " that a machine may have");
  }
  key == "nodes" ? take_nodes(file, n) : take_devices(file, n);
  file.set_name(file.name() + ":" + variant);
}

[[noreturn]] void fail_unknown(const std::string& name) {
  throw UserError("machine '" + name + "' is neither a preset nor a file; the nearest preset is '" +
                      nearest(name, preset_names()) + "'",
                  "ffcompile --list-presets prints all of them");
}

/// The text of a preset or file; false if there is none of that name.
bool find_text(const std::string& name, std::string& text) {
  const std::vector<std::string> names = preset_names();
  if (std::find(names.begin(), names.end(), name) != names.end()) {
    text = preset_text(name);
    return true;
  }
  if (std::filesystem::is_directory(name)) throw UserError(name + ": is a folder, not a machine file");
  std::ifstream in(name, std::ios::binary);
  if (!in) return false;
  std::stringstream all;
  all << in.rdbuf();
  if (!in || all.bad()) throw UserError(name + ": cannot be read as a machine file");
  text = all.str();
  return true;
}

}  // namespace

Machine parse_machine(const std::string& text, const std::string& source) {
  const machine::MachineFile file = parse(text, source);
  return MachineBuilder(file, source).build();
}

Machine load_machine(const std::string& file_or_preset) {
  std::string text;
  if (find_text(file_or_preset, text)) return parse_machine(text, file_or_preset);
  const size_t colon = file_or_preset.rfind(':');
  const std::string name = file_or_preset.substr(0, colon);
  if (colon == std::string::npos || !find_text(name, text)) fail_unknown(name);
  machine::MachineFile file = parse(text, name);
  apply_variant(file, file_or_preset.substr(colon + 1), file_or_preset);
  return MachineBuilder(file, file_or_preset).build();
}

}  // namespace ff
