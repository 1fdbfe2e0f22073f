// Elementwise arithmetic, one function an op, shared by the plain loops (any layout, broadcasting) and the
// fast ones. Internal to this room.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <numbers>
#include <type_traits>

#include "compiler/base/check.h"
#include "compiler/base/rng.h"
#include "compiler/plan/kernel_call.h"

namespace ff::cpu::elementwise {

/// What an op's function may need besides its operands.
struct Parameters {
  double alpha = 0, beta = 0, gamma = 0;
  double low = 0, high = 0;  // Clip
  double scale = 1;          // ReduceSum
};

/// What a kernel call says; ONNX's defaults are the importer's.
inline Parameters parameters_of(const Attributes& a) {
  Parameters p;
  p.alpha = a.real("alpha", 0), p.beta = a.real("beta", 0), p.gamma = a.real("gamma", 0);
  p.low = a.real("min", -INFINITY), p.high = a.real("max", INFINITY);
  p.scale = a.real("scale", 1.0);
  return p;
}

// Each is f(a, b, c, parameters); ops of fewer operands ignore the rest. Gradients take (saved, dy) or (dy,
// others).
template <typename T>
[[gnu::always_inline]] inline T add(T a, T b, T, const Parameters&) {
  return a + b;
}
template <typename T>
[[gnu::always_inline]] inline T add_relu(T a, T b, T, const Parameters&) {
  return a + b > 0 ? a + b : T(0);
}
template <typename T>
[[gnu::always_inline]] inline T sub(T a, T b, T, const Parameters&) {
  return a - b;
}
template <typename T>
[[gnu::always_inline]] inline T mul(T a, T b, T, const Parameters&) {
  return a * b;
}
template <typename T>
[[gnu::always_inline]] inline T div(T a, T b, T, const Parameters&) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0)
      throw UserError("an integer is divided by zero", "check the data that the divisor comes from");
  }
  return a / b;
}
/// With the sign of the divisor (of floats too); fmod has that of the dividend.
template <typename T>
[[gnu::always_inline]] inline T mod(T a, T b, T zero, const Parameters& p) {
  if constexpr (std::is_integral_v<T>) {
    div(a, b, zero, p);
    const T rest = static_cast<T>(a % b);
    return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
  } else {
    const T rest = std::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
}
template <typename T>
[[gnu::always_inline]] inline T fmod(T a, T b, T zero, const Parameters& p) {
  if constexpr (std::is_integral_v<T>) {
    div(a, b, zero, p);
    return static_cast<T>(a % b);
  } else {
    return std::fmod(a, b);
  }
}
template <typename T>
[[gnu::always_inline]] inline T pow(T a, T b, T, const Parameters&) {
  return static_cast<T>(std::pow(a, b));
}
/// 0 for the exponent 0, whatever the base.
template <typename T>
[[gnu::always_inline]] inline T pow_grad_a(T dy, T a, T b, const Parameters&) {
  return b == 0 ? T(0) : dy * b * std::pow(a, b - 1);
}
/// 0 for the base 0, as the limit is for a positive exponent.
template <typename T>
[[gnu::always_inline]] inline T pow_grad_b(T dy, T a, T b, const Parameters&) {
  return a == 0 ? T(0) : dy * std::pow(a, b) * std::log(a);
}
template <typename T>
[[gnu::always_inline]] inline T max(T a, T b, T, const Parameters&) {
  return a > b || a != a ? a : b;  // NaN stays
}
template <typename T>
[[gnu::always_inline]] inline T min(T a, T b, T, const Parameters&) {
  return a < b || a != a ? a : b;
}
/// Of `a`, which shares the gradient with `b` where they tie.
template <typename T>
[[gnu::always_inline]] inline T max_grad(T dy, T a, T b, const Parameters&) {
  return a > b ? dy : a == b ? dy / 2 : T(0);
}
template <typename T>
[[gnu::always_inline]] inline T min_grad(T dy, T a, T b, const Parameters&) {
  return a < b ? dy : a == b ? dy / 2 : T(0);
}
template <typename T>
[[gnu::always_inline]] inline T prelu(T x, T slope, T, const Parameters&) {
  return x < 0 ? slope * x : x;
}
template <typename T>
[[gnu::always_inline]] inline T prelu_grad_a(T dy, T x, T slope, const Parameters&) {
  return x > 0 ? dy : slope * dy;
}
template <typename T>
[[gnu::always_inline]] inline T prelu_grad_b(T dy, T x, T, const Parameters&) {
  return x < 0 ? x * dy : T(0);
}
/// Which elements are the maximum.
template <typename T>
[[gnu::always_inline]] inline T reduce_max_ties(T x, T max, T, const Parameters&) {
  return x == max ? T(1) : T(0);
}
template <typename T>
[[gnu::always_inline]] inline T reduce_max_grad(T share, T x, T max, const Parameters&) {
  return x == max ? share : T(0);
}
template <typename T>
[[gnu::always_inline]] inline T reduce_sum(T dy, T, T, const Parameters& p) {
  return dy * static_cast<T>(p.scale);
}
template <typename T>
[[gnu::always_inline]] inline T div_grad_a(T dy, T b, T, const Parameters&) {
  return dy / b;
}
template <typename T>
[[gnu::always_inline]] inline T div_grad_b(T dy, T a, T b, const Parameters&) {
  return -dy * a / (b * b);
}
template <typename T>
[[gnu::always_inline]] inline T neg(T x, T, T, const Parameters&) {
  return -x;
}
template <typename T>
[[gnu::always_inline]] inline T relu(T x, T, T, const Parameters&) {
  return x > 0 ? x : T(0);
}
template <typename T>
[[gnu::always_inline]] inline T relu_grad(T y, T dy, T, const Parameters&) {
  return y > 0 ? dy : T(0);
}
template <typename T>
[[gnu::always_inline]] inline T sigmoid(T x, T, T, const Parameters&) {
  // The form whose exponential cannot overflow.
  const T e = std::exp(-std::abs(x));
  return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}
template <typename T>
[[gnu::always_inline]] inline T sigmoid_grad(T y, T dy, T, const Parameters&) {
  return dy * y * (1 - y);
}
template <typename T>
[[gnu::always_inline]] inline T tanh(T x, T, T, const Parameters&) {
  return std::tanh(x);
}
template <typename T>
[[gnu::always_inline]] inline T tanh_grad(T y, T dy, T, const Parameters&) {
  return dy * (1 - y * y);
}
template <typename T>
[[gnu::always_inline]] inline T exp(T x, T, T, const Parameters&) {
  return std::exp(x);
}
template <typename T>
[[gnu::always_inline]] inline T exp_grad(T y, T dy, T, const Parameters&) {
  return dy * y;
}
template <typename T>
[[gnu::always_inline]] inline T sqrt(T x, T, T, const Parameters&) {
  return std::sqrt(x);
}
template <typename T>
[[gnu::always_inline]] inline T sqrt_grad(T y, T dy, T, const Parameters&) {
  return dy / (2 * y);
}
template <typename T>
[[gnu::always_inline]] inline T log(T x, T, T, const Parameters&) {
  return std::log(x);
}
template <typename T>
[[gnu::always_inline]] inline T log_grad(T x, T dy, T, const Parameters&) {
  return dy / x;
}
template <typename T>
[[gnu::always_inline]] inline T square(T x, T, T, const Parameters&) {
  return x * x;
}
template <typename T>
[[gnu::always_inline]] inline T square_grad(T x, T dy, T, const Parameters&) {
  return 2 * x * dy;
}
template <typename T>
[[gnu::always_inline]] inline T reciprocal(T x, T, T, const Parameters&) {
  return 1 / x;
}
template <typename T>
[[gnu::always_inline]] inline T reciprocal_grad(T y, T dy, T, const Parameters&) {
  return -dy * y * y;
}
template <typename T>
[[gnu::always_inline]] inline T leaky_relu(T x, T, T, const Parameters& p) {
  return x >= 0 ? x : static_cast<T>(p.alpha) * x;
}
template <typename T>
[[gnu::always_inline]] inline T leaky_relu_grad(T x, T dy, T, const Parameters& p) {
  return x > 0 ? dy : static_cast<T>(p.alpha) * dy;
}
template <typename T>
[[gnu::always_inline]] inline T clip(T x, T, T, const Parameters& p) {
  return std::min(std::max(x, static_cast<T>(p.low)), static_cast<T>(p.high));
}
template <typename T>
[[gnu::always_inline]] inline T clip_grad(T x, T dy, T, const Parameters& p) {
  return x >= static_cast<T>(p.low) && x <= static_cast<T>(p.high) ? dy : T(0);
}

}  // namespace ff::cpu::elementwise
