// Kernels that programs need besides the ops': filling, copying boxes, summing what arrived.

#include <algorithm>
#include <cstring>

#include "executor/kernels/cpu/image.h"
#include "executor/kernels/cpu/moves.h"
#include "executor/kernels/cpu/registry.h"
#include "executor/kernels/cpu/simd.h"
#include "executor/kernels/cpu/strides.h"

namespace ff::cpu {
namespace {

void fill_value(const Operand& operand, void* data, double value) {
  const int64_t n = volume(operand.shape);
  switch (operand.dtype) {
    case DType::f64:
      std::fill_n(static_cast<double*>(data), n, value);
      break;
    case DType::f32:
      std::fill_n(static_cast<float*>(data), n, static_cast<float>(value));
      break;
    case DType::i64:
      std::fill_n(static_cast<int64_t*>(data), n, static_cast<int64_t>(value));
      break;
    case DType::i32:
      std::fill_n(static_cast<int32_t*>(data), n, static_cast<int32_t>(value));
      break;
    default:
      FF_CHECK_EQ(value, 0.0) << "fill of " << name(operand.dtype);
      std::memset(data, 0, static_cast<size_t>(operand.bytes()));
  }
}

void fill(const KernelCall& call, std::span<void* const> operands) {
  fill_value(call.operands[0], operands[0], call.attributes.real("value", 0.0));
}

/// Copies the box `extent` at `src_lo` (every `src_step`-th element) to `dst_lo` (`dst_step`); with `fill`
/// the rest of the target is set first. No source: nothing but the fill.
void copy_box(const KernelCall& call, std::span<void* const> operands) {
  const Operand& x = call.operands[0];
  const Operand& y = call.operands[1];
  const Ints& extent = call.attributes.ints("extent");
  const size_t rank = extent.size();
  const Ints ones(rank, 1);
  const Ints source_steps = call.attributes.ints("src_step", ones);
  const Ints target_steps = call.attributes.ints("dst_step", ones);
  const bool covers = !is_absent(y) && volume(extent) == volume(y.shape);
  if (is_absent(y)) return;
  if (call.attributes.has("fill") && !covers) fill_value(y, operands[1], call.attributes.real("fill"));
  if (is_absent(x) || volume(extent) == 0) return;
  Shape from = dense_strides(x.shape, x.layout);
  Shape to = dense_strides(y.shape, y.layout);
  const auto* in = static_cast<const char*>(operands[0]);
  auto* out = static_cast<char*>(operands[1]);
  for (size_t axis = 0; axis < rank; ++axis) {
    in += call.attributes.ints("src_lo")[axis] * from[axis] * size_of(x.dtype);
    out += call.attributes.ints("dst_lo")[axis] * to[axis] * size_of(x.dtype);
    from[axis] *= source_steps[axis];
    to[axis] *= target_steps[axis];
  }
  move(in, from, out, to, extent, size_of(x.dtype));
}

template <typename T>
inline void add_loop(const T* a, const T* b, T* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}
template <typename T>
inline void max_loop(const T* a, const T* b, T* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = std::max(a[i], b[i]);
}
FF_TARGET_CLONES void add_flat(const float* a, const float* b, float* out, int64_t n) {
  add_loop(a, b, out, n);
}
FF_TARGET_CLONES void add_flat(const double* a, const double* b, double* out, int64_t n) {
  add_loop(a, b, out, n);
}
FF_TARGET_CLONES void max_flat(const float* a, const float* b, float* out, int64_t n) {
  max_loop(a, b, out, n);
}
FF_TARGET_CLONES void max_flat(const double* a, const double* b, double* out, int64_t n) {
  max_loop(a, b, out, n);
}

/// out = ((in0 + in1) + in2) ..., in the order of the operands; or the largest. Equal shapes and layouts.
template <typename T, bool kMax>
void combine(const KernelCall& call, std::span<void* const> operands) {
  const int64_t n = volume(call.operands.back().shape);
  T* out = static_cast<T*>(operands.back());
  const T* first = static_cast<const T*>(operands[0]);
  if (operands.size() == 2) {
    if (first != out) std::copy_n(first, n, out);
    return;
  }
  // In blocks that stay in the first cache while all operands are added.
  constexpr int64_t kBlock = 4096;
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t m = std::min(kBlock, n - at);
    for (size_t i = 1; i + 1 < operands.size(); ++i) {
      const T* a = (i == 1 ? first : out) + at;
      const T* b = static_cast<const T*>(operands[i]) + at;
      if constexpr (kMax) {
        max_flat(a, b, out + at, m);
      } else {
        add_flat(a, b, out + at, m);
      }
    }
  }
}

}  // namespace

void register_system(Registry& registry) {
  registry.add_any("Fill", make_loop_kernel<fill>);
  registry.add_any("CopyBox", make_loop_kernel<copy_box>);
  registry.add_reference("CombineSum", make_loop_kernel<combine<float, false>>,
                         make_loop_kernel<combine<double, false>>);
  registry.add_reference("CombineMax", make_loop_kernel<combine<float, true>>,
                         make_loop_kernel<combine<double, true>>);
}

}  // namespace ff::cpu
