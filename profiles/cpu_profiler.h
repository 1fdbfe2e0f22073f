// Times the executor's CPU kernels: what `--cost measured` asks (KernelQuery).
//
//   CpuProfiler profiler([](const KernelCall& call) { return cpu::make_kernel(call); }, {.threads = 1, .ranks
//   = 2}); profiler.measure(call).median        // nanoseconds, while a second rank's worth of the same work
//   runs
//
// Operands are made up: reals in [-1, 1], integers zero (a valid label, index and offset).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "compiler/cost/cost_model.h"
#include "executor/kernels/kernel.h"

namespace ff {

struct CpuProfilerOptions {
  int threads = 1;  // per rank
  int ranks = 1;    // at work at once on this machine; beyond its cores they take turns and are not started
};

class CpuProfiler : public KernelQuery {
 public:
  using MakeKernel = std::function<std::unique_ptr<Kernel>(const KernelCall&)>;

  CpuProfiler(MakeKernel make_kernel, CpuProfilerOptions options);
  /// One run to warm up, then runs until 30 ms have passed (at least 3) or 20 runs are done.
  Measurement measure(const KernelCall& call) override;
  int64_t workspace_bytes(const KernelCall& call) override;

 private:
  MakeKernel make_kernel_;
  CpuProfilerOptions options_;
};

/// What a profile of this machine's kernels depends on: library versions and instruction set.
std::string cpu_libraries();

}  // namespace ff
