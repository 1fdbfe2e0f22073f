// One step of a recurrent layer for one sample: gates from what comes before activation, and back. Written
// once for plain and for vector functions. Order of gates as in ONNX: LSTM i o f c, GRU z r h.
//
// Equations: ONNX operators LSTM, GRU, RNN. `p` are peepholes i, o, f (null: none).
#pragma once

#include <cmath>
#include <cstdint>

#include "executor/kernels/cpu/simd.h"
#include "executor/kernels/cpu/vector_math.h"

namespace ff::cpu::cells {

struct PlainMath {
  template <typename T>
  static T sigmoid(T x) {
    return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
  }
  template <typename T>
  static T tanh(T x) {
    return std::tanh(x);
  }
};

struct VectorMath {
  [[gnu::always_inline]] static float sigmoid(float x) { return vector_math::sigmoid(x); }
  [[gnu::always_inline]] static float tanh(float x) { return vector_math::tanh(x); }
};

/// `gates` before activation become those after it; `c` the new cell, which is saved too; h the new state.
template <typename T, typename Math>
[[gnu::always_inline]] inline void lstm_step(T* gates, T* c, const T* p, int64_t n, T* saved, T* h) {
  T *gi = gates, *go = gates + n, *gf = gates + 2 * n, *gc = gates + 3 * n;
  const T *pi = p, *po = p + n, *pf = p + 2 * n;
#pragma omp simd
  for (int64_t k = 0; k < n; ++k) {
    const T before = c[k];
    const T i = Math::sigmoid(p != nullptr ? gi[k] + pi[k] * before : gi[k]);
    const T f = Math::sigmoid(p != nullptr ? gf[k] + pf[k] * before : gf[k]);
    const T g = Math::tanh(gc[k]);
    const T now = f * before + i * g;
    const T o = Math::sigmoid(p != nullptr ? go[k] + po[k] * now : go[k]);
    gi[k] = i, go[k] = o, gf[k] = f, gc[k] = g;
    c[k] = now, saved[k] = now;
    h[k] = o * Math::tanh(now);
  }
}

/// dh and dc: gradients of the step's state and cell; dc becomes that of the cell before. dgates: before
/// activation. dp (null: not wanted) is added to.
template <typename T, typename Math>
[[gnu::always_inline]] inline void lstm_step_back(const T* gates, const T* now, const T* before, const T* p,
                                                  const T* dh, int64_t n, T* dc, T* dgates, T* dp) {
  const T *gi = gates, *go = gates + n, *gf = gates + 2 * n, *gc = gates + 3 * n;
#pragma omp simd
  for (int64_t k = 0; k < n; ++k) {
    const T i = gi[k], o = go[k], f = gf[k], g = gc[k], t = Math::tanh(now[k]);
    const T dout = dh[k] * t * o * (1 - o);
    T d = dc[k] + dh[k] * o * (1 - t * t);
    if (p != nullptr) d += dout * p[n + k];
    const T din = d * g * i * (1 - i), dforget = d * before[k] * f * (1 - f), dcell = d * i * (1 - g * g);
    T back = d * f;
    if (p != nullptr) back += din * p[k] + dforget * p[2 * n + k];
    dc[k] = back;
    dgates[k] = din, dgates[n + k] = dout, dgates[2 * n + k] = dforget, dgates[3 * n + k] = dcell;
    if (dp != nullptr)
      dp[k] += din * before[k], dp[n + k] += dout * now[k], dp[2 * n + k] += dforget * before[k];
  }
}

/// The GRU's z and r.
template <typename T, typename Math>
[[gnu::always_inline]] inline void sigmoid_row(T* x, int64_t n) {
#pragma omp simd
  for (int64_t k = 0; k < n; ++k) x[k] = Math::sigmoid(x[k]);
}

/// The new state from the gates z and the third one, which becomes what it is after activation.
template <typename T, typename Math>
[[gnu::always_inline]] inline void gru_state(const T* z, T* third, int64_t n, T* h) {
#pragma omp simd
  for (int64_t k = 0; k < n; ++k) {
    third[k] = Math::tanh(third[k]);
    h[k] = (1 - z[k]) * third[k] + z[k] * h[k];
  }
}

template <typename T, typename Math>
[[gnu::always_inline]] inline void tanh_row(T* x, int64_t n) {
#pragma omp simd
  for (int64_t k = 0; k < n; ++k) x[k] = Math::tanh(x[k]);
}

}  // namespace ff::cpu::cells
