// nccl-tests output: who took part, and a table of times, among whatever else a log holds.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "compiler/base/check.h"
#include "compiler/base/units.h"
#include "tools/fftopo/topology.h"

namespace ff {
namespace {

struct Timing {
  double microseconds = 0, algorithm = 0, bus = 0;  // gigabytes per second
};

struct Result {
  int64_t bytes = 0, count = 0;
  std::string type, operation;
  std::optional<Timing> out_of_place, in_place;
};

struct Run {
  std::map<int, std::string> host_of;  // by rank
  std::string gpu_name, collective, average;
  std::vector<Result> results;
  int averages = 0;

  double best_bus() const;
  double least_seconds() const;
};

template <typename T>
std::optional<T> parsed(const std::string& word) {
  T value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

std::optional<Timing> read_timing(const std::vector<std::string>& words, size_t at) {
  if (at + 3 > words.size()) return std::nullopt;
  const auto time = parsed<double>(words[at]), algorithm = parsed<double>(words[at + 1]),
             bus = parsed<double>(words[at + 2]);
  if (!time || !algorithm || !bus) return std::nullopt;
  return Timing{*time, *algorithm, *bus};
}

/// size count type [operation] [root] time algbw busbw wrong [time algbw busbw wrong]
std::optional<Result> read_result(const std::vector<std::string>& words) {
  if (words.size() < 7) return std::nullopt;
  const auto bytes = parsed<int64_t>(words[0]), count = parsed<int64_t>(words[1]);
  if (!bytes || !count || parsed<double>(words[2])) return std::nullopt;
  Result result{*bytes, *count, words[2], {}, {}, {}};
  size_t at = 3;
  if (!parsed<double>(words[at])) result.operation = words[at++];
  if ((words.size() - at) % 4 == 1) ++at;  // the root; old versions have none
  result.out_of_place = read_timing(words, at);
  result.in_place = read_timing(words, at + 4);
  if (!result.out_of_place && !result.in_place) return std::nullopt;
  return result;
}

/// "Rank  3 Group  0 Pid 6902 on node-0 device  3 [0000:0c:00] NVIDIA H100 80GB HBM3"
void read_rank(const std::vector<std::string>& words, Run& run) {
  const auto rank = std::find(words.begin(), words.end(), "Rank");
  const auto on = std::find(rank, words.end(), "on");
  const auto device = std::find(on, words.end(), "device");
  if (words.end() - rank < 2 || words.end() - on < 2 || words.end() - device < 4) return;
  const auto number = parsed<int>(*(rank + 1));
  if (!number || !run.host_of.emplace(*number, *(on + 1)).second || !run.gpu_name.empty()) return;
  for (auto word = device + 3; word != words.end(); ++word)
    run.gpu_name += (run.gpu_name.empty() ? "" : " ") + *word;
}

void read_collective(const std::string& line, Run& run) {
  const size_t at = line.find("_perf");
  if (at == std::string::npos || !run.collective.empty()) return;
  size_t start = at;
  while (start > 0 &&
         (std::islower(static_cast<unsigned char>(line[start - 1])) != 0 || line[start - 1] == '_'))
    --start;
  run.collective = line.substr(start, at - start);
}

/// Where no command line shows it: the ratio of bus to algorithm bandwidth tells collectives apart.
void guess_collective(Run& run) {
  if (!run.collective.empty() || run.results.empty()) return;
  const Result& largest = run.results.back();
  const Timing& t = largest.out_of_place ? *largest.out_of_place : *largest.in_place;
  const double ratio = t.algorithm > 0 ? t.bus / t.algorithm : 0, n = static_cast<double>(run.host_of.size());
  const bool reduces = largest.operation != "none" && !largest.operation.empty();
  const auto near = [&](double wanted) { return std::abs(ratio - wanted) < 0.03; };
  if (reduces) {
    // Two ranks have the same ratio for both, but only a reduce-scatter's count is a part of its size.
    run.collective = near((n - 1) / n) && !near(2 * (n - 1) / n) ? "reduce_scatter" : "all_reduce";
  } else {
    run.collective = near((n - 1) / n) ? "all_gather" : "broadcast";
  }
}

Run read_run(const std::string& text) {
  Run run;
  for (const std::string& line : clean_lines(text)) {
    const std::vector<std::string> words = words_of(line);
    read_collective(line, run);
    if (line.find(" Pid ") != std::string::npos) read_rank(words, run);
    if (const size_t at = line.find("Avg bus bandwidth"); at != std::string::npos && !words.empty()) {
      run.average = words.back();
      ++run.averages;
    }
    const std::optional<Result> result = read_result(words);
    if (result && result->bytes > 0) run.results.push_back(*result);
  }
  std::stable_sort(run.results.begin(), run.results.end(),
                   [](const Result& a, const Result& b) { return a.bytes < b.bytes; });
  guess_collective(run);
  return run;
}

double Run::best_bus() const {
  double best = 0;
  for (const Result& r : results) {
    for (const auto& t : {r.out_of_place, r.in_place}) best = std::max(best, t ? t->bus : 0);
  }
  return best * 1e9;
}

double Run::least_seconds() const {
  double least = 1e9;
  for (const Result& r : results) {
    if (r.bytes != results[0].bytes) break;
    for (const auto& t : {r.out_of_place, r.in_place})
      least = std::min(least, t ? t->microseconds * 1e-6 : least);
  }
  return least;
}

int count_hosts(const Run& run, const std::string& source) {
  std::map<std::string, int> gpus;
  for (const auto& [rank, host] : run.host_of) ++gpus[host];
  for (const auto& [host, count] : gpus) {
    if (count == gpus.begin()->second) continue;
    throw UserError(source + ": " + host + " has " + std::to_string(count) + " GPUs, " + gpus.begin()->first +
                        " " + std::to_string(gpus.begin()->second),
                    "import a run that has the same number on each, or write the machine file by hand");
  }
  return static_cast<int>(gpus.size());
}

// Times of larger messages say little about latency, bandwidths of smaller ones little about links.
constexpr int64_t kLargestForLatency = 64 << 10, kSmallestForBandwidth = 1 << 20;

void append_timing(const std::optional<Timing>& t, std::string& line) {
  char text[64];
  if (t) {
    std::snprintf(text, sizeof text, "%12.1f%9.2f%9.2f", t->microseconds, t->algorithm, t->bus);
  } else {
    std::snprintf(text, sizeof text, "%12s%9s%9s", "-", "-", "-");
  }
  line += text;
}

std::string table_text(const Run& run) {
  std::string text =
      "        bytes |  out of place: us     alg      bus |    in place: us     alg      bus (GB/s)\n";
  for (const Result& r : run.results) {
    char bytes[24];
    std::snprintf(bytes, sizeof bytes, "%13lld |", static_cast<long long>(r.bytes));
    std::string line = bytes;
    append_timing(r.out_of_place, line);
    line += " |";
    append_timing(r.in_place, line);
    text += line + "\n";
  }
  return text;
}

std::string facts_of(const Run& run, int hosts, const std::string& source) {
  std::ostringstream out;
  const size_t ranks = run.host_of.size();
  const Result& last = run.results.back();
  out << "nccl-tests output: " << source << "\n";
  out << "GPUs: " << ranks << " on " << hosts << (hosts == 1 ? " node" : " nodes") << ", "
      << ranks / static_cast<size_t>(hosts) << " each (" << run.gpu_name << ")\n";
  out << "collective: " << run.collective << ", " << run.results.size() << " sizes\n" << table_text(run);
  if (last.bytes >= kSmallestForBandwidth) {
    out << "largest, " << format_bytes(last.bytes) << ": bus bandwidth";
    if (last.out_of_place) out << " " << number_text(last.out_of_place->bus) << " GB/s out of place";
    if (last.in_place)
      out << (last.out_of_place ? "," : "") << " " << number_text(last.in_place->bus) << " GB/s in place";
    out << "\npeak bus bandwidth: " << number_text(run.best_bus() / 1e9) << " GB/s\n";
  } else {
    out << "bandwidth: not measured, the largest message is " << format_bytes(last.bytes) << "\n";
  }
  if (run.averages == 1) {
    out << "average bus bandwidth, small messages included: " << run.average << " GB/s\n";
  } else if (run.averages > 1) {
    out << "average bus bandwidth: none of the whole, " << run.averages << " runs have their own\n";
  }
  if (run.results[0].bytes <= kLargestForLatency) {
    out << "latency: " << format_seconds(run.least_seconds()) << " for " << format_bytes(run.results[0].bytes)
        << "\n";
  } else {
    out << "latency: not measured, the smallest message is " << format_bytes(run.results[0].bytes) << "\n";
  }
  return out.str();
}

/// Rounds of the ring that a collective is priced as, each with one message's latency.
double rounds_of(const Run& run) {
  const double n = static_cast<double>(run.host_of.size());
  return std::max(1.0, run.collective == "all_reduce" ? 2 * (n - 1) : n - 1);
}

/// A star in each node, and a link from it to the network that carries what all GPUs of the node send: the
/// slowest of them gives the bandwidth that was measured.
std::string nodes_of(const Run& run, int hosts, const GpuKind& kind, const ImportOptions& options) {
  const size_t each = run.host_of.size() / static_cast<size_t>(hosts);
  const bool measured = run.results.back().bytes >= kSmallestForBandwidth;
  const double assumed = std::max(kind.nvlink * 12, kind.pcie);
  const double bus = measured ? run.best_bus() : hosts > 1 ? options.nic_gbits * 1e9 / 8 : kind.pcie;
  const double inside = hosts > 1 ? std::max(bus, assumed) : bus;
  const bool latency_known = run.results[0].bytes <= kLargestForLatency;
  const double hop = latency_known ? run.least_seconds() * 1e9 / rounds_of(run) : 4000;
  const int links = hosts > 1 && each > 1 ? 4 : 2;  // of the longest route
  const std::string latency = " latency_ns: " + std::to_string(std::llround(hop / links)) + " }\n";
  const auto link = [&](const char* kind_name, const std::string& from, const std::string& to,
                        double bandwidth) {
    return std::string("  link { kind: ") + kind_name + " from: \"" + from + "\" to: \"" + to +
           "\" bandwidth: " + number_text(bandwidth) + latency;
  };
  std::string text = "node {\n  count: " + std::to_string(hosts) + "\n  device { kind: \"" + kind.name +
                     "\" count: " + std::to_string(each) + " }\n";
  if (each > 1) text += "  switch: \"fabric\"\n";
  if (each > 1) text += link(inside > 60e9 ? "NVLINK" : "PCIE", "gpu*", "fabric", inside);
  if (hosts > 1) text += link("NIC", each > 1 ? "fabric" : "gpu0", "network", bus);
  return text + "}\n";
}

}  // namespace

Imported import_nccl_tests(const std::string& text, const std::string& source, const ImportOptions& options) {
  const Run run = read_run(text);
  const std::string whole = "paste the whole output, from '# nThread' to 'Avg bus bandwidth'";
  if (run.results.empty()) throw UserError(source + ": nccl-tests output without a line of results", whole);
  if (run.host_of.empty()) {
    throw UserError(source + ": nccl-tests output without 'Rank' lines: nothing says which GPUs took part",
                    whole);
  }
  const int hosts = count_hosts(run, source);
  const GpuKind* known = find_gpu_name(run.gpu_name);
  const GpuKind& kind = !options.gpu.empty() ? gpu_kind(options.gpu)
                        : known != nullptr   ? *known
                                             : gpu_kind("a100");
  std::string facts = facts_of(run, hosts, source);
  if (options.gpu.empty() && known == nullptr) {
    facts += "note: '" + run.gpu_name + "' is not known: taken for " + kind.name + "; say it with --gpu\n";
  }
  if (run.results.back().bytes < kSmallestForBandwidth) {
    facts +=
        "note: bandwidths in the machine file are assumed: of the GPUs' kind, and of the network "
        "--nic-gbits\n";
  } else if (hosts > 1 && run.host_of.size() > static_cast<size_t>(hosts)) {
    facts +=
        "note: the bandwidth that was measured is the slowest link's, the network's: inside a node it is "
        "assumed, of the GPUs' kind\n";
  }
  const std::string rest =
      device_kind_text(kind) + nodes_of(run, hosts, kind, options) + "refinements { collectives: true }\n";
  return {facts, machine_file(source, facts, rest)};
}

}  // namespace ff
