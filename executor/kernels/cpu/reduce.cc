// Maxima and products over axes. Sums are elementwise kernels whose result is smaller than the cell.

#include <cmath>
#include <limits>
#include <vector>

#include "executor/kernels/cpu/registry.h"
#include "executor/kernels/cpu/strides.h"

namespace ff::cpu {
namespace {

template <typename T>
void reduce_max(const KernelCall& call, std::span<void* const> operands) {
  const Operand& x = call.operands[0];
  const Operand& y = call.operands[1];
  const std::array<std::array<int64_t, kMaxRank>, 2> strides{strides_along(x, x.shape),
                                                             strides_along(y, x.shape)};
  const T* in = static_cast<const T*>(operands[0]);
  T* out = static_cast<T*>(operands[1]);
  std::fill_n(out, volume(y.shape), -std::numeric_limits<T>::infinity());
  for_each_element(x.shape, strides, [&](const std::array<int64_t, 2>& at) {
    const T v = in[at[0]];
    if (v > out[at[1]] || std::isnan(v)) out[at[1]] = v;
  });
}

template <typename T>
void reduce_product(const KernelCall& call, std::span<void* const> operands) {
  const Operand& x = call.operands[0];
  const Operand& y = call.operands[1];
  const std::array<std::array<int64_t, kMaxRank>, 2> strides{strides_along(x, x.shape),
                                                             strides_along(y, x.shape)};
  const T* in = static_cast<const T*>(operands[0]);
  T* out = static_cast<T*>(operands[1]);
  std::fill_n(out, volume(y.shape), T(1));
  for_each_element(x.shape, strides, [&](const std::array<int64_t, 2>& at) { out[at[1]] *= in[at[0]]; });
}

/// dy times the product of the other factors: of those before, on the way there, and of those behind, on the
/// way back. A factor of 0 is nothing special.
template <typename T>
void reduce_product_grad(const KernelCall& call, std::span<void* const> operands) {
  const Operand& x = call.operands[0];
  const Operand& dy = call.operands[1];
  const Operand& dx = call.operands[2];
  const std::array<std::array<int64_t, kMaxRank>, 3> strides{
      strides_along(x, x.shape), strides_along(dy, x.shape), strides_along(dx, x.shape)};
  const T* in = static_cast<const T*>(operands[0]);
  const T* arriving = static_cast<const T*>(operands[1]);
  T* out = static_cast<T*>(operands[2]);
  std::vector<T> product(static_cast<size_t>(volume(dy.shape)), T(1));
  std::vector<std::array<int64_t, 3>> walked;
  for_each_element(x.shape, strides, [&](const std::array<int64_t, 3>& at) {
    T& before = product[static_cast<size_t>(at[1])];
    out[at[2]] = arriving[at[1]] * before;
    before *= in[at[0]];
    walked.push_back(at);
  });
  std::fill(product.begin(), product.end(), T(1));
  for (size_t i = walked.size(); i-- > 0;) {
    T& behind = product[static_cast<size_t>(walked[i][1])];
    out[walked[i][2]] *= behind;
    behind *= in[walked[i][0]];
  }
}

}  // namespace

void register_reduce(Registry& registry) {
  registry.add_reference("ReduceMax", make_loop_kernel<reduce_max<float>>,
                         make_loop_kernel<reduce_max<double>>);
  registry.add_reference("ReduceProd", make_loop_kernel<reduce_product<float>>,
                         make_loop_kernel<reduce_product<double>>);
  registry.add_reference("ReduceProdGrad", make_loop_kernel<reduce_product_grad<float>>,
                         make_loop_kernel<reduce_product_grad<double>>);
}

}  // namespace ff::cpu
