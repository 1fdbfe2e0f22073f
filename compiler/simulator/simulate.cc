// Full simulation, and what follows from a timeline: memory, busy time.

#include <algorithm>
#include <queue>

#include "compiler/base/check.h"
#include "compiler/simulator/memory.h"
#include "compiler/simulator/parts.h"

namespace ff {

Timeline simulate(const TaskGraph& graph) {
  const size_t n = graph.tasks.size();
  Timeline out;
  out.ready.assign(n, 0);
  out.start.assign(n, 0);
  out.end.assign(n, 0);
  out.order.reserve(n);
  std::vector<Nanoseconds> free(static_cast<size_t>(graph.num_resources), 0);
  std::vector<int32_t> waiting = graph.predecessors;
  using Entry = std::pair<Nanoseconds, int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  for (size_t i = 0; i < n; ++i) {
    if (waiting[i] == 0) queue.emplace(0, static_cast<int32_t>(i));
  }
  while (!queue.empty()) {
    const auto [ready, task] = queue.top();
    queue.pop();
    const auto t = static_cast<size_t>(task);
    const Nanoseconds duration = graph.tasks[t].duration;
    const Nanoseconds end = occupy(graph.resources[t], graph.first_link, ready, duration, free);
    out.ready[t] = ready;
    out.start[t] = end - duration;
    out.end[t] = end;
    out.makespan = std::max(out.makespan, end);
    out.order.push_back(task);
    for (int32_t next : graph.successors[t]) {
      const auto s = static_cast<size_t>(next);
      out.ready[s] = std::max(out.ready[s], end);
      if (--waiting[s] == 0) queue.emplace(out.ready[s], next);
    }
  }
  FF_CHECK_EQ(out.order.size(), n) << "tasks wait for each other in a circle";
  return out;
}

Simulator::Simulator(const Problem& problem, const Machine& machine, CostModel& costs)
    : problem_(problem), machine_(machine), parts_(std::make_unique<Parts>(problem, machine, costs)) {}

Simulator::~Simulator() = default;

SimulationResult Simulator::evaluate(const Strategy& strategy) {
  const TaskGraph graph = build(strategy);
  return evaluate(graph, simulate(graph));
}

SimulationResult Simulator::evaluate(const TaskGraph& graph, const Timeline& timeline) const {
  SimulationResult out;
  out.makespan = timeline.makespan;
  out.bytes_moved = graph.bytes_moved;
  out.num_tasks = static_cast<int64_t>(graph.tasks.size());
  out.busy.assign(static_cast<size_t>(machine_.num_devices()), 0);
  for (size_t t = 0; t < graph.tasks.size(); ++t) {
    const Task& task = graph.tasks[t];
    if (task.kind == Task::Kind::run) out.busy[static_cast<size_t>(graph.resources[t][0])] += task.duration;
  }
  out.peak_bytes = peak_bytes(problem_, machine_, graph, timeline);
  return out;
}

}  // namespace ff
