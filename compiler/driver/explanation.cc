#include "compiler/driver/explanation.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "compiler/base/check.h"
#include "compiler/base/units.h"
#include "compiler/driver/compile.h"
#include "compiler/plan/text.h"

namespace ff {
namespace {

constexpr size_t kWidestDevices = 32;
constexpr double kSecondsBetweenLines = 2;

std::string time_text(Nanoseconds time) { return format_seconds(static_cast<double>(time) * 1e-9); }

/// Devices in order; a long list is cut.
std::string devices_text(const OpSummary& op) {
  std::string all = device_list(op.devices);
  if (all.size() <= kWidestDevices) return all;
  return all.substr(0, all.rfind(',', kWidestDevices - 8)) + ",.. (" + std::to_string(op.devices.size()) +
         ")";
}

std::string place_text(const OpSummary& op) {
  const std::string degrees = degrees_text(op);
  return (degrees == "-" ? "whole" : degrees) + " on " + devices_text(op);
}

std::string notes_of(const Alternative& a) {
  std::string out;
  for (const auto& [holds, note] : {std::pair(a.data_parallel, "data parallel"),
                                    {a.whole, "on one device"},
                                    {!a.fits, "does not fit the memory"}}) {
    if (holds) out += (out.empty() ? "" : ", ") + std::string(note);
  }
  return out;
}

/// "it computes 3.0 us less on the busiest device, sends 1.2 MiB more and keeps the busiest link 20.0 us
/// longer".
std::string effects_text(const Outcome& from, const Outcome& to) {
  const Nanoseconds compute = to.compute - from.compute, link = to.link - from.link;
  const int64_t sent = to.sent_bytes - from.sent_bytes;
  std::vector<std::string> parts;
  if (compute != 0) {
    parts.push_back("computes " + time_text(std::abs(compute)) + (compute > 0 ? " more" : " less") +
                    " on the busiest device");
  }
  if (sent != 0) parts.push_back("sends " + format_bytes(std::abs(sent)) + (sent > 0 ? " more" : " less"));
  if (link != 0) {
    parts.push_back("keeps the busiest link " + time_text(std::abs(link)) +
                    (link > 0 ? " longer" : " less long"));
  }
  if (parts.empty()) return "it computes and sends as much";
  std::string out = "it " + parts[0];
  for (size_t i = 1; i < parts.size(); ++i) out += (i + 1 < parts.size() ? ", " : " and ") + parts[i];
  return out;
}

/// Why it takes longer although it does no more: what it does waits.
std::string waits_text(const Outcome& from, const Outcome& to) {
  const bool more = to.compute > from.compute || to.link > from.link || to.sent_bytes > from.sent_bytes;
  return more ? "." : ", but waits longer.";
}

std::vector<std::string> row_of(const Explanation& e, const Alternative& a, const Problem& problem) {
  const OpSummary op = summary_of(problem, e.op, a.config);
  const Outcome &o = a.outcome, &base = e.chosen.outcome;
  std::vector<std::string> row;
  if (&a == &e.chosen) {
    row = {"* ",
           "",
           time_text(o.compute),
           time_text(o.link),
           format_bytes(o.sent_bytes),
           format_bytes(o.memory_bytes)};
  } else {
    row = {"  ",
           format_time_difference(o.step - base.step),
           format_time_difference(o.compute - base.compute),
           format_time_difference(o.link - base.link),
           format_byte_difference(o.sent_bytes - base.sent_bytes),
           format_byte_difference(o.memory_bytes - base.memory_bytes)};
  }
  row[0] += degrees_text(op);
  row.insert(row.begin() + 1, {devices_text(op), time_text(o.step)});
  row.push_back(notes_of(a));
  return row;
}

std::string conclusion(const Explanation& e, const Problem& problem) {
  const auto best =
      std::find_if(e.others.begin(), e.others.end(), [](const Alternative& a) { return a.fits; });
  if (best == e.others.end()) return "No other config fits the memory.";
  const std::string ours = place_text(summary_of(problem, e.op, e.chosen.config));
  const std::string theirs = place_text(summary_of(problem, e.op, best->config));
  const Nanoseconds longer = best->outcome.step - e.chosen.outcome.step;
  const std::string effects = effects_text(e.chosen.outcome, best->outcome);
  if (longer > 0) {
    return ours + " wins: the next, " + theirs + ", takes " + time_text(longer) + " longer; " + effects +
           waits_text(e.chosen.outcome, best->outcome);
  }
  if (longer == 0) return theirs + " takes as long as " + ours + "; " + effects + ".";
  return theirs + " is faster than " + ours + ", the chosen config, by " + time_text(-longer) + "; " +
         effects + ".\nA longer search (--proposals, --budget) may find it; --strategy can give it.";
}

}  // namespace

std::vector<OpId> find_ops(const std::vector<std::string>& names, const Problem& problem) {
  std::vector<OpId> ops;
  ops.reserve(names.size());
  for (const std::string& name : names) ops.push_back(find_op(name, problem));
  return ops;
}

void refuse_without_search(const std::string& option) {
  if (option != "--dry-run" && option != "--emit graph" && option != "--emit training-graph") return;
  throw UserError("--explain needs a strategy, and " + option + " stops before there is one",
                  "--emit strategy stops when there is one, and writes no plan");
}

std::string explanation_text(const Explanation& e, const Problem& problem) {
  std::ostringstream out;
  const Op& op = problem.graph().op(e.op);
  out << op.name << " (" << op.type << "), all else as it is; ";
  if (e.tried == 0) {
    out << "no other config is possible\n";
    return out.str();
  }
  out << e.tried << (e.tried == 1 ? " other config" : " other configs") << " tried\n\n";
  std::vector<std::vector<std::string>> rows = {
      {"  config", "devices", "step", "difference", "compute", "link", "sent", "memory", ""}};
  bool done = false;  // with the chosen one, which comes before those that take as long
  for (const Alternative& a : e.others) {
    if (!done && a.outcome.step >= e.chosen.outcome.step) {
      rows.push_back(row_of(e, e.chosen, problem));
      done = true;
    }
    rows.push_back(row_of(e, a, problem));
  }
  if (!done) rows.push_back(row_of(e, e.chosen, problem));
  out << text_table(rows) << "\n";
  if (e.misfits > 0) out << "Left out: " << e.misfits << " as fast as these that would not fit the memory.\n";
  out << conclusion(e, problem) << "\n";
  return out.str();
}

std::string explanations_text(const std::vector<OpId>& ops, const Strategy& strategy, const Problem& problem,
                              const Machine& machine, CostModel& costs, const SearchOptions& options) {
  if (ops.empty()) return "";
  SearchOptions o = options;
  o.progress = [last = 0.0](const SearchProgress& p) mutable {
    if (p.seconds >= last && p.seconds - last < kSecondsBetweenLines) return;
    last = p.seconds;
    std::fprintf(stderr, "explain: %ld other configs tried, fastest step %s\n",
                 static_cast<long>(p.proposals), time_text(p.best).c_str());
  };
  Explainer explainer(problem, machine, costs, o);
  std::string out;
  for (OpId op : ops) out += explanation_text(explainer.explain(strategy, op), problem) + "\n";
  return out +
         "*: the chosen config; compute, link, sent and memory of the others are differences from its. "
         "compute: of\n"
         "the busiest device; link: of the busiest link or port; sent: by all devices; memory: live peak of "
         "the\n"
         "fullest device. Updates of an op's weights follow it.\n\n";
}

}  // namespace ff
