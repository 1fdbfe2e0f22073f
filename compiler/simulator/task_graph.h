// The task graph of a strategy: one task per run of a cell and per step of a redistribution, with what each
// occupies and for how long. Lowering makes the programs from the same graph, in the order that its
// simulation gives.
//
// Resources: device d computes on resource d, communicates on D + d; link l is 2D + l.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "compiler/cost/cost_model.h"
#include "compiler/partition/config.h"
#include "compiler/partition/redistribution.h"

namespace ff {

/// How one op runs under a strategy.
struct OpRuns {
  bool active = false;
  std::vector<int32_t> degrees;
  std::vector<CellRun> runs;
  std::vector<int32_t> devices;  // of each run: the resource that it computes on
  KernelCost cost;               // of the largest cell
  /// Instances (of the tensor's plan) that each run reads and writes: [run * operands + operand], inputs then
  /// outputs; -1: none.
  std::vector<int32_t> instances;
};

/// Which task this is: a run of an op, or a step of a tensor's plan.
struct Task {
  enum class Kind : uint8_t { run, step } kind = Kind::run;
  int32_t owner = 0;  // OpId or TensorId
  int32_t index = 0;  // run or step
  Nanoseconds duration = 1;
};

/// A compressed list of lists.
struct Csr {
  std::vector<int32_t> begin{0};
  std::vector<int32_t> items;
  std::span<const int32_t> operator[](size_t i) const {
    return {items.data() + begin[i], static_cast<size_t>(begin[i + 1] - begin[i])};
  }
};

struct TaskGraph {
  std::vector<Task> tasks;
  Csr successors;
  Csr resources;                                           // of each task
  std::vector<int32_t> predecessors;                       // their number
  std::vector<OpRuns> ops;                                 // by OpId
  std::vector<std::shared_ptr<const TensorPlan>> tensors;  // by TensorId; null: nobody reads or writes it
  int num_resources = 0;
  int32_t first_link = 0;   // the resources below compute and communicate
  int64_t bytes_moved = 0;  // by messages and collectives between devices
};

/// Lets a task that is ready have its resources: it starts when all its devices are free, and crosses its
/// links one by one as each gets to it, for its whole duration each. Returns when it is through everywhere;
/// until then its devices are taken. (A message that waits for one link does not keep the others: packets of
/// later messages pass. That a message takes all its links at once would let an exchange between all devices
/// last many times as long as its busiest link does.)
inline Nanoseconds occupy(std::span<const int32_t> resources, int32_t first_link, Nanoseconds ready,
                          Nanoseconds duration, std::vector<Nanoseconds>& free) {
  Nanoseconds start = ready;
  for (int32_t r : resources) {
    if (r < first_link) start = std::max(start, free[static_cast<size_t>(r)]);
  }
  Nanoseconds end = start + duration;
  for (int32_t r : resources) {
    if (r < first_link) continue;
    Nanoseconds& link = free[static_cast<size_t>(r)];
    link = std::max(link, start) + duration;
    end = std::max(end, link);
  }
  for (int32_t r : resources) {
    if (r < first_link) free[static_cast<size_t>(r)] = end;
  }
  return end;
}

}  // namespace ff
