// Functions with exponentials in f32, along lines that vectorise, and rows of them for softmax.

#include <numbers>

#include "executor/kernels/cpu/lines.h"
#include "executor/kernels/cpu/vector_math.h"

namespace ff::cpu {
namespace {

using elementwise::Parameters;
namespace vm = vector_math;

constexpr float kInverseRoot2 = 1 / std::numbers::sqrt2_v<float>;
constexpr float kRoot2OverPi = std::numbers::sqrt2_v<float> * std::numbers::inv_sqrtpi_v<float>;

/// The normal distribution's.
[[gnu::always_inline]] inline float cumulative(float x) { return 0.5F + 0.5F * vm::erf(x * kInverseRoot2); }
[[gnu::always_inline]] inline float density(float x) { return 0.5F * kRoot2OverPi * vm::exp(-0.5F * x * x); }
/// Of GELU's approximation: the tanh, and the slope of its argument.
[[gnu::always_inline]] inline float gelu_tanh_of(float x) {
  return vm::tanh(kRoot2OverPi * (x + 0.044715F * x * x * x));
}
[[gnu::always_inline]] inline float gelu_slope(float x) { return kRoot2OverPi * (1 + 3 * 0.044715F * x * x); }

// Each is f(a, b): x, or (x or y, dy) of a gradient.
#define FF_LINE(function, expression)                                         \
  FF_TARGET_CLONES void line_##function(const Line& l, const Parameters& p) { \
    const float alpha = static_cast<float>(p.alpha);                          \
    run_line(                                                                 \
        l, [alpha]([[maybe_unused]] float a, [[maybe_unused]] float b, float) \
               __attribute__((always_inline)) {                               \
                 (void)alpha;                                                 \
                 return expression;                                           \
               });                                                            \
  }
FF_LINE(exp, vm::exp(a))
FF_LINE(sigmoid, vm::sigmoid(a))
FF_LINE(tanh, vm::tanh(a))
FF_LINE(erf, vm::erf(a))
FF_LINE(erf_grad, b * 2 * std::numbers::inv_sqrtpi_v<float> * vm::exp(-a * a))
FF_LINE(gelu, a* cumulative(a))
FF_LINE(gelu_grad, b*(cumulative(a) + a * density(a)))
FF_LINE(gelu_tanh, 0.5F * a * (1 + gelu_tanh_of(a)))
FF_LINE(gelu_tanh_grad,
        0.5F * b * ((1 + gelu_tanh_of(a)) + a * (1 - gelu_tanh_of(a) * gelu_tanh_of(a)) * gelu_slope(a)))
FF_LINE(swish, a* vm::sigmoid(alpha* a))
FF_LINE(swish_grad, b* vm::sigmoid(alpha* a) * (1 + alpha * a * (1 - vm::sigmoid(alpha * a))))
FF_LINE(softplus_grad, b* vm::sigmoid(a))
#undef FF_LINE

bool by_tanh(const KernelCall& call) { return call.attributes.integer("tanh", 0) != 0; }

std::unique_ptr<Kernel> make_gelu(const KernelCall& call) {
  return by_tanh(call) ? make_lines<line_gelu_tanh>(call) : make_lines<line_gelu>(call);
}
std::unique_ptr<Kernel> make_gelu_grad(const KernelCall& call) {
  return by_tanh(call) ? make_lines<line_gelu_tanh_grad>(call) : make_lines<line_gelu_grad>(call);
}

}  // namespace

namespace vector_math {

FF_TARGET_CLONES float max_row(const float* x, int64_t n) {
  float max = x[0];
#pragma omp simd reduction(max : max)
  for (int64_t i = 1; i < n; ++i) max = x[i] > max ? x[i] : max;
  return max;
}

FF_TARGET_CLONES float sum_exp_row(const float* x, float shift, int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += vector_math::exp(x[i] - shift);
  return sum;
}

FF_TARGET_CLONES void exp_row(const float* x, float shift, float factor, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = factor * vector_math::exp(x[i] - shift);
}

}  // namespace vector_math

void register_fast_functions(Registry& registry) {
  registry.add_fast("Exp", make_lines<line_exp>);
  registry.add_fast("Sigmoid", make_lines<line_sigmoid>);
  registry.add_fast("Tanh", make_lines<line_tanh>);
  registry.add_fast("Erf", make_lines<line_erf>);
  registry.add_fast("ErfGrad", make_lines<line_erf_grad>);
  registry.add_fast("Gelu", make_gelu);
  registry.add_fast("GeluGrad", make_gelu_grad);
  registry.add_fast("Swish", make_lines<line_swish>);
  registry.add_fast("SwishGrad", make_lines<line_swish_grad>);
  registry.add_fast("SoftplusGrad", make_lines<line_softplus_grad>);
}

}  // namespace ff::cpu
