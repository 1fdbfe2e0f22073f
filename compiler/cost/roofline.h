// Costs from the machine file alone: a kernel takes as long as its arithmetic at the device's rate or its
// bytes at the memory's, whichever is longer, and never less than a launch.
//
//   2e9 flops and 12e6 bytes on a device of 10e12 flops/s and 500e9 bytes/s, half of the peak reached:
//   max(2e9 / 5e12, 12e6 / 500e9) = max(400 us, 24 us) = 400 us
//
// The roofline model is Williams, Waterman, Patterson, CACM 2009; the half-work term is Hockney's n_1/2:
// small kernels reach a smaller part of the peak.
#pragma once

#include "compiler/cost/memo_cost.h"

namespace ff {

/// The peak rate of the arithmetic of this call: f64, 16-bit or f32 by its operands.
double peak_flops(const KernelCall& call, const DeviceKind& kind);

Nanoseconds roofline_time(const KernelCall& call, const Work& work, std::string_view family,
                          const DeviceKind& kind);

class RooflineCost : public MemoCost {
 protected:
  /// Workspace counts as none: only the kernels themselves know theirs.
  KernelCost price(const KernelCall& call, const std::string& text, const Work& work, std::string_view family,
                   const DeviceKind& kind) override;
};

}  // namespace ff
