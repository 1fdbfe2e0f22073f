// The matrix product y = op(a) op(b) + bias of a kernel call, as strides: leading dimensions broadcast, the
// last two are rows and columns after the transpositions that the call asks for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "executor/kernels/cpu/image.h"

namespace ff::cpu {

/// One operand of a product: a matrix for each index of the leading dimensions.
struct MatrixOperand {
  Shape leading, leading_strides;
  int64_t rows = 0, columns = 0, row_stride = 0, column_stride = 0;

  MatrixOperand(const Operand& operand, bool transposed) {
    const Shape strides = dense_strides(operand.shape, operand.layout);
    const size_t rank = operand.shape.size();
    FF_CHECK_GE(rank, 2U) << to_string(operand.shape);
    const auto end = static_cast<int64_t>(rank) - 2;
    leading.assign(operand.shape.begin(), operand.shape.begin() + end);
    leading_strides.assign(strides.begin(), strides.begin() + end);
    rows = operand.shape[rank - 2], columns = operand.shape[rank - 1];
    row_stride = strides[rank - 2], column_stride = strides[rank - 1];
    if (transposed) {
      std::swap(rows, columns);
      std::swap(row_stride, column_stride);
    }
  }

  /// The leading dimensions brought to `rank` of them: ones before, stride 0 where the extent is 1.
  void broadcast_to(size_t rank) {
    leading.insert(leading.begin(), rank - leading.size(), 1);
    leading_strides.insert(leading_strides.begin(), rank - leading_strides.size(), 0);
    for (size_t d = 0; d < rank; ++d) {
      if (leading[d] == 1) leading_strides[d] = 0;
    }
  }
};

/// The three operands in their roles. Whichever is the call's output, all have y's leading dimensions or
/// ones.
struct ProductOperands {
  MatrixOperand a, b, y;

  ProductOperands(const KernelCall& call, const Operand& a_operand, const Operand& b_operand,
                  const Operand& y_operand)
      : a(a_operand, call.attributes.integer("trans_a", 0) != 0),
        b(b_operand, call.attributes.integer("trans_b", 0) != 0),
        y(y_operand, false) {
    FF_CHECK(a.rows == y.rows && b.columns == y.columns && a.columns == b.rows) << to_string(call);
    const size_t rank = std::max({a.leading.size(), b.leading.size(), y.leading.size()});
    for (MatrixOperand* m : {&a, &b, &y}) m->broadcast_to(rank);
  }

  int64_t batches() const { return volume(y.leading); }

  /// Calls body with the offsets of a, b and y for every index of the leading dimensions.
  template <typename Body>
  void for_each_batch(Body&& body) const {
    for (int64_t i = 0, n = batches(); i < n; ++i) {
      int64_t rest = i, at_a = 0, at_b = 0, at_y = 0;
      for (size_t d = y.leading.size(); d-- > 0;) {
        const int64_t index = rest % y.leading[d];
        rest /= y.leading[d];
        at_a += index * a.leading_strides[d];
        at_b += index * b.leading_strides[d];
        at_y += index * y.leading_strides[d];
      }
      body(at_a, at_b, at_y);
    }
  }
};

/// The plain loops, for T = float and double. Operands as in the op's row (compiler/ops/matmul.cc).
namespace reference {

template <typename T>
void matmul(const KernelCall& call, std::span<void* const> operands);
template <typename T>
void matmul_grad_a(const KernelCall& call, std::span<void* const> operands);
template <typename T>
void matmul_grad_b(const KernelCall& call, std::span<void* const> operands);

}  // namespace reference
}  // namespace ff::cpu
