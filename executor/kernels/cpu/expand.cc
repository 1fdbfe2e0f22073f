// Expand and Trilu, for every type and layout.

#include <algorithm>

#include "executor/kernels/cpu/moves.h"
#include "executor/kernels/cpu/registry.h"
#include "executor/kernels/cpu/strides.h"

namespace ff::cpu {
namespace {

void expand(const KernelCall& call, std::span<void* const> operands) {
  const Operand& x = call.operands[0];
  const Operand& y = call.operands[1];
  const auto along = strides_along(x, y.shape);
  move(operands[0], Shape(along.begin(), along.begin() + static_cast<int64_t>(y.shape.size())), operands[1],
       dense_strides(y.shape, y.layout), y.shape, size_of(x.dtype));
}

template <typename T>
void triangle_as(const KernelCall& call, std::span<void* const> operands) {
  const Operand& x = call.operands[0];
  const Operand& y = call.operands[1];
  const bool upper = call.attributes.integer("upper") != 0;
  const int64_t k = call.attributes.integer("k");
  const size_t rank = x.shape.size();
  std::array<std::array<int64_t, kMaxRank>, 3> strides{strides_along(x, x.shape), strides_along(y, x.shape)};
  strides[2][rank - 1] = 1;  // column less row
  strides[2][rank - 2] = -1;
  const T* in = static_cast<const T*>(operands[0]);
  T* out = static_cast<T*>(operands[1]);
  for_each_element(x.shape, strides, [&](const std::array<int64_t, 3>& at) {
    out[at[1]] = (upper ? at[2] >= k : at[2] <= k) ? in[at[0]] : T(0);
  });
}

void triangle(const KernelCall& call, std::span<void* const> operands) {
  switch (size_of(call.operands[0].dtype)) {
    case 1:
      return triangle_as<uint8_t>(call, operands);
    case 2:
      return triangle_as<uint16_t>(call, operands);
    case 4:
      return triangle_as<uint32_t>(call, operands);
    default:
      return triangle_as<uint64_t>(call, operands);
  }
}

}  // namespace

void register_expand(Registry& registry) {
  registry.add_any("Expand", make_loop_kernel<expand>);
  registry.add_any("Trilu", make_loop_kernel<triangle>);
}

}  // namespace ff::cpu
