// What kernels of recurrent layers share: the sizes of a call, the order of its steps, products.
//
//   Sequence s(call, x_shape, r_shape);       // time 20, samples 4, hidden 128; the cell's directions
//   s.step(1, 0)                              // the step that the backward direction takes first: 19
#pragma once

#include <algorithm>
#include <cstdint>
#include <dnnl.hpp>
#include <vector>

#include "compiler/base/check.h"
#include "executor/kernels/cpu/image.h"

namespace ff::cpu::recurrent {

enum class Cell : uint8_t { lstm, gru, rnn };

struct Sequence {
  Cell cell = Cell::lstm;
  int64_t time = 0, directions = 0, samples = 0, inputs = 0, hidden = 0, first = 0;
  bool backward = false;     // the only direction is the reverse one
  bool reset_after = false;  // GRU: linear_before_reset
  bool relu = false;         // RNN
  std::vector<int64_t> lengths;

  /// `sequence`: the shape of x, [t, b, i], or of gates, [t, dir, b, g]; `r`: of the recurrent weights.
  Sequence(const KernelCall& call, const Shape& sequence, const Shape& r)
      : time(sequence[0]),
        directions(r[0]),
        samples(sequence[sequence.size() - 2]),
        inputs(sequence.back()),
        hidden(r[2]),
        first(call.attributes.integer("first", 0)),
        backward(call.attributes.string("direction", "forward") == "reverse"),
        reset_after(call.attributes.integer("linear_before_reset", 0) != 0),
        relu(call.attributes.string("activation", "") == "Relu") {
    const std::string type = call.attributes.string("type", call.kernel);
    cell = type.starts_with("LSTM") ? Cell::lstm : type.starts_with("GRU") ? Cell::gru : Cell::rnn;
    for (const Operand& o : call.operands)
      FF_CHECK(is_absent(o) || o.shape.size() < 3 || o.layout == Layout::row_major) << call.kernel;
  }

  /// All sequences are whole if there are no lengths.
  void set_lengths(const Operand& operand, const void* data) {
    if (is_absent(operand) || data == nullptr) return;
    for (int64_t b = 0; b < samples; ++b)
      lengths.push_back(operand.dtype == DType::i32 ? static_cast<const int32_t*>(data)[b]
                                                    : static_cast<const int64_t*>(data)[b]);
  }

  int64_t gates() const { return hidden * (cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1); }
  bool reverse(int64_t d) const { return backward || d + first == 1; }
  /// Row of the first sample of a step and direction in sequences [t, dir, b].
  int64_t at(int64_t t, int64_t d) const { return (t * directions + d) * samples; }
  int64_t step(int64_t d, int64_t i) const { return reverse(d) ? time - 1 - i : i; }
  int64_t length(int64_t b) const { return lengths.empty() ? time : lengths[static_cast<size_t>(b)]; }
  bool active(int64_t b, int64_t t) const { return t < length(b); }
  /// The step that a sequence takes before step t; -1: none, it is the first.
  int64_t previous(int64_t d, int64_t t, int64_t b) const {
    if (!reverse(d)) return t - 1;
    return t + 1 < length(b) ? t + 1 : -1;
  }
};

/// c (m x n) = a (m x k) b (k x n), or c += a b; `ta`, `tb`: the operand lies transposed.
struct PlainProduct {
  template <typename T>
  static void run(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b,
                  int64_t ldb, T* c, int64_t ldc, bool add) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        T sum = add ? c[i * ldc + j] : T(0);
        for (int64_t l = 0; l < k; ++l)
          sum += (ta ? a[l * lda + i] : a[i * lda + l]) * (tb ? b[j * ldb + l] : b[l * ldb + j]);
        c[i * ldc + j] = sum;
      }
    }
  }
};

struct FastProduct {
  static void run(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
                  const float* b, int64_t ldb, float* c, int64_t ldc, bool add) {
    if (m == 0 || n == 0) return;
    const auto status =
        dnnl::sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1.0F, a, lda, b, ldb, add ? 1.0F : 0.0F, c, ldc);
    FF_CHECK(status == dnnl::status::success) << "sgemm: status " << static_cast<int>(status);
  }
};

}  // namespace ff::cpu::recurrent
