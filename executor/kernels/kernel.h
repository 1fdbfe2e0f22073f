// The seam between a program and the hardware: a kernel is made once, when a plan is loaded, and run every
// step.
//
//   std::unique_ptr<Kernel> k = cpu::make_kernel(call);   // creates oneDNN primitives, sizes its workspace
//   k->run({x, w, nullptr, y}, workspace, context);       // pointers in the order of call.operands
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "compiler/plan/kernel_call.h"

namespace ff {

/// Run-time scalars: what `ffrun` sets and a plan does not fix. The optimizers' formulas are PyTorch's.
struct RunContext {
  double learning_rate = 0.01;
  double momentum = 0.9;
  double weight_decay = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  uint64_t seed = 0;
  int64_t step = 0;  // 0 in the first step
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Bytes of scratch memory that `run` needs, 64-byte aligned; fixed for the kernel's life.
  virtual int64_t workspace_bytes() const { return 0; }
  /// `operands[i]` is the dense buffer of call.operands[i], 64-byte aligned; null where that operand is
  /// absent. Throws UserError on data that the kernel cannot take (a label out of range).
  virtual void run(std::span<void* const> operands, void* workspace, const RunContext& context) = 0;
};

}  // namespace ff
