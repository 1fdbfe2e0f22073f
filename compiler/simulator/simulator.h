// The execution simulator: from a strategy to the time of a training step and the peak memory of every
// device.
//
// Full simulation, the oracle: tasks are processed in order of (ready time, id); each starts when it is ready
// and its devices are free, crosses its links as they get to it (occupy(), task_graph.h), and keeps its
// devices until it ends. Ties break by task id, a function of the strategy alone, so the timeline is unique.
#pragma once

#include <memory>
#include <vector>

#include "compiler/simulator/task_graph.h"

namespace ff {

class Parts;

struct Timeline {
  std::vector<Nanoseconds> ready, start, end;  // by task; start = end - duration
  std::vector<int32_t> order;                  // tasks by (ready, id)
  Nanoseconds makespan = 0;
};

/// Simulates a task graph. InternalError if it has a cycle.
Timeline simulate(const TaskGraph& graph);

/// By TensorId: the boxes of a parameter and their devices; empty: not given.
using Homes = std::vector<std::vector<TensorWrite>>;

struct SimulationResult {
  Nanoseconds makespan = 0;
  std::vector<int64_t> peak_bytes;  // a device; live peak along the simulated order
  std::vector<Nanoseconds> busy;    // a device; compute
  int64_t bytes_moved = 0;
  int64_t num_tasks = 0;
};

/// Builds task graphs and simulates them, whole; keeps what repeated calls can share (kernel costs, parts of
/// graphs). One object a thread. A search, which changes a few ops at a time, uses DeltaSimulator.
class Simulator {
 public:
  Simulator(const Problem& problem, const Machine& machine, CostModel& costs);
  ~Simulator();

  /// The task graph of a strategy (which must pass Problem::check). `homes`: where parameters lie that this
  /// graph does not update (evaluation, beside a training step).
  TaskGraph build(const Strategy& strategy, const Homes* homes = nullptr);
  /// Time and memory.
  SimulationResult evaluate(const Strategy& strategy);
  SimulationResult evaluate(const TaskGraph& graph, const Timeline& timeline) const;

  const Problem& problem() const { return problem_; }
  const Machine& machine() const { return machine_; }

 private:
  const Problem& problem_;
  const Machine& machine_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace ff
