// Elementwise arithmetic, one function an op, shared by the plain loops (any layout, broadcasting) and the
// fast ones. Internal to this room.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "compiler/base/rng.h"

namespace ff::cpu::elementwise {

/// What an op's function may need besides its operands.
struct Parameters {
  double alpha = 0.01;  // LeakyRelu
  double low = 0;       // Clip
  double high = 0;
  double scale = 1;  // ReduceTo
};

// Each is f(a, b, c, parameters); ops of fewer operands ignore the rest. Gradients take (saved, dy) or (dy,
// others).
template <typename T>
T add(T a, T b, T, const Parameters&) {
  return a + b;
}
template <typename T>
T add_relu(T a, T b, T, const Parameters&) {
  return a + b > 0 ? a + b : T(0);
}
template <typename T>
T sub(T a, T b, T, const Parameters&) {
  return a - b;
}
template <typename T>
T mul(T a, T b, T, const Parameters&) {
  return a * b;
}
template <typename T>
T div(T a, T b, T, const Parameters&) {
  return a / b;
}
template <typename T>
T reduce_to(T dy, T, T, const Parameters& p) {
  return dy * static_cast<T>(p.scale);
}
template <typename T>
T div_grad_a(T dy, T b, T, const Parameters&) {
  return dy / b;
}
template <typename T>
T div_grad_b(T dy, T a, T b, const Parameters&) {
  return -dy * a / (b * b);
}
template <typename T>
T neg(T x, T, T, const Parameters&) {
  return -x;
}
template <typename T>
T relu(T x, T, T, const Parameters&) {
  return x > 0 ? x : T(0);
}
template <typename T>
T relu_grad(T y, T dy, T, const Parameters&) {
  return y > 0 ? dy : T(0);
}
template <typename T>
T sigmoid(T x, T, T, const Parameters&) {
  // The form whose exponential cannot overflow.
  const T e = std::exp(-std::abs(x));
  return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}
template <typename T>
T sigmoid_grad(T y, T dy, T, const Parameters&) {
  return dy * y * (1 - y);
}
template <typename T>
T tanh(T x, T, T, const Parameters&) {
  return std::tanh(x);
}
template <typename T>
T tanh_grad(T y, T dy, T, const Parameters&) {
  return dy * (1 - y * y);
}
template <typename T>
T exp(T x, T, T, const Parameters&) {
  return std::exp(x);
}
template <typename T>
T exp_grad(T y, T dy, T, const Parameters&) {
  return dy * y;
}
template <typename T>
T sqrt(T x, T, T, const Parameters&) {
  return std::sqrt(x);
}
template <typename T>
T sqrt_grad(T y, T dy, T, const Parameters&) {
  return dy / (2 * y);
}
template <typename T>
T log(T x, T, T, const Parameters&) {
  return std::log(x);
}
template <typename T>
T log_grad(T x, T dy, T, const Parameters&) {
  return dy / x;
}
template <typename T>
T leaky_relu(T x, T, T, const Parameters& p) {
  return x >= 0 ? x : static_cast<T>(p.alpha) * x;
}
template <typename T>
T leaky_relu_grad(T x, T dy, T, const Parameters& p) {
  return x >= 0 ? dy : static_cast<T>(p.alpha) * dy;
}
template <typename T>
T clip(T x, T, T, const Parameters& p) {
  return std::min(std::max(x, static_cast<T>(p.low)), static_cast<T>(p.high));
}
template <typename T>
T clip_grad(T x, T dy, T, const Parameters& p) {
  return x >= static_cast<T>(p.low) && x <= static_cast<T>(p.high) ? dy : T(0);
}

}  // namespace ff::cpu::elementwise
