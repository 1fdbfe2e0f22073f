// What was measured, for a person and as a machine file.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "compiler/base/units.h"
#include "tools/fftopo/measure.h"
#include "tools/fftopo/topology.h"

namespace ff {
namespace {

constexpr int kDigits = 3;

void append_times(const std::string& what, const std::vector<TimedMessage>& times, std::ostringstream& out) {
  if (times.empty()) return;
  const Line line = fit_line(times);
  out << what << ": latency " << format_seconds(line.latency) << ", bandwidth "
      << number_text(line.bandwidth / 1e9, kDigits) << " GB/s\n";
  for (const TimedMessage& t : times) {
    char text[96];
    std::snprintf(text, sizeof text, "  %10s %12s  fitted %12s", format_bytes(t.bytes).c_str(),
                  format_seconds(t.seconds).c_str(),
                  format_seconds(line.at(static_cast<double>(t.bytes))).c_str());
    out << text << "\n";
  }
}

/// The line of the slowest messages in a ring of all ranks.
Line slowest(const Measured& m) {
  if (m.between.empty()) return fit_line(m.inside);
  Line line = fit_line(m.between);
  if (!m.inside.empty()) line.bandwidth = std::min(line.bandwidth, fit_line(m.inside).bandwidth);
  return line;
}

/// What the machine asks for an all-reduce: 2 (n - 1) rounds of an n-th each, of which every second is
/// summed.
double ring_seconds(const Measured& m, double bytes, double reduction) {
  const double n = m.ranks(), part = bytes / n;
  const double sums = reduction > 0 ? (n - 1) * 2 * part / reduction : 0;
  return 2 * (n - 1) * slowest(m).at(part) + sums;
}

std::string nanoseconds(double seconds) { return std::to_string(std::llround(std::max(0.0, seconds) * 1e9)); }

/// Whether the ranks of a host follow each other, as the devices of a machine file do.
bool host_by_host(const Measured& m) {
  size_t changes = 1;
  for (size_t r = 1; r < m.host_of_rank.size(); ++r) changes += m.host_of_rank[r] != m.host_of_rank[r - 1];
  return changes == m.ranks_by_host().size();
}

std::string node_text(const Measured& m, int ranks, int count) {
  std::ostringstream out;
  out << "node {\n  count: " << count << "\n  device { kind: \"cpu-core\" count: " << ranks << " }\n";
  const auto link = [&](const char* kind, const std::string& from, const char* to, double bandwidth,
                        double latency) {
    out << "  link { kind: " << kind << " from: \"" << from << "\" to: \"" << to
        << "\" bandwidth: " << number_text(bandwidth, kDigits) << " latency_ns: " << nanoseconds(latency)
        << " }\n";
  };
  const Line inside = m.inside.empty() ? Line{} : fit_line(m.inside);
  if (!m.inside.empty()) link("HOST_MEMORY", "cpu*", "host", inside.bandwidth, inside.latency / 2);
  if (!m.between.empty()) {
    // From host to host a message passes the links of both hosts' memories, if there are any, and both
    // cards'.
    const Line between = fit_line(m.between);
    link("NIC", m.inside.empty() ? "cpu0" : "host", "network", between.bandwidth,
         (between.latency - inside.latency) / 2);
  }
  out << "}\n";
  return out.str();
}

}  // namespace

double reduction_rate(const Measured& m) {
  // Least squares of relative errors, of what messages alone leave over.
  double right = 0, squares = 0;
  for (const TimedMessage& t : m.all_reduce) {
    const double bytes = static_cast<double>(t.bytes);
    right += (t.seconds - ring_seconds(m, bytes, 0)) * bytes / (t.seconds * t.seconds);
    squares += bytes * bytes / (t.seconds * t.seconds);
  }
  const double n = m.ranks();
  return right > 0 ? (n - 1) * 2 / n * squares / right : 0;
}

std::string measured_facts(const Measured& m) {
  std::ostringstream out;
  out << "measured: " << m.ranks() << " ranks on " << m.ranks_by_host().size()
      << (m.ranks_by_host().size() == 1 ? " host (" : " hosts (") << m.host.processor << ")\n"
      << "each rank, all at work: " << number_text(m.host.rates.flops / 1e9, kDigits)
      << " GFLOP/s of fused multiply-adds, " << number_text(m.host.rates.copied / 1e9, kDigits)
      << " GB/s copied\n";
  append_times("messages inside a host, both ways at once", m.inside, out);
  append_times("messages between hosts, both ways at once", m.between, out);
  const double reduction = reduction_rate(m);
  out << "all-reduce of all ranks, and the price of the machine file:\n";
  for (const TimedMessage& t : m.all_reduce) {
    char text[96];
    std::snprintf(text, sizeof text, "  %10s %12s  priced %12s", format_bytes(t.bytes).c_str(),
                  format_seconds(t.seconds).c_str(),
                  format_seconds(ring_seconds(m, static_cast<double>(t.bytes), reduction)).c_str());
    out << text << "\n";
  }
  for (const std::string& note : m.host.notes) out << "note: " << note << "\n";
  if (!host_by_host(m)) {
    out << "note: ranks went from host to host in turn; devices count host by host: start ffrun with "
           "--map-by slot\n";
  }
  return out.str();
}

std::string measured_machine_text(const Measured& m) {
  std::string text = core_kind_text(m.host);
  const std::vector<int> ranks = m.ranks_by_host();
  for (size_t h = 0; h < ranks.size();) {
    size_t end = h;
    while (end < ranks.size() && ranks[end] == ranks[h]) ++end;
    text += node_text(m, ranks[h], static_cast<int>(end - h));
    h = end;
  }
  // Where ranks share memory they copy messages themselves; a network takes a part of the core beside.
  const bool holds = !m.inside.empty();
  text +=
      "# overlap_slowdown is an estimate; a copy's rate is that of copies on all cores at once.\nrefinements "
      "{\n";
  text +=
      holds ? "  collectives: true message_holds_device: true" : "  collectives: true overlap_slowdown: 1.1";
  text += " copy_bandwidth: " + number_text(m.host.rates.copied, kDigits);
  const double reduction = reduction_rate(m);
  if (reduction > 0) text += " reduction_bandwidth: " + number_text(reduction, kDigits);
  return text + "\n}\n";
}

}  // namespace ff
