#include "compiler/partition/strategy_text.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>

#include "compiler/base/check.h"
#include "compiler/base/spelling.h"
#include "compiler/partition/strategy.pb.h"
#include "compiler/plan/text.h"

namespace ff {
namespace {

constexpr int64_t kMostDevices = 1 << 16;

std::string hex(uint64_t hash) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string out;
  for (int shift = 60; shift >= 0; shift -= 4) out += kDigits[(hash >> shift) & 15];
  return out;
}

class Errors : public google::protobuf::io::ErrorCollector {
 public:
  explicit Errors(std::string source) : source_(std::move(source)) {}
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    if (!first_.empty()) return;
    first_ = source_ + ":" + std::to_string(line + 1) + ":" + std::to_string(column + 1) + ": " + message;
  }
  const std::string& first() const { return first_; }

 private:
  std::string source_, first_;
};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string where(const std::string& source, const std::string& op) { return source + ": op '" + op + "': "; }

Config config_of(const Problem& problem, OpId op, const strategy::Op& said, const std::string& source) {
  const OpSpace& space = problem.space(op);
  const std::string& name = problem.graph().op(op).name;
  Config config{.degrees = std::vector<int32_t>(space.dims.size(), 1),
                .replicas = said.replicas(),
                .devices = parse_devices(said.devices(), where(source, name) + "devices")};
  for (const strategy::Degree& degree : said.degree()) {
    const int dim = space.dim_index(degree.dim());
    if (dim < 0) {
      std::vector<std::string> names;
      for (const IterDim& d : space.dims) names.push_back(d.name);
      std::string all;
      for (const std::string& n : names) all += (all.empty() ? "" : ", ") + n;
      throw UserError(where(source, name) + "has no dimension '" + degree.dim() + "'",
                      "its dimensions are: " + all);
    }
    config.degrees[static_cast<size_t>(dim)] = degree.by();
  }
  try {
    problem.check(op, config);
  } catch (const UserError& error) {
    throw UserError(source + ": " + error.what(), error.hint());
  }
  return config;
}

/// The default, as far as this op allows it.
Config default_config(const Problem& problem, OpId op, const strategy::Op& said, const std::string& source) {
  Config config{.degrees = std::vector<int32_t>(problem.space(op).dims.size(), 1),
                .replicas = said.replicas(),
                .devices = parse_devices(said.devices(), source + ": default: devices")};
  for (const strategy::Degree& degree : said.degree()) {
    const int dim = problem.space(op).dim_index(degree.dim());
    if (dim < 0) continue;
    const auto d = static_cast<size_t>(dim);
    config.degrees[d] = static_cast<int32_t>(std::min<int64_t>(degree.by(), problem.max_degree(op, d)));
  }
  const auto cells = static_cast<size_t>(std::max<int64_t>(0, config.num_cells()));
  if (config.devices.size() > cells) config.devices.resize(cells);
  try {
    problem.check(op, config);
  } catch (const UserError& error) {
    throw UserError(source + ": default: " + error.what(), error.hint());
  }
  return config;
}

void compare_hash(bool has, const std::string& said, uint64_t expected, const char* what,
                  const std::string& source, std::vector<std::string>& warnings) {
  if (!has || said == hex(expected)) return;
  warnings.push_back(source + ": was made for another " + what + " (hash " + said + ", this one's is " +
                     hex(expected) + ")");
}

int64_t parse_integer(const std::string& text, const std::string& what) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && std::abs(value) < kMostDevices)
    return value;
  throw UserError(what + ": '" + text + "' is no device number", "write a list such as 0-3, 0-60:4 or 5,2,7");
}

}  // namespace

std::string devices_to_text(const std::vector<DeviceId>& devices) {
  std::vector<int32_t> numbers;
  numbers.reserve(devices.size());
  for (DeviceId device : devices) numbers.push_back(device.value);
  return device_list(numbers);
}

std::vector<DeviceId> parse_devices(const std::string& text, const std::string& what) {
  std::vector<DeviceId> devices;
  for (size_t at = 0; at < text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    std::string part = text.substr(at, comma - at);
    at = comma + 1;
    part.erase(std::remove(part.begin(), part.end(), ' '), part.end());
    int64_t step = 1;
    if (const size_t colon = part.find(':'); colon != std::string::npos) {
      step = parse_integer(part.substr(colon + 1), what);
      part.resize(colon);
    }
    const size_t dash = part.find('-', 1);
    const int64_t first = parse_integer(part.substr(0, dash), what);
    const int64_t last = dash == std::string::npos ? first : parse_integer(part.substr(dash + 1), what);
    if (first < 0 || last < 0 || step == 0 || (last - first) / step < 0 ||
        (last != first && (last > first) != (step > 0))) {
      throw UserError(what + ": '" + text + "' is no device list",
                      "write a list such as 0-3, 0-60:4 or 5,2,7");
    }
    for (int64_t d = first; step > 0 ? d <= last : d >= last; d += step) devices.emplace_back(d);
  }
  return devices;
}

std::string to_text(const Strategy& strategy, const Problem& problem, const StrategyHashes& hashes) {
  std::string out =
      "model_hash: \"" + hex(hashes.model) + "\"\nmachine_hash: \"" + hex(hashes.machine) + "\"\n";
  for (OpId op : problem.leaders()) {
    const Config& config = strategy.configs[op.index()];
    out += "op { name: " + quoted(problem.graph().op(op).name);
    for (size_t d = 0; d < config.degrees.size(); ++d) {
      if (config.degrees[d] == 1) continue;
      out += " degree { dim: " + quoted(problem.space(op).dims[d].name) +
             " by: " + std::to_string(config.degrees[d]) + " }";
    }
    if (config.replicas != 1) out += " replicas: " + std::to_string(config.replicas);
    out += " devices: \"" + devices_to_text(config.devices) + "\" }\n";
  }
  return out;
}

Strategy parse_strategy(const std::string& text, const std::string& source, const Problem& problem,
                        const StrategyHashes& expected, std::vector<std::string>& warnings) {
  strategy::Strategy said;
  Errors errors(source);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  if (!parser.ParseFromString(text, &said)) throw UserError(errors.first());
  compare_hash(said.has_model_hash(), said.model_hash(), expected.model, "model", source, warnings);
  compare_hash(said.has_machine_hash(), said.machine_hash(), expected.machine, "machine", source, warnings);

  std::map<std::string, OpId> by_name;
  std::vector<std::string> names;
  for (OpId op : problem.leaders()) {
    names.push_back(problem.graph().op(op).name);
    by_name.emplace(names.back(), op);
  }
  Strategy strategy{std::vector<Config>(problem.graph().ops.size())};
  std::vector<bool> seen(problem.graph().ops.size());
  for (const strategy::Op& op : said.op()) {
    const auto at = by_name.find(op.name());
    if (at == by_name.end()) {
      throw UserError(source + ": the model has no op '" + op.name() + "' with a config of its own",
                      "did you mean '" + nearest(op.name(), names) + "'?");
    }
    if (seen[at->second.index()]) throw UserError(where(source, op.name()) + "is listed twice");
    seen[at->second.index()] = true;
    strategy.configs[at->second.index()] = config_of(problem, at->second, op, source);
  }
  for (OpId op : problem.leaders()) {
    if (seen[op.index()]) continue;
    if (!said.has_default_()) {
      throw UserError(source + ": op '" + problem.graph().op(op).name + "' is missing",
                      "list it, or add: default { devices: \"0\" }");
    }
    strategy.configs[op.index()] = default_config(problem, op, said.default_(), source);
  }
  return strategy;
}

}  // namespace ff
