// Walking dense buffers of any layout in the logical order of their dimensions.
#pragma once

#include <array>
#include <cstdint>

#include "compiler/base/check.h"
#include "compiler/plan/kernel_call.h"
#include "executor/kernels/cpu/image.h"

namespace ff::cpu {

/// Strides of an operand along the axes of a broadcast result of `shape`: 0 where its extent is 1 and the
/// result's is larger, and on axes that it lacks.
inline std::array<int64_t, kMaxRank> strides_along(const Operand& operand, const Shape& shape) {
  std::array<int64_t, kMaxRank> out{};
  const Shape strides = dense_strides(operand.shape, operand.layout);
  FF_CHECK_LE(operand.shape.size(), shape.size()) << to_string(operand.shape);
  const size_t shift = shape.size() - operand.shape.size();
  for (size_t axis = 0; axis < operand.shape.size(); ++axis) {
    const int64_t extent = operand.shape[axis];
    FF_CHECK(extent == shape[axis + shift] || extent == 1)
        << to_string(operand.shape) << " along " << to_string(shape);
    out[axis + shift] = extent == 1 ? 0 : strides[axis];
  }
  return out;
}

/// Calls body(offsets) for every element of `shape` in row-major order; offsets[i] is the place in buffer i.
template <size_t N, typename Body>
void for_each_element(const Shape& shape, const std::array<std::array<int64_t, kMaxRank>, N>& strides,
                      Body&& body) {
  std::array<int64_t, N> at{};
  std::array<int64_t, kMaxRank> index{};
  const int64_t total = volume(shape);
  for (int64_t n = 0; n < total; ++n) {
    body(at);
    for (size_t axis = shape.size(); axis-- > 0;) {
      for (size_t i = 0; i < N; ++i) at[i] += strides[i][axis];
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
      for (size_t i = 0; i < N; ++i) at[i] -= strides[i][axis] * shape[axis];
    }
  }
}

}  // namespace ff::cpu
