// Live memory along the simulated order.
#pragma once

#include <vector>

#include "compiler/simulator/simulator.h"

namespace ff {

/// An instance (buffer) of a tensor with the places in the order between which it lives. Persistent: the
/// whole step.
struct Lifetime {
  int32_t tensor = 0;
  int32_t instance = 0;  // a root: not a view
  DeviceId device;
  int64_t bytes = 0;  // rounded up to 64
  bool persistent = false;
  int32_t first = 0;  // places in timeline.order
  int32_t last = 0;
};

/// Of a buffer: rounded up to 64.
int64_t buffer_bytes(const Box& box, DType dtype);
/// Whether a root instance holds a parameter between the steps.
bool is_home(const TensorPlan& plan, TensorKind kind, int32_t root);

/// The lifetimes of all buffers that tasks touch. Parameters are persistent; inputs live from the start of
/// the step.
std::vector<Lifetime> lifetimes(const Problem& problem, const TaskGraph& graph, const Timeline& timeline);

/// Largest sum of live bytes of each device, kernel workspaces included.
std::vector<int64_t> peak_bytes(const Problem& problem, const Machine& machine, const TaskGraph& graph,
                                const Timeline& timeline);

}  // namespace ff
