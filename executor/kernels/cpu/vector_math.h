// Elementary functions in f32 without branches, so that loops of them vectorise (a loop of std::exp does
// not). None is farther from the true value than 4 units in the last place of the larger of the two.
//
//   FF_TARGET_CLONES void sigmoid_row(const float* x, float* y, int64_t n) { ... y[i] =
//   vector_math::sigmoid(x[i]); }
//
// Polynomials of exp and tanh: Moshier's Cephes library (expf, tanhf). That of erf: our own fit of erf(x) / x
// in x^2 on [-4, 4], relative error 2.5e-8 before rounding.
#pragma once

#include <bit>
#include <cstdint>

namespace ff::cpu::vector_math {

/// 0 below the smallest normal number, infinite above the largest.
[[gnu::always_inline]] inline float exp(float x) {
  constexpr float kLowest = -87.33654F, kHighest = 88.72283F;
  const float clamped = x < kLowest ? kLowest : x > kHighest ? kHighest : x;
  // Adding and taking away 1.5 * 2^23 rounds to the nearest integer.
  const float n = (clamped * 1.44269504F + 12582912.0F) - 12582912.0F;
  const float r = (clamped - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  // 2^n as 2 * 2^(n - 1): n may be 128.
  const int32_t bits = (static_cast<int32_t>(n) + 126) << 23;
  const float y = p * std::bit_cast<float>(bits) * 2.0F;
  const float high = x > kHighest ? __builtin_inff() : y;
  const float low = x < kLowest ? 0.0F : high;
  return x != x ? x : low;
}

[[gnu::always_inline]] inline float sigmoid(float x) { return 1.0F / (1.0F + vector_math::exp(-x)); }

[[gnu::always_inline]] inline float tanh(float x) {
  const float z = x * x;
  float p = -5.70498872745e-3F;
  p = p * z + 2.06390887954e-2F;
  p = p * z - 5.37397155531e-2F;
  p = p * z + 1.33314422036e-1F;
  p = p * z - 3.33332819422e-1F;
  const float small = p * z * x + x;
  const float large = 1.0F - 2.0F / (vector_math::exp(2.0F * x) + 1.0F);
  return z < 0.625F * 0.625F ? small : large;
}

[[gnu::always_inline]] inline float erf(float x) {
  const float c = x < -4.0F ? -4.0F : x > 4.0F ? 4.0F : x;
  const float z = c * c;
  float p = 1.98693101e-6F;
  p = p * z + 2.84547103e-4F;
  p = p * z + 3.88249080e-3F;
  p = p * z + 5.30990735e-2F;
  p = p * z + 1.93525091e-1F;
  p = p * z + 1.12837911F;
  float q = 3.74207557e-5F;
  q = q * z + 1.18536595e-3F;
  q = q * z + 1.52055267e-2F;
  q = q * z + 1.15341716e-1F;
  q = q * z + 5.04839718e-1F;
  q = q * z + 1.0F;
  return c * p / q;
}

/// The largest of a row; sum of exp(x - shift); factor * exp(x - shift).
float max_row(const float* x, int64_t n);
float sum_exp_row(const float* x, float shift, int64_t n);
void exp_row(const float* x, float shift, float factor, int64_t n, float* y);

}  // namespace ff::cpu::vector_math
