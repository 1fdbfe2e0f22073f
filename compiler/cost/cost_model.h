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

/// How many distinct calls were priced, by where their price comes from.
struct CostCounts {
  int64_t measured = 0;
  int64_t interpolated = 0;
  int64_t estimated = 0;
};

/// May be called from several threads at once.
class CostModel {
 public:
  virtual ~CostModel() = default;
  virtual CostCounts counts() const { return {}; }
  /// The cost of one kernel call on a device of this kind. `family` is the op's (OpDef::family).
  virtual KernelCost kernel(const KernelCall& call, const Work& work, std::string_view family,
                            const DeviceKind& kind) = 0;
};

/// What timing a kernel gave.
struct Measurement {
  Nanoseconds median = 1;
  Nanoseconds spread = 0;  // the middle half of the runs: 75th less 25th percentile
  int64_t count = 0;       // runs after warm-up
  int64_t workspace_bytes = 0;
};

/// What a backend's kernels answer when asked: the profiler implements it on the executor's kernels.
class KernelQuery {
 public:
  virtual ~KernelQuery() = default;
  /// Median time of the call after warm-up, and its workspace. Throws UserError if the backend has no such
  /// kernel.
  virtual Measurement measure(const KernelCall& call) = 0;
  virtual int64_t workspace_bytes(const KernelCall& call) = 0;
};

}  // namespace ff
