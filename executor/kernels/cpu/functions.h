// Activations and elementary functions with their derivatives, one function an op; see elementwise.h for the
// form. Formulas are ONNX's (the operators' documentation), which are PyTorch's but for names. Where a
// function has a corner, ONNX says nothing of a derivative: it is the side's that PyTorch takes.
#pragma once

#include "executor/kernels/cpu/elementwise.h"

namespace ff::cpu::elementwise {

template <typename T>
T abs(T x, T, T, const Parameters&) {
  return x < 0 ? -x : x;
}
template <typename T>
T abs_grad(T x, T dy, T, const Parameters&) {
  return x > 0 ? dy : x < 0 ? -dy : T(0);
}
template <typename T>
T sign(T x, T, T, const Parameters&) {
  return static_cast<T>((x > 0) - (x < 0));
}
template <typename T>
T ceil(T x, T, T, const Parameters&) {
  return std::ceil(x);
}
template <typename T>
T floor(T x, T, T, const Parameters&) {
  return std::floor(x);
}
/// Halves go to the even neighbour.
template <typename T>
T round(T x, T, T, const Parameters&) {
  return std::nearbyint(x);
}
template <typename T>
T sin(T x, T, T, const Parameters&) {
  return std::sin(x);
}
template <typename T>
T sin_grad(T x, T dy, T, const Parameters&) {
  return dy * std::cos(x);
}
template <typename T>
T cos(T x, T, T, const Parameters&) {
  return std::cos(x);
}
template <typename T>
T cos_grad(T x, T dy, T, const Parameters&) {
  return -dy * std::sin(x);
}
template <typename T>
T tan(T x, T, T, const Parameters&) {
  return std::tan(x);
}
template <typename T>
T tan_grad(T x, T dy, T, const Parameters&) {
  return dy / (std::cos(x) * std::cos(x));
}
template <typename T>
T sinh(T x, T, T, const Parameters&) {
  return std::sinh(x);
}
template <typename T>
T sinh_grad(T x, T dy, T, const Parameters&) {
  return dy * std::cosh(x);
}
template <typename T>
T cosh(T x, T, T, const Parameters&) {
  return std::cosh(x);
}
template <typename T>
T cosh_grad(T x, T dy, T, const Parameters&) {
  return dy * std::sinh(x);
}
template <typename T>
T asin(T x, T, T, const Parameters&) {
  return std::asin(x);
}
template <typename T>
T asin_grad(T x, T dy, T, const Parameters&) {
  return dy / std::sqrt(1 - x * x);
}
template <typename T>
T acos(T x, T, T, const Parameters&) {
  return std::acos(x);
}
template <typename T>
T acos_grad(T x, T dy, T, const Parameters&) {
  return -dy / std::sqrt(1 - x * x);
}
template <typename T>
T atan(T x, T, T, const Parameters&) {
  return std::atan(x);
}
template <typename T>
T atan_grad(T x, T dy, T, const Parameters&) {
  return dy / (1 + x * x);
}
template <typename T>
T asinh(T x, T, T, const Parameters&) {
  return std::asinh(x);
}
template <typename T>
T asinh_grad(T x, T dy, T, const Parameters&) {
  return dy / std::sqrt(x * x + 1);
}
template <typename T>
T acosh(T x, T, T, const Parameters&) {
  return std::acosh(x);
}
template <typename T>
T acosh_grad(T x, T dy, T, const Parameters&) {
  return dy / std::sqrt(x * x - 1);
}
template <typename T>
T atanh(T x, T, T, const Parameters&) {
  return std::atanh(x);
}
template <typename T>
T atanh_grad(T x, T dy, T, const Parameters&) {
  return dy / (1 - x * x);
}
template <typename T>
T erf(T x, T, T, const Parameters&) {
  return std::erf(x);
}
template <typename T>
T erf_grad(T x, T dy, T, const Parameters&) {
  return dy * 2 * std::numbers::inv_sqrtpi_v<T> * std::exp(-x * x);
}
/// The normal distribution's.
template <typename T>
T cumulative(T x) {
  return (1 + std::erf(x / std::numbers::sqrt2_v<T>)) / 2;
}
template <typename T>
T gelu(T x, T, T, const Parameters&) {
  return x * cumulative(x);
}
template <typename T>
T gelu_grad(T x, T dy, T, const Parameters&) {
  const T density = std::exp(-x * x / 2) * std::numbers::inv_sqrtpi_v<T> / std::numbers::sqrt2_v<T>;
  return dy * (cumulative(x) + x * density);
}
/// The approximation by tanh: its argument, sqrt(2 / pi) (x + 0.044715 x^3).
template <typename T>
T gelu_argument(T x) {
  return std::numbers::sqrt2_v<T> * std::numbers::inv_sqrtpi_v<T> *
         (x + static_cast<T>(0.044715) * x * x * x);
}
template <typename T>
T gelu_tanh(T x, T, T, const Parameters&) {
  return x * (1 + std::tanh(gelu_argument(x))) / 2;
}
template <typename T>
T gelu_tanh_grad(T x, T dy, T, const Parameters&) {
  const T t = std::tanh(gelu_argument(x));
  const T slope =
      std::numbers::sqrt2_v<T> * std::numbers::inv_sqrtpi_v<T> * (1 + 3 * static_cast<T>(0.044715) * x * x);
  return dy * ((1 + t) + x * (1 - t * t) * slope) / 2;
}
template <typename T>
T logistic(T x) {
  return sigmoid<T>(x, 0, 0, {});
}
/// log(1 + exp(x)), whose exponential cannot overflow.
template <typename T>
T log_one_plus_exp(T x) {
  return std::max(x, T(0)) + std::log1p(std::exp(-std::abs(x)));
}
template <typename T>
T swish(T x, T, T, const Parameters& p) {
  return x * logistic(static_cast<T>(p.alpha) * x);
}
template <typename T>
T swish_grad(T x, T dy, T, const Parameters& p) {
  const T a = static_cast<T>(p.alpha), s = logistic(a * x);
  return dy * (s + a * x * s * (1 - s));
}
template <typename T>
T softplus(T x, T, T, const Parameters&) {
  return log_one_plus_exp(x);
}
template <typename T>
T softplus_grad(T x, T dy, T, const Parameters&) {
  return dy * logistic(x);
}
template <typename T>
T mish(T x, T, T, const Parameters&) {
  return x * std::tanh(log_one_plus_exp(x));
}
template <typename T>
T mish_grad(T x, T dy, T, const Parameters&) {
  const T t = std::tanh(log_one_plus_exp(x));
  return dy * (t + x * (1 - t * t) * logistic(x));
}
template <typename T>
T softsign(T x, T, T, const Parameters&) {
  return x / (1 + std::abs(x));
}
template <typename T>
T softsign_grad(T x, T dy, T, const Parameters&) {
  return dy / ((1 + std::abs(x)) * (1 + std::abs(x)));
}
template <typename T>
T hard_sigmoid(T x, T, T, const Parameters& p) {
  return std::clamp(static_cast<T>(p.alpha) * x + static_cast<T>(p.beta), T(0), T(1));
}
template <typename T>
T hard_sigmoid_grad(T x, T dy, T, const Parameters& p) {
  const T y = static_cast<T>(p.alpha) * x + static_cast<T>(p.beta);
  return y > 0 && y < 1 ? static_cast<T>(p.alpha) * dy : T(0);
}
template <typename T>
T hard_swish(T x, T, T, const Parameters&) {
  return x * std::clamp(x / 6 + static_cast<T>(0.5), T(0), T(1));
}
template <typename T>
T hard_swish_grad(T x, T dy, T, const Parameters&) {
  return x < -3 ? T(0) : x >= 3 ? dy : dy * (x / 3 + static_cast<T>(0.5));
}
template <typename T>
T elu(T x, T, T, const Parameters& p) {
  return x >= 0 ? x : static_cast<T>(p.alpha) * std::expm1(x);
}
template <typename T>
T elu_grad(T x, T dy, T, const Parameters& p) {
  return x > 0 ? dy : dy * static_cast<T>(p.alpha) * std::exp(x);
}
template <typename T>
T celu(T x, T, T, const Parameters& p) {
  const T a = static_cast<T>(p.alpha);
  return x >= 0 ? x : a * std::expm1(x / a);
}
template <typename T>
T celu_grad(T x, T dy, T, const Parameters& p) {
  return x >= 0 ? dy : dy * std::exp(x / static_cast<T>(p.alpha));
}
template <typename T>
T selu(T x, T, T, const Parameters& p) {
  const T g = static_cast<T>(p.gamma);
  return x > 0 ? g * x : g * static_cast<T>(p.alpha) * std::expm1(x);
}
template <typename T>
T selu_grad(T x, T dy, T, const Parameters& p) {
  const T g = static_cast<T>(p.gamma);
  return x > 0 ? dy * g : dy * g * static_cast<T>(p.alpha) * std::exp(x);
}
template <typename T>
T thresholded_relu(T x, T, T, const Parameters& p) {
  return x > static_cast<T>(p.alpha) ? x : T(0);
}
template <typename T>
T thresholded_relu_grad(T x, T dy, T, const Parameters& p) {
  return x > static_cast<T>(p.alpha) ? dy : T(0);
}
/// `alpha` is the threshold, `beta` what is taken away beyond it.
template <typename T>
T shrink(T x, T, T, const Parameters& p) {
  const T limit = static_cast<T>(p.alpha), bias = static_cast<T>(p.beta);
  return x < -limit ? x + bias : x > limit ? x - bias : T(0);
}
template <typename T>
T shrink_grad(T x, T dy, T, const Parameters& p) {
  return std::abs(x) > static_cast<T>(p.alpha) ? dy : T(0);
}

}  // namespace ff::cpu::elementwise
