#include "compiler/cost/roofline.h"

#include <algorithm>
#include <cmath>

namespace ff {

double peak_flops(const KernelCall& call, const DeviceKind& kind) {
  bool f64 = false, half = false;
  for (const Operand& operand : call.operands) {
    f64 |= operand.dtype == DType::f64;
    half |= operand.dtype == DType::bf16 || operand.dtype == DType::f16;
  }
  // A 16-bit kernel may well read a bias or write a sum in f32: its arithmetic stays 16-bit.
  if (f64) return kind.flops_f64;
  if (half) return kind.flops_bf16;
  return kind.flops_f32;
}

Nanoseconds roofline_time(const KernelCall& call, const Work& work, std::string_view family,
                          const DeviceKind& kind) {
  const Efficiency& efficiency = kind.efficiency(family);
  double seconds = 0;
  if (const double rate = peak_flops(call, kind) * efficiency.fraction; work.flops > 0 && rate > 0)
    seconds = (work.flops + efficiency.half_work_flops) / rate;
  if (const double rate = kind.memory_bandwidth * efficiency.memory_fraction; rate > 0)
    seconds = std::max(seconds, work.bytes / rate);
  return std::max(
      {Nanoseconds{1}, kind.kernel_launch, static_cast<Nanoseconds>(std::llround(seconds * 1e9))});
}

KernelCost RooflineCost::price(const KernelCall& call, const std::string&, const Work& work,
                               std::string_view family, const DeviceKind& kind) {
  return {
      .time = roofline_time(call, work, family, kind), .workspace_bytes = 0, .source = CostSource::estimated};
}

}  // namespace ff
