// LSTM, GRU and RNN over whole sequences, and back through time. The same drivers run on plain loops in
// either precision and on oneDNN's sgemm with vector functions. Operands as in compiler/ops/recurrent.cc.
//
// The inputs of all steps are one product where the sequence has one direction; a step is then a product of
// the state with the recurrent weights, and a pass over the gates. Steps beyond a sequence's length leave its
// state as it is and write zeros; backwards a sequence begins at its own end.
#include "executor/kernels/cpu/recurrent.h"

#include <algorithm>
#include <cmath>

#include "executor/kernels/cpu/recurrent_cells.h"
#include "executor/kernels/cpu/registry.h"

namespace ff::cpu {
namespace {

using namespace recurrent;

/// Cells by plain or by vector functions; the latter are compiled for each instruction set.
template <typename Math, typename T>
struct CellMath {
  static void lstm(T* gates, T* c, const T* p, int64_t n, T* saved, T* h) {
    cells::lstm_step<T, Math>(gates, c, p, n, saved, h);
  }
  static void lstm_back(const T* gates, const T* now, const T* before, const T* p, const T* dh, int64_t n,
                        T* dc, T* dgates, T* dp) {
    cells::lstm_step_back<T, Math>(gates, now, before, p, dh, n, dc, dgates, dp);
  }
  static void sigmoid(T* x, int64_t n) { cells::sigmoid_row<T, Math>(x, n); }
  static void gru_state(const T* z, T* third, int64_t n, T* h) { cells::gru_state<T, Math>(z, third, n, h); }
  static void tanh(T* x, int64_t n) { cells::tanh_row<T, Math>(x, n); }
};

using cells::VectorMath;
FF_TARGET_CLONES void vector_lstm(float* gates, float* c, const float* p, int64_t n, float* saved, float* h) {
  cells::lstm_step<float, VectorMath>(gates, c, p, n, saved, h);
}
FF_TARGET_CLONES void vector_lstm_back(const float* gates, const float* now, const float* before,
                                       const float* p, const float* dh, int64_t n, float* dc, float* dgates,
                                       float* dp) {
  cells::lstm_step_back<float, VectorMath>(gates, now, before, p, dh, n, dc, dgates, dp);
}
FF_TARGET_CLONES void vector_sigmoid(float* x, int64_t n) { cells::sigmoid_row<float, VectorMath>(x, n); }
FF_TARGET_CLONES void vector_gru_state(const float* z, float* third, int64_t n, float* h) {
  cells::gru_state<float, VectorMath>(z, third, n, h);
}
FF_TARGET_CLONES void vector_tanh(float* x, int64_t n) { cells::tanh_row<float, VectorMath>(x, n); }

template <>
struct CellMath<VectorMath, float> {
  static constexpr auto lstm = vector_lstm;
  static constexpr auto lstm_back = vector_lstm_back;
  static constexpr auto sigmoid = vector_sigmoid;
  static constexpr auto gru_state = vector_gru_state;
  static constexpr auto tanh = vector_tanh;
};

/// What the step's gates are made of besides x: the state times the recurrent weights.
template <typename T, typename Math, typename Product>
class Forward {
 public:
  Forward(const KernelCall& call, std::span<void* const> operands)
      : s_(call, call.operands[0].shape, call.operands[2].shape) {
    const bool lstm = s_.cell == Cell::lstm;
    const size_t first = call.operands.size() - (lstm ? 5 : s_.cell == Cell::gru ? 4 : 3);
    const auto in = [&](size_t i) { return i < first ? static_cast<const T*>(operands[i]) : nullptr; };
    x_ = in(0), w_ = in(1), r_ = in(2), bias_ = in(3), h0_ = in(5), c0_ = in(6), p_ = in(7);
    if (first > 4) s_.set_lengths(call.operands[4], operands[4]);
    const auto out = [&](size_t i) { return static_cast<T*>(operands[first + i]); };
    y_ = out(0), y_h_ = out(1);
    y_c_ = lstm ? out(2) : nullptr;
    gates_ = out(lstm ? 3 : 2);
    saved_ = s_.cell == Cell::rnn ? nullptr : out(lstm ? 4 : 3);
    h_.resize(static_cast<size_t>(s_.samples * s_.hidden));
    c_.resize(h_.size());
    other_.resize(static_cast<size_t>(s_.samples * s_.gates()));
  }

  void run() {
    for (int64_t d = 0; d < s_.directions; ++d) run_direction(d);
  }

 private:
  void run_direction(int64_t d) {
    const int64_t n = s_.hidden, g = s_.gates(), states = s_.samples * n;
    fill_gates(d);
    start(h_, h0_, d);
    start(c_, c0_, d);
    for (int64_t step = 0; step < s_.time; ++step) {
      const int64_t t = s_.step(d, step);
      T* pre = gates_ + s_.at(t, d) * g;
      recur(d, pre);
      for (int64_t b = 0; b < s_.samples; ++b) {
        T* y = y_ + (s_.at(t, d) + b) * n;
        T* saved = saved_ != nullptr ? saved_ + (s_.at(t, d) + b) * n : nullptr;
        if (s_.active(b, t)) {
          step_sample(d, b, pre + b * g, saved);
          std::copy_n(&h_[static_cast<size_t>(b * n)], n, y);
        } else {
          std::fill_n(pre + b * g, g, T(0));
          std::fill_n(y, n, T(0));
          if (saved != nullptr)
            std::copy_n(s_.cell == Cell::lstm ? &c_[static_cast<size_t>(b * n)] : y, n, saved);
        }
      }
    }
    if (y_h_ != nullptr) std::copy_n(h_.data(), states, y_h_ + d * states);
    if (y_c_ != nullptr) std::copy_n(c_.data(), states, y_c_ + d * states);
  }

  void start(std::vector<T>& state, const T* given, int64_t d) {
    if (given != nullptr) {
      std::copy_n(given + d * s_.samples * s_.hidden, state.size(), state.data());
    } else {
      std::fill(state.begin(), state.end(), T(0));
    }
  }

  /// Biases and the products of all inputs.
  void fill_gates(int64_t d) {
    const int64_t g = s_.gates(), inputs = s_.inputs;
    for (int64_t t = 0; t < s_.time; ++t) {
      for (int64_t b = 0; b < s_.samples; ++b) {
        T* row = gates_ + (s_.at(t, d) + b) * g;
        const T* bias = bias_ != nullptr ? bias_ + d * 2 * g : nullptr;
        for (int64_t k = 0; k < g; ++k) {
          const bool apart =
              s_.reset_after && k >= 2 * s_.hidden;  // of the recurrent product, inside of the reset
          row[k] = bias == nullptr ? T(0) : apart ? bias[k] : bias[k] + bias[g + k];
        }
      }
    }
    const T* w = w_ + d * g * inputs;
    if (s_.directions == 1) {
      Product::run(false, true, s_.time * s_.samples, g, inputs, x_, inputs, w, inputs, gates_, g, true);
      return;
    }
    for (int64_t t = 0; t < s_.time; ++t)
      Product::run(false, true, s_.samples, g, inputs, x_ + t * s_.samples * inputs, inputs, w, inputs,
                   gates_ + s_.at(t, d) * g, g, true);
  }

  /// The products of the step's states.
  void recur(int64_t d, T* pre) {
    const int64_t n = s_.hidden, g = s_.gates();
    const T* r = r_ + d * g * n;
    if (s_.cell != Cell::gru)
      return Product::run(false, true, s_.samples, g, n, h_.data(), n, r, n, pre, g, true);
    if (s_.reset_after) {
      Product::run(false, true, s_.samples, g, n, h_.data(), n, r, n, other_.data(), g, false);
      return;
    }
    Product::run(false, true, s_.samples, 2 * n, n, h_.data(), n, r, n, pre, g, true);
    for (int64_t b = 0; b < s_.samples; ++b) {
      CellMath<Math, T>::sigmoid(pre + b * g, 2 * n);
      for (int64_t k = 0; k < n; ++k)
        other_[static_cast<size_t>(b * n + k)] = pre[b * g + n + k] * h_[static_cast<size_t>(b * n + k)];
    }
    Product::run(false, true, s_.samples, n, n, other_.data(), n, r + 2 * n * n, n, pre + 2 * n, g, true);
  }

  void step_sample(int64_t d, int64_t b, T* gates, T* saved) {
    const int64_t n = s_.hidden, g = s_.gates();
    T* h = &h_[static_cast<size_t>(b * n)];
    if (s_.cell == Cell::lstm) {
      const T* p = p_ != nullptr ? p_ + d * 3 * n : nullptr;
      return CellMath<Math, T>::lstm(gates, &c_[static_cast<size_t>(b * n)], p, n, saved, h);
    }
    if (s_.cell == Cell::rnn) {
      if (s_.relu) {
        for (int64_t k = 0; k < n; ++k) gates[k] = gates[k] > 0 ? gates[k] : T(0);
      } else {
        CellMath<Math, T>::tanh(gates, n);
      }
      std::copy_n(gates, n, h);
      return;
    }
    if (s_.reset_after) {
      const T* other = &other_[static_cast<size_t>(b * g)];
      const T* bias = bias_ != nullptr ? bias_ + d * 2 * g + g + 2 * n : nullptr;
      for (int64_t k = 0; k < 2 * n; ++k) gates[k] += other[k];
      CellMath<Math, T>::sigmoid(gates, 2 * n);
      for (int64_t k = 0; k < n; ++k) {
        saved[k] = other[2 * n + k] + (bias != nullptr ? bias[k] : T(0));
        gates[2 * n + k] += gates[n + k] * saved[k];
      }
    } else {
      std::copy_n(&other_[static_cast<size_t>(b * n)], n, saved);
    }
    CellMath<Math, T>::gru_state(gates, gates + 2 * n, n, h);
  }

  Sequence s_;
  const T *x_, *w_, *r_, *bias_, *h0_, *c0_, *p_;
  T *y_, *y_h_, *y_c_, *gates_, *saved_;
  std::vector<T> h_, c_, other_;
};

/// Back through time. Operands: r, lens, h0, c0, p, y, gates, saved, dy, dy_h, dy_c; dgates, dh0, dc0, dp.
template <typename T, typename Math, typename Product>
class Backward {
 public:
  Backward(const KernelCall& call, std::span<void* const> operands)
      : s_(call, call.operands[6].shape, call.operands[0].shape) {
    const auto in = [&](size_t i) { return static_cast<const T*>(operands[i]); };
    r_ = in(0), h0_ = in(2), c0_ = in(3), p_ = in(4), y_ = in(5), gates_ = in(6), saved_ = in(7);
    dy_ = in(8), dy_h_ = in(9), dy_c_ = in(10);
    s_.set_lengths(call.operands[1], operands[1]);
    dgates_ = static_cast<T*>(operands[11]);
    dh0_ = static_cast<T*>(operands[12]), dc0_ = static_cast<T*>(operands[13]),
    dp_ = static_cast<T*>(operands[14]);
    const auto states = static_cast<size_t>(s_.samples * s_.hidden);
    dh_.resize(states), dc_.resize(states), back_.resize(states);
    zeros_.assign(static_cast<size_t>(s_.hidden), T(0));
    recurrent_.resize(static_cast<size_t>(s_.samples * s_.gates()));
    if (dp_ != nullptr) std::fill_n(dp_, s_.directions * 3 * s_.hidden, T(0));
  }

  void run() {
    for (int64_t d = 0; d < s_.directions; ++d) run_direction(d);
  }

 private:
  void run_direction(int64_t d) {
    const int64_t n = s_.hidden, g = s_.gates(), states = s_.samples * n;
    start(dh_, dy_h_, d);
    start(dc_, dy_c_, d);
    for (int64_t step = s_.time; step-- > 0;) {
      const int64_t t = s_.step(d, step);
      T* dgates = dgates_ + s_.at(t, d) * g;
      std::fill(back_.begin(), back_.end(), T(0));
      for (int64_t b = 0; b < s_.samples; ++b) {
        T* row = dgates + b * g;
        if (!s_.active(b, t)) {
          std::fill_n(row, g, T(0));
          std::fill_n(&recurrent_[static_cast<size_t>(b * g)], g, T(0));
          std::copy_n(&dh_[static_cast<size_t>(b * n)], n, &back_[static_cast<size_t>(b * n)]);
          continue;
        }
        if (dy_ != nullptr) {
          const T* dy = dy_ + (s_.at(t, d) + b) * n;
          for (int64_t k = 0; k < n; ++k) dh_[static_cast<size_t>(b * n + k)] += dy[k];
        }
        step_sample(d, t, b, row);
      }
      recur(d, t, dgates);
      std::swap(dh_, back_);
    }
    if (dh0_ != nullptr) std::copy_n(dh_.data(), states, dh0_ + d * states);
    if (dc0_ != nullptr) std::copy_n(dc_.data(), states, dc0_ + d * states);
  }

  void start(std::vector<T>& gradient, const T* arriving, int64_t d) {
    if (arriving != nullptr) {
      std::copy_n(arriving + d * s_.samples * s_.hidden, gradient.size(), gradient.data());
    } else {
      std::fill(gradient.begin(), gradient.end(), T(0));
    }
  }

  /// What a sequence of states (y or cells) was before step t.
  const T* before(const T* sequence, const T* first, int64_t d, int64_t t, int64_t b) const {
    const int64_t n = s_.hidden, previous = s_.previous(d, t, b);
    if (previous >= 0) return sequence + (s_.at(previous, d) + b) * n;
    return first != nullptr ? first + (d * s_.samples + b) * n : zeros_.data();
  }

  /// dgates of a step, and in `back_` what reaches the state before it other than through the products.
  void step_sample(int64_t d, int64_t t, int64_t b, T* dgates) {
    const int64_t n = s_.hidden, g = s_.gates();
    const T* gates = gates_ + (s_.at(t, d) + b) * g;
    const T* dh = &dh_[static_cast<size_t>(b * n)];
    if (s_.cell == Cell::lstm) {
      const T* p = p_ != nullptr ? p_ + d * 3 * n : nullptr;
      T* dp = dp_ != nullptr ? dp_ + d * 3 * n : nullptr;
      return CellMath<Math, T>::lstm_back(gates, saved_ + (s_.at(t, d) + b) * n, before(saved_, c0_, d, t, b),
                                          p, dh, n, &dc_[static_cast<size_t>(b * n)], dgates, dp);
    }
    if (s_.cell == Cell::rnn) {
      for (int64_t k = 0; k < n; ++k) {
        const T slope = s_.relu ? (gates[k] > 0 ? T(1) : T(0)) : 1 - gates[k] * gates[k];
        dgates[k] = dh[k] * slope;
      }
      return;
    }
    const T* h = before(y_, h0_, d, t, b);
    T* back = &back_[static_cast<size_t>(b * n)];
    for (int64_t k = 0; k < n; ++k) {
      const T z = gates[k], third = gates[2 * n + k];
      dgates[k] = dh[k] * (h[k] - third) * z * (1 - z);
      dgates[2 * n + k] = dh[k] * (1 - z) * (1 - third * third);
      back[k] += dh[k] * z;
    }
    if (!s_.reset_after) return;
    const T* saved = saved_ + (s_.at(t, d) + b) * n;
    T* through = &recurrent_[static_cast<size_t>(b * g)];
    for (int64_t k = 0; k < n; ++k) {
      const T r = gates[n + k];
      dgates[n + k] = dgates[2 * n + k] * saved[k] * r * (1 - r);
      through[k] = dgates[k], through[n + k] = dgates[n + k], through[2 * n + k] = dgates[2 * n + k] * r;
    }
  }

  /// Adds what reaches the states before the step through the recurrent products.
  void recur(int64_t d, int64_t t, T* dgates) {
    const int64_t n = s_.hidden, g = s_.gates();
    const T* r = r_ + d * g * n;
    if (s_.cell != Cell::gru)
      return Product::run(false, false, s_.samples, n, g, dgates, g, r, n, back_.data(), n, true);
    if (s_.reset_after)
      return Product::run(false, false, s_.samples, n, g, recurrent_.data(), g, r, n, back_.data(), n, true);
    // What reaches r * h, then r and h; the third gate's gradient first.
    Product::run(false, false, s_.samples, n, n, dgates + 2 * n, g, r + 2 * n * n, n, recurrent_.data(), n,
                 false);
    for (int64_t b = 0; b < s_.samples; ++b) {
      if (!s_.active(b, t)) continue;
      const T* gates = gates_ + (s_.at(t, d) + b) * g;
      const T* h = before(y_, h0_, d, t, b);
      for (int64_t k = 0; k < n; ++k) {
        const T through = recurrent_[static_cast<size_t>(b * n + k)], reset = gates[n + k];
        dgates[b * g + n + k] = through * h[k] * reset * (1 - reset);
        back_[static_cast<size_t>(b * n + k)] += through * reset;
      }
    }
    Product::run(false, false, s_.samples, n, 2 * n, dgates, g, r, n, back_.data(), n, true);
  }

  Sequence s_;
  const T *r_, *h0_, *c0_, *p_, *y_, *gates_, *saved_, *dy_, *dy_h_, *dy_c_;
  T *dgates_, *dh0_, *dc0_, *dp_;
  std::vector<T> dh_, dc_, back_, recurrent_, zeros_;
};

template <template <typename, typename, typename> typename Driver, typename T, typename Math,
          typename Product>
void drive(const KernelCall& call, std::span<void* const> operands) {
  Driver<T, Math, Product>(call, operands).run();
}

template <template <typename, typename, typename> typename Driver>
void add(Registry& registry, const std::string& name) {
  registry.add_reference(name, make_loop_kernel<drive<Driver, float, cells::PlainMath, PlainProduct>>,
                         make_loop_kernel<drive<Driver, double, cells::PlainMath, PlainProduct>>);
  registry.add_fast(name, make_loop_kernel<drive<Driver, float, VectorMath, FastProduct>>);
}

}  // namespace

void register_recurrent(Registry& registry) {
  for (const char* type : {"LSTM", "GRU", "RNN"}) {
    add<Forward>(registry, type);
    add<Backward>(registry, std::string(type) + "Grad");
  }
}

}  // namespace ff::cpu
