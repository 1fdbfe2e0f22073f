// Matrix products and their gradients in plain loops.
#include <algorithm>

#include "executor/kernels/cpu/product.h"
#include "executor/kernels/cpu/registry.h"

namespace ff::cpu {
namespace reference {
namespace {

template <typename T>
T* buffer(std::span<void* const> operands, size_t i) {
  return i < operands.size() ? static_cast<T*>(operands[i]) : nullptr;
}

/// Calls body(offset in a, offset in b, offset in y) for every product of the sum.
template <typename Body>
void for_each_product(const ProductOperands& p, Body&& body) {
  p.for_each_batch([&](int64_t at_a, int64_t at_b, int64_t at_y) {
    for (int64_t m = 0; m < p.y.rows; ++m) {
      for (int64_t k = 0; k < p.a.columns; ++k) {
        const int64_t ia = at_a + m * p.a.row_stride + k * p.a.column_stride;
        int64_t ib = at_b + k * p.b.row_stride, iy = at_y + m * p.y.row_stride;
        for (int64_t n = 0; n < p.y.columns; ++n) {
          body(ia, ib, iy);
          ib += p.b.column_stride, iy += p.y.column_stride;
        }
      }
    }
  });
}

/// Calls body(offset in y, column) for every element of y.
template <typename Body>
void for_each_result(const ProductOperands& p, Body&& body) {
  p.for_each_batch([&](int64_t, int64_t, int64_t at_y) {
    for (int64_t m = 0; m < p.y.rows; ++m) {
      for (int64_t n = 0; n < p.y.columns; ++n) body(at_y + m * p.y.row_stride + n * p.y.column_stride, n);
    }
  });
}

}  // namespace

template <typename T>
void matmul(const KernelCall& call, std::span<void* const> operands) {
  const size_t out = call.operands.size() - 1;
  const ProductOperands p(call, call.operands[0], call.operands[1], call.operands[out]);
  const T *a = buffer<T>(operands, 0), *b = buffer<T>(operands, 1);
  const T* bias = out > 2 ? buffer<T>(operands, 2) : nullptr;
  T* y = buffer<T>(operands, out);
  for_each_result(p, [&](int64_t i, int64_t n) { y[i] = bias == nullptr ? T(0) : bias[n]; });
  for_each_product(p, [&](int64_t ia, int64_t ib, int64_t iy) { y[iy] += a[ia] * b[ib]; });
  if (call.attributes.integer("relu", 0) == 0) return;
  for_each_result(p, [&](int64_t i, int64_t) { y[i] = y[i] > T(0) ? y[i] : T(0); });
}

template <typename T>
void matmul_grad_a(const KernelCall& call, std::span<void* const> operands) {
  const ProductOperands p(call, call.operands[2], call.operands[1], call.operands[0]);
  const T *dy = buffer<T>(operands, 0), *b = buffer<T>(operands, 1);
  T* da = buffer<T>(operands, 2);
  std::fill_n(da, volume(call.operands[2].shape), T(0));
  for_each_product(p, [&](int64_t ia, int64_t ib, int64_t iy) { da[ia] += dy[iy] * b[ib]; });
}

template <typename T>
void matmul_grad_b(const KernelCall& call, std::span<void* const> operands) {
  const ProductOperands p(call, call.operands[0], call.operands[2], call.operands[1]);
  const T *a = buffer<T>(operands, 0), *dy = buffer<T>(operands, 1);
  T* db = buffer<T>(operands, 2);
  std::fill_n(db, volume(call.operands[2].shape), T(0));
  for_each_product(p, [&](int64_t ia, int64_t ib, int64_t iy) { db[ib] += dy[iy] * a[ia]; });
  T* dbias = buffer<T>(operands, 3);
  if (dbias == nullptr) return;
  std::fill_n(dbias, p.y.columns, T(0));
  for_each_result(p, [&](int64_t i, int64_t n) { dbias[n] += dy[i]; });
}

template void matmul<float>(const KernelCall&, std::span<void* const>);
template void matmul<double>(const KernelCall&, std::span<void* const>);
template void matmul_grad_a<float>(const KernelCall&, std::span<void* const>);
template void matmul_grad_a<double>(const KernelCall&, std::span<void* const>);
template void matmul_grad_b<float>(const KernelCall&, std::span<void* const>);
template void matmul_grad_b<double>(const KernelCall&, std::span<void* const>);

}  // namespace reference

void register_reference_matmul(Registry& registry) {
  registry.add_reference("MatMul", make_loop_kernel<reference::matmul<float>>,
                         make_loop_kernel<reference::matmul<double>>);
  registry.add_reference("MatMulGradA", make_loop_kernel<reference::matmul_grad_a<float>>,
                         make_loop_kernel<reference::matmul_grad_a<double>>);
  registry.add_reference("MatMulGradB", make_loop_kernel<reference::matmul_grad_b<float>>,
                         make_loop_kernel<reference::matmul_grad_b<double>>);
}

}  // namespace ff::cpu
