// What things cost: the time and workspace of a kernel call on a kind of device, in integer nanoseconds,
// frozen before the search. Transfers are priced by the simulator from the machine's links.
//
//   CostModel is a seam: roofline (from the machine file), profile (a store of measurements), measured (a
//   store that asks the executor's own kernels for what it lacks, through KernelQuery), constant (tests).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/base/units.h"
#include "compiler/machine/machine.h"
#include "compiler/ops/op_table.h"
#include "compiler/plan/kernel_call.h"

namespace ff {

enum class CostSource : uint8_t { measured, interpolated, estimated };

struct KernelCost {
  Nanoseconds time = 1;  // at least 1
  int64_t workspace_bytes = 0;
  CostSource source = CostSource::estimated;
};

class CostModel {
 public:
  virtual ~CostModel() = default;
  /// The cost of one kernel call on a device of this kind. `family` is the op's (OpDef::family).
  virtual KernelCost kernel(const KernelCall& call, const Work& work, std::string_view family,
                            const DeviceKind& kind) = 0;
};

/// What a backend's kernels answer when asked: the profiler implements it on the executor's kernels.
class KernelQuery {
 public:
  virtual ~KernelQuery() = default;
  /// Median time of the call after warm-up, and its workspace. Throws UserError if the backend has no such
  /// kernel.
  virtual KernelCost measure(const KernelCall& call) = 0;
  virtual int64_t workspace_bytes(const KernelCall& call) = 0;
};

}  // namespace ff
