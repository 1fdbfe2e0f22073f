// Gradients of what recurrent layers multiply: the input, and the weights with their biases, from the
// gradients of the gates before activation. Operands as in compiler/ops/recurrent.cc.
#include <algorithm>

#include "executor/kernels/cpu/recurrent.h"
#include "executor/kernels/cpu/registry.h"

namespace ff::cpu {
namespace {

using namespace recurrent;

/// dx = the sum over directions of dgates w.
template <typename T, typename Product>
void grad_data(const KernelCall& call, std::span<void* const> operands) {
  const Shape& gates = call.operands[0].shape;
  const int64_t time = gates[0], directions = gates[1], samples = gates[2], g = gates[3];
  const int64_t inputs = call.operands[1].shape[2];
  const T* dgates = static_cast<const T*>(operands[0]);
  const T* w = static_cast<const T*>(operands[1]);
  T* dx = static_cast<T*>(operands[2]);
  if (directions == 1)
    return Product::run(false, false, time * samples, inputs, g, dgates, g, w, inputs, dx, inputs, false);
  for (int64_t t = 0; t < time; ++t) {
    for (int64_t d = 0; d < directions; ++d)
      Product::run(false, false, samples, inputs, g, dgates + (t * directions + d) * samples * g, g,
                   w + d * g * inputs, inputs, dx + t * samples * inputs, inputs, d > 0);
  }
}

template <typename T, typename Product>
class Weights {
 public:
  /// Operands: x, lens, h0, y, gates (GRU), dgates; dw, dr, dbias.
  Weights(const KernelCall& call, std::span<void* const> operands)
      : s_(call, call.operands[5].shape, recurrent_shape(call)) {
    const auto in = [&](size_t i) { return static_cast<const T*>(operands[i]); };
    s_.inputs = call.operands[0].shape[2];
    s_.set_lengths(call.operands[1], operands[1]);
    x_ = in(0), h0_ = in(2), y_ = in(3), gates_ = in(4), dgates_ = in(5);
    dw_ = static_cast<T*>(operands[6]), dr_ = static_cast<T*>(operands[7]),
    dbias_ = static_cast<T*>(operands[8]);
    before_.resize(static_cast<size_t>(s_.samples * s_.hidden));
    through_.resize(static_cast<size_t>(s_.samples * s_.gates()));
  }

  void run() {
    if (dbias_ != nullptr) std::fill_n(dbias_, s_.directions * 2 * s_.gates(), T(0));
    for (int64_t d = 0; d < s_.directions; ++d) {
      if (dw_ != nullptr) input_weights(d);
      for (int64_t t = 0; t < s_.time; ++t) {
        const T* through = recurrent_gradient(d, t);
        if (dr_ != nullptr) recurrent_weights(d, t, through);
        if (dbias_ != nullptr) add_biases(d, t, through);
      }
    }
  }

 private:
  static Shape recurrent_shape(const KernelCall& call) {
    return {call.operands[5].shape[1], call.operands[5].shape[3], call.operands[3].shape[3]};
  }

  void input_weights(int64_t d) {
    const int64_t g = s_.gates(), inputs = s_.inputs;
    T* dw = dw_ + d * g * inputs;
    if (s_.directions == 1)
      return Product::run(true, false, g, inputs, s_.time * s_.samples, dgates_, g, x_, inputs, dw, inputs,
                          false);
    for (int64_t t = 0; t < s_.time; ++t)
      Product::run(true, false, g, inputs, s_.samples, dgates_ + s_.at(t, d) * g, g,
                   x_ + t * s_.samples * inputs, inputs, dw, inputs, t > 0);
  }

  /// The gradients of the step's recurrent products: those of the gates, but for the third of a GRU whose
  /// reset comes after the product.
  const T* recurrent_gradient(int64_t d, int64_t t) {
    const int64_t n = s_.hidden, g = s_.gates();
    const T* dgates = dgates_ + s_.at(t, d) * g;
    if (!s_.reset_after) return dgates;
    const T* gates = gates_ + s_.at(t, d) * g;
    for (int64_t b = 0; b < s_.samples; ++b) {
      for (int64_t k = 0; k < g; ++k) {
        const T reset = k < 2 * n ? T(1) : gates[b * g + k - n];
        through_[static_cast<size_t>(b * g + k)] = dgates[b * g + k] * reset;
      }
    }
    return through_.data();
  }

  void recurrent_weights(int64_t d, int64_t t, const T* through) {
    const int64_t n = s_.hidden, g = s_.gates();
    T* dr = dr_ + d * g * n;
    for (int64_t b = 0; b < s_.samples; ++b) {
      const int64_t previous = s_.previous(d, t, b);
      T* row = &before_[static_cast<size_t>(b * n)];
      if (previous >= 0) {
        std::copy_n(y_ + (s_.at(previous, d) + b) * n, n, row);
      } else if (h0_ != nullptr) {
        std::copy_n(h0_ + (d * s_.samples + b) * n, n, row);
      } else {
        std::fill_n(row, n, T(0));
      }
    }
    const bool reset_before = s_.cell == Cell::gru && !s_.reset_after;
    const int64_t rows = reset_before ? 2 * n : g;
    Product::run(true, false, rows, n, s_.samples, through, g, before_.data(), n, dr, n, t > 0);
    if (!reset_before) return;
    const T* gates = gates_ + s_.at(t, d) * g;
    for (int64_t b = 0; b < s_.samples; ++b) {
      for (int64_t k = 0; k < n; ++k) before_[static_cast<size_t>(b * n + k)] *= gates[b * g + n + k];
    }
    Product::run(true, false, n, n, s_.samples, through + 2 * n, g, before_.data(), n, dr + 2 * n * n, n,
                 t > 0);
  }

  /// First those of the inputs' products, then those of the recurrent ones.
  void add_biases(int64_t d, int64_t t, const T* through) {
    const int64_t g = s_.gates();
    const T* dgates = dgates_ + s_.at(t, d) * g;
    T* sums = dbias_ + d * 2 * g;
    for (int64_t b = 0; b < s_.samples; ++b) {
      for (int64_t k = 0; k < g; ++k) sums[k] += dgates[b * g + k];
      for (int64_t k = 0; k < g; ++k) sums[g + k] += through[b * g + k];
    }
  }

  Sequence s_;
  const T *x_, *h0_, *y_, *gates_, *dgates_;
  T *dw_, *dr_, *dbias_;
  std::vector<T> before_, through_;
};

template <typename T, typename Product>
void grad_weights(const KernelCall& call, std::span<void* const> operands) {
  Weights<T, Product>(call, operands).run();
}

}  // namespace

void register_recurrent_weights(Registry& registry) {
  registry.add_reference("RecurrentGradData", make_loop_kernel<grad_data<float, PlainProduct>>,
                         make_loop_kernel<grad_data<double, PlainProduct>>);
  registry.add_fast("RecurrentGradData", make_loop_kernel<grad_data<float, FastProduct>>);
  registry.add_reference("RecurrentGradWeights", make_loop_kernel<grad_weights<float, PlainProduct>>,
                         make_loop_kernel<grad_weights<double, PlainProduct>>);
  registry.add_fast("RecurrentGradWeights", make_loop_kernel<grad_weights<float, FastProduct>>);
}

}  // namespace ff::cpu
