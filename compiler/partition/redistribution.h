// Redistribution: from how a tensor is written to how it is read.
//
// A tensor is written as a list of addends (a box, and the devices that hold it); an element's value is the
// sum of the addends that cover it. Readers want boxes on devices. What lies between is planned here, once,
// for the simulator (which prices the steps) and for lowering (which makes instructions of them), so that the
// two never disagree.
//
//   written [0:8] as partial sums on devices 0 and 1, read whole by both       -> all_reduce over {0, 1}
//   the same, but read as [0:4] by 0 and [4:8] by 1 (a sharded update)         -> reduce_scatter
//   written [0:4] on 0 and [4:8] on 1, read whole by both                      -> all_gather
//   written rows [0:4] on 0 and [4:8] on 1, read [0:5] by 0 and [3:8] by 1     -> two messages of one row,
//   two copies: a halo
//
// Every value lies in an instance: a dense buffer of one device. A step reads and writes whole instances,
// except `copy`, which moves a box between two. An instance may be a view: a contiguous part of another.
#pragma once

#include <span>
#include <vector>

#include "compiler/base/box.h"
#include "compiler/base/dtype.h"
#include "compiler/base/ids.h"
#include "compiler/machine/machine.h"
#include "compiler/ops/op_space.h"

namespace ff {

/// What one execution of an op writes. Runs with one `addend` number of one op write the same values
/// (replicas).
struct TensorWrite {
  int32_t op = 0;      // which of the tensor's writers
  int32_t addend = 0;  // equal (op, addend): replicas of one addend
  DeviceId device;
  Box box;
};

struct TensorRead {
  DeviceId device;
  Box box;
};

struct Instance {
  DeviceId device;
  Box box;
  int32_t parent =
      -1;  // a view: `box` is a contiguous part of the parent's, `offset` elements from its start
  int64_t offset = 0;
};

enum class StepKind : uint8_t {
  fill,            // out = 0
  copy,            // the common box of in and out, from in to out (on one device)
  sum,             // out = in[0] + in[1] + ..., equal boxes; or their maximum
  message,         // in[0] to out[0] on another device, equal boxes
  all_reduce,      // in[i] on group[i] -> out[i], equal boxes
  reduce_scatter,  // in[i] whole on group[i] -> out[i], consecutive parts
  all_gather,      // in[i], consecutive parts, on group[i] -> out[i] whole
  broadcast,       // in[0] on group[0] -> out[i] on group[i]; out[0] is in[0]
};

struct Step {
  StepKind kind = StepKind::copy;
  std::vector<int32_t> in;  // instances
  std::vector<int32_t> out;
  std::vector<DeviceId> group;  // collectives: member i of in and out; else the device (message: from, to)
  int64_t bytes = 0;            // message: its size; collectives: of the whole value; else of the box
};

struct TensorPlan {
  std::vector<Instance> instances;
  std::vector<int32_t> write_instance;  // of each write; -1 if its box is empty
  std::vector<int32_t> read_instance;   // of each read; -1 if its box is empty
  std::vector<Step> steps;              // in an order that executes

  /// The instance that this one is a view of, if it is one; else itself.
  int32_t root(int32_t instance) const {
    while (instances[static_cast<size_t>(instance)].parent >= 0)
      instance = instances[static_cast<size_t>(instance)].parent;
    return instance;
  }
};

struct RedistributionOptions {
  DType dtype = DType::f32;
  Layout layout = Layout::row_major;
  Combiner combiner = Combiner::sum;
  bool holes_are_zero = false;        // a gradient: elements that nobody writes
  bool available_everywhere = false;  // data and frozen parameters: every reader has its box, nothing is sent
  bool weight_gradient = false;       // synchronised through one server where the machine says so
};

/// Plans the redistribution of one tensor. A pure function of its arguments. An element that is read and not
/// written is a bug (InternalError with the box) unless `holes_are_zero`.
TensorPlan plan_redistribution(std::span<const TensorWrite> writes, std::span<const TensorRead> reads,
                               const Machine& machine, const RedistributionOptions& options);

/// Elements from the start of `outer` (a dense buffer with this layout) to the start of `inner`, if `inner`
/// is a contiguous part of it; -1 otherwise.
int64_t contiguous_offset(const Box& outer, const Box& inner, Layout layout);

}  // namespace ff
