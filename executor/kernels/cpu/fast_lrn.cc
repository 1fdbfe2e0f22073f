// Local response normalisation in f32 where channels are innermost: one pixel at a time, each step a loop
// over its channels with shifted reads of a padded row.
#include <algorithm>
#include <cmath>
#include <vector>

#include "executor/kernels/cpu/image.h"
#include "executor/kernels/cpu/registry.h"
#include "executor/kernels/cpu/simd.h"

namespace ff::cpu {
namespace {

using Floats = std::vector<float>;

FF_TARGET_CLONES void square(const float* __restrict x, int64_t n, float* __restrict out) {
  for (int64_t c = 0; c < n; ++c) out[c] = x[c] * x[c];
}

/// out[c] = bias + factor * (in[c] + ... + in[c + size - 1]).
FF_TARGET_CLONES void window_sums(const float* __restrict in, int64_t n, int64_t size, float factor,
                                  float bias, float* __restrict out) {
  if (size == 5) {  // AlexNet's, without a pass a neighbour
    for (int64_t c = 0; c < n; ++c)
      out[c] = bias + factor * ((in[c] + in[c + 1]) + (in[c + 2] + in[c + 3]) + in[c + 4]);
    return;
  }
  for (int64_t c = 0; c < n; ++c) out[c] = in[c];
  for (int64_t k = 1; k < size; ++k) {
    for (int64_t c = 0; c < n; ++c) out[c] += in[c + k];
  }
  for (int64_t c = 0; c < n; ++c) out[c] = bias + factor * out[c];
}

/// s^-0.75 by two square roots; other exponents by pow.
FF_TARGET_CLONES void power_three_quarters(const float* __restrict s, int64_t n, float* __restrict out) {
  for (int64_t c = 0; c < n; ++c) {
    const float root = __builtin_sqrtf(s[c]);
    out[c] = 1.0f / (root * __builtin_sqrtf(root));
  }
}

FF_TARGET_CLONES void multiply(const float* __restrict a, const float* __restrict b, int64_t n,
                               float* __restrict out) {
  for (int64_t c = 0; c < n; ++c) out[c] = a[c] * b[c];
}

/// out = dy * x * power / s: what a channel gives back to its neighbours.
FF_TARGET_CLONES void feedback(const float* __restrict dy, const float* __restrict x,
                               const float* __restrict power, const float* __restrict s, int64_t n,
                               float* __restrict out) {
  for (int64_t c = 0; c < n; ++c) out[c] = dy[c] * x[c] * power[c] / s[c];
}

FF_TARGET_CLONES void combine(const float* __restrict dy, const float* __restrict power,
                              const float* __restrict x, const float* __restrict sum, int64_t n,
                              float* __restrict dx) {
  for (int64_t c = 0; c < n; ++c) dx[c] = dy[c] * power[c] - x[c] * sum[c];
}

void power(const float* s, int64_t n, float beta, float* out) {
  if (beta == 0.75f) return power_three_quarters(s, n, out);
  for (int64_t c = 0; c < n; ++c) out[c] = std::pow(s[c], -beta);
}

struct Response {
  int64_t size, before, after, begin;
  float factor, beta, bias;

  explicit Response(const Attributes& a)
      : size(a.integer("size")),
        before((size - 1) / 2),
        after(size / 2),
        begin(a.integer("begin")),
        factor(static_cast<float>(a.real("alpha") / static_cast<double>(size))),
        beta(static_cast<float>(a.real("beta"))),
        bias(static_cast<float>(a.real("bias"))) {}
};

size_t row(int64_t n) { return static_cast<size_t>(n); }

void lrn(const KernelCall& call, std::span<void* const> operands) {
  const Response r(call.attributes);
  const Image<float> x(call.operands[0], operands[0]), y(call.operands[1], operands[1]);
  // Squares of x's channels with zeros on both sides.
  Floats squares(row(x.c + 2 * r.size), 0.0f), s(row(y.c)), p(row(y.c));
  for (int64_t i = 0; i < y.n * y.pixels(); ++i) {
    const float* xs = x.data + i * x.c;
    square(xs, x.c, squares.data() + r.size);
    window_sums(squares.data() + r.size + r.begin - r.before, y.c, r.size, r.factor, r.bias, s.data());
    power(s.data(), y.c, r.beta, p.data());
    multiply(xs + r.begin, p.data(), y.c, y.data + i * y.c);
  }
}

void lrn_grad(const KernelCall& call, std::span<void* const> operands) {
  const Response r(call.attributes);
  const Image<float> x(call.operands[0], operands[0]), dy(call.operands[1], operands[1]),
      dx(call.operands[2], operands[2]);
  const int64_t dy_begin = call.attributes.integer("dy_begin"),
                shift = r.begin - dy_begin;  // dy's first channel in x
  Floats squares(row(x.c + 2 * r.size), 0.0f), s(row(dy.c)), p(row(dy.c)), back(row(dy.c + 2 * r.size), 0.0f),
      sum(row(dx.c));
  for (int64_t i = 0; i < dx.n * dx.pixels(); ++i) {
    const float *xs = x.data + i * x.c, *dys = dy.data + i * dy.c;
    square(xs, x.c, squares.data() + r.size);
    window_sums(squares.data() + r.size + shift - r.before, dy.c, r.size, r.factor, r.bias, s.data());
    power(s.data(), dy.c, r.beta, p.data());
    feedback(dys, xs + shift, p.data(), s.data(), dy.c, back.data() + r.size);
    // Channels that look at c: [c - after, c + before].
    window_sums(back.data() + r.size + dy_begin - r.after, dx.c, r.size, 2 * r.factor * r.beta, 0.0f,
                sum.data());
    combine(dys + dy_begin, p.data() + dy_begin, xs + r.begin, sum.data(), dx.c, dx.data + i * dx.c);
  }
}

template <LoopFunction kFast, LoopFunction kLoops>
std::unique_ptr<Kernel> make_function(const KernelCall& call) {
  const bool rows = std::all_of(call.operands.begin(), call.operands.end(), has_channel_rows);
  return rows ? make_loop_kernel<kFast>(call) : make_loop_kernel<kLoops>(call);
}

}  // namespace

void register_fast_lrn(Registry& registry) {
  registry.add_fast("LRN", make_function<cpu::lrn, reference::lrn<float>>);
  registry.add_fast("LRNGrad", make_function<cpu::lrn_grad, reference::lrn_grad<float>>);
}

}  // namespace ff::cpu
