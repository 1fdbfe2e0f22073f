// What the two halves of a redistribution share: reduction.cc makes complete values of addends,
// redistribution.cc brings them to their readers. Internal to this room.
#pragma once

#include <span>
#include <vector>

#include "compiler/partition/redistribution.h"

namespace ff::internal {

/// A box whose elements are complete, and the instances that have them (each contains the box).
struct Value {
  Box box;
  std::vector<int32_t> holders;
};

/// The plan as it grows.
class Planner {
 public:
  Planner(const Machine& machine_in, const RedistributionOptions& options_in)
      : machine(machine_in), options(options_in) {}

  int32_t add_instance(DeviceId device, const Box& box);
  /// A dense instance of `part` on the device of `instance`: itself, a view of it, or a copy.
  int32_t dense_part(int32_t instance, const Box& part);
  void add_step(StepKind kind, std::vector<int32_t> in, std::vector<int32_t> out, std::vector<DeviceId> group,
                int64_t bytes);
  /// Sends `in` (dense) into `out` on another device.
  void send(int32_t in, int32_t out);
  void copy(int32_t in, int32_t out);
  /// Which of several equal sources serves `to`: one on the same device, else on the same node, spread by
  /// `salt`.
  int32_t nearest(std::span<const int32_t> holders, DeviceId to, size_t salt) const;

  const Instance& instance(int32_t i) const { return plan.instances[static_cast<size_t>(i)]; }
  int64_t bytes(const Box& box) const { return box.volume() * size_of(options.dtype); }
  bool collectives() const { return machine.refinements().collectives && !server(); }
  bool server() const {
    return options.weight_gradient && machine.refinements().synchronization == Synchronization::kServer;
  }

  const Machine& machine;
  const RedistributionOptions& options;
  TensorPlan plan;
};

/// Reduces what was written to complete, disjoint values; sets plan.write_instance.
std::vector<Value> reduce_addends(Planner& planner, std::span<const TensorWrite> writes,
                                  std::span<const TensorRead> reads);

/// Whether these boxes, in this order, are consecutive parts that make up the whole dense `outer`.
bool consecutive_parts(const Box& outer, std::span<const Box> parts, Layout layout);

}  // namespace ff::internal
