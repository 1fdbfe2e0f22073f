// Batch and local response normalisation in plain loops.
//
// Operands of the gradients of batch normalisation: x, dy, scale, bias (absent without relu), mean, var, then
// the outputs.
#include <algorithm>
#include <cmath>
#include <vector>

#include "executor/kernels/cpu/grouped_norm.h"
#include "executor/kernels/cpu/image.h"
#include "executor/kernels/cpu/registry.h"

namespace ff::cpu {
namespace reference {
namespace {

/// Calls body(n, p) for every sample and pixel of a channel.
template <typename T, typename Body>
void for_each_pixel(const Image<T>& image, Body&& body) {
  for (int64_t n = 0; n < image.n; ++n) for_each_point(image.size, [&](const Spatial& p) { body(n, p); });
}

template <typename T>
T* vector(std::span<void* const> operands, size_t i) {
  return i < operands.size() ? static_cast<T*>(operands[i]) : nullptr;
}

template <typename T>
T real(const KernelCall& call, std::string_view key) {
  return static_cast<T>(call.attributes.real(key));
}

bool relu(const KernelCall& call) { return call.attributes.integer("relu", 0) != 0; }

template <typename T>
T inverse_deviation(const KernelCall& call, T var) {
  return T(1) / std::sqrt(var + real<T>(call, "epsilon"));
}

template <typename T>
void mean_of(const KernelCall& call, const Image<T>& x, T* mean) {
  for (int64_t c = 0; c < x.c; ++c) {
    T sum = 0;
    for_each_pixel(x, [&](int64_t n, const Spatial& p) { sum += x.at(n, c, p); });
    mean[c] = sum * real<T>(call, "scale");
  }
}

template <typename T>
void variance_of(const KernelCall& call, const Image<T>& x, const T* mean, T* var) {
  for (int64_t c = 0; c < x.c; ++c) {
    T sum = 0;
    for_each_pixel(x, [&](int64_t n, const Spatial& p) {
      sum += (x.at(n, c, p) - mean[c]) * (x.at(n, c, p) - mean[c]);
    });
    var[c] = sum * real<T>(call, "scale");
  }
}

template <typename T>
void normalize(const KernelCall& call, const Image<T>& x, const T* scale, const T* bias, const T* mean,
               const T* var, const Image<T>& y) {
  for (int64_t c = 0; c < x.c; ++c) {
    const T factor = scale[c] * inverse_deviation(call, var[c]);
    for_each_pixel(x, [&](int64_t n, const Spatial& p) {
      const T value = (x.at(n, c, p) - mean[c]) * factor + bias[c];
      y.at(n, c, p) = relu(call) && !(value > T(0)) ? T(0) : value;
    });
  }
}

/// The operands of a gradient of batch normalisation.
template <typename T>
struct NormGradient {
  const KernelCall& call;
  Image<T> x, dy;
  const T *scale, *bias, *mean, *var;

  NormGradient(const KernelCall& c, std::span<void* const> o)
      : call(c),
        x(c.operands[0], o[0]),
        dy(c.operands[1], o[1]),
        scale(vector<T>(o, 2)),
        bias(vector<T>(o, 3)),
        mean(vector<T>(o, 4)),
        var(vector<T>(o, 5)) {}

  T inverse(int64_t c) const { return inverse_deviation(call, var[c]); }
  T deviation(int64_t n, int64_t c, const Spatial& p) const { return x.at(n, c, p) - mean[c]; }
  /// dy behind the ReLU's mask.
  T gradient(int64_t n, int64_t c, const Spatial& p) const {
    const T g = dy.at(n, c, p);
    return !relu(call) || deviation(n, c, p) * (scale[c] * inverse(c)) + bias[c] > T(0) ? g : T(0);
  }
  /// Sums of dy * normalised x, and of dy.
  void sums(int64_t c, T& product, T& plain) const {
    product = plain = 0;
    for_each_pixel(x, [&](int64_t n, const Spatial& p) {
      product += gradient(n, c, p) * deviation(n, c, p);
      plain += gradient(n, c, p);
    });
    product *= inverse(c);
  }
  void data(int64_t c, T product, T plain, const Image<T>& dx) const {
    const T share = real<T>(call, "scale");
    for_each_pixel(x, [&](int64_t n, const Spatial& p) {
      const T normalized = deviation(n, c, p) * inverse(c);
      dx.at(n, c, p) = scale[c] * inverse(c) * (gradient(n, c, p) - share * (plain + normalized * product));
    });
  }
};

}  // namespace

template <typename T>
void batch_norm(const KernelCall& call, std::span<void* const> operands) {
  const Image<T> x(call.operands[0], operands[0]), y(call.operands[3], operands[3]);
  std::vector<T> own_mean(static_cast<size_t>(x.c)), own_var(static_cast<size_t>(x.c));
  T* mean = vector<T>(operands, 4) ? vector<T>(operands, 4) : own_mean.data();
  T* var = vector<T>(operands, 5) ? vector<T>(operands, 5) : own_var.data();
  mean_of(call, x, mean);
  variance_of(call, x, mean, var);
  normalize(call, x, vector<T>(operands, 1), vector<T>(operands, 2), mean, var, y);
}

template <typename T>
void batch_norm_sum(const KernelCall& call, std::span<void* const> operands) {
  mean_of(call, Image<T>(call.operands[0], operands[0]), vector<T>(operands, 1));
}

template <typename T>
void batch_norm_squares(const KernelCall& call, std::span<void* const> operands) {
  variance_of(call, Image<T>(call.operands[0], operands[0]), vector<T>(operands, 1), vector<T>(operands, 2));
}

template <typename T>
void batch_norm_normalize(const KernelCall& call, std::span<void* const> operands) {
  normalize(call, Image<T>(call.operands[0], operands[0]), vector<T>(operands, 1), vector<T>(operands, 2),
            vector<T>(operands, 3), vector<T>(operands, 4), Image<T>(call.operands[5], operands[5]));
}

template <typename T>
void batch_norm_grad(const KernelCall& call, std::span<void* const> operands) {
  const NormGradient<T> g(call, operands);
  T *dscale = vector<T>(operands, 7), *dbias = vector<T>(operands, 8);
  for (int64_t c = 0; c < g.x.c; ++c) {
    T product, plain;
    g.sums(c, product, plain);
    if (operands[6]) g.data(c, product, plain, Image<T>(call.operands[6], operands[6]));
    if (dscale) dscale[c] = product;
    if (dbias) dbias[c] = plain;
  }
}

template <typename T>
void batch_norm_grad_sums(const KernelCall& call, std::span<void* const> operands) {
  const NormGradient<T> g(call, operands);
  T *dscale = vector<T>(operands, 6), *dbias = vector<T>(operands, 7);
  for (int64_t c = 0; c < g.x.c; ++c) {
    T product, plain;
    g.sums(c, product, plain);
    if (dscale) dscale[c] = product;
    if (dbias) dbias[c] = plain;
  }
}

template <typename T>
void batch_norm_grad_data(const KernelCall& call, std::span<void* const> operands) {
  const NormGradient<T> g(call, operands);
  const Image<T> dx(call.operands[8], operands[8]);
  for (int64_t c = 0; c < g.x.c; ++c) g.data(c, vector<T>(operands, 6)[c], vector<T>(operands, 7)[c], dx);
}

template <typename T>
void batch_norm_inference_grad(const KernelCall& call, std::span<void* const> operands) {
  const NormGradient<T> g(call, operands);
  T *dscale = vector<T>(operands, 7), *dbias = vector<T>(operands, 8);
  for (int64_t c = 0; c < g.x.c; ++c) {
    T product, plain;
    g.sums(c, product, plain);
    if (dscale) dscale[c] = product;
    if (dbias) dbias[c] = plain;
    if (!operands[6]) continue;
    const Image<T> dx(call.operands[6], operands[6]);
    for_each_pixel(dx, [&](int64_t n, const Spatial& p) {
      dx.at(n, c, p) = g.gradient(n, c, p) * (g.scale[c] * g.inverse(c));
    });
  }
}

/// Operands: mean, var (of groups: their means count), then the state, in and out; the outputs' places are
/// absent, for they are the state itself.
template <typename T>
void batch_norm_running(const KernelCall& call, std::span<void* const> operands) {
  const T momentum = real<T>(call, "momentum");
  for (size_t i : {size_t{0}, size_t{1}}) {
    const T* batch = vector<T>(operands, i);
    T* running = vector<T>(operands, 2 + i);
    const int64_t channels = call.operands[2 + i].shape[0];
    const int64_t groups = volume(call.operands[i].shape) / channels;
    for (int64_t c = 0; c < channels; ++c) {
      T sum = 0;
      for (int64_t g = 0; g < groups; ++g) sum += batch[g * channels + c];
      running[c] = running[c] * momentum + sum / static_cast<T>(groups) * (T(1) - momentum);
    }
  }
}

namespace {

/// Channels of x around each output channel, with the exponents and factors of local response normalisation.
template <typename T>
struct Response {
  Image<T> x;
  int64_t before, after, begin;
  T factor, beta, bias;

  Response(const KernelCall& call, void* buffer)
      : x(call.operands[0], buffer),
        before((call.attributes.integer("size") - 1) / 2),
        after(call.attributes.integer("size") / 2),
        begin(call.attributes.integer("begin")),
        factor(real<T>(call, "alpha") / static_cast<T>(call.attributes.integer("size"))),
        beta(real<T>(call, "beta")),
        bias(real<T>(call, "bias")) {}

  /// bias + alpha/size * sum of squares around channel `c` of x.
  T scale(int64_t n, int64_t c, const Spatial& p) const {
    T sum = 0;
    for (int64_t k = std::max<int64_t>(0, c - before); k <= std::min(x.c - 1, c + after); ++k)
      sum += x.at(n, k, p) * x.at(n, k, p);
    return bias + factor * sum;
  }
};

}  // namespace

template <typename T>
void lrn(const KernelCall& call, std::span<void* const> operands) {
  const Response<T> r(call, operands[0]);
  const Image<T> y(call.operands[1], operands[1]);
  for (int64_t c = 0; c < y.c; ++c) {
    for_each_pixel(y, [&](int64_t n, const Spatial& p) {
      y.at(n, c, p) = r.x.at(n, r.begin + c, p) * std::pow(r.scale(n, r.begin + c, p), -r.beta);
    });
  }
}

/// dx[c] = dy[c] s[c]^-beta - 2 alpha beta / size * x[c] * sum over channels j that look at c of dy[j] x[j]
/// s[j]^(-beta-1).
template <typename T>
void lrn_grad(const KernelCall& call, std::span<void* const> operands) {
  const Response<T> r(call, operands[0]);
  const Image<T> dy(call.operands[1], operands[1]), dx(call.operands[2], operands[2]);
  const int64_t dy_begin = call.attributes.integer("dy_begin");
  for (int64_t c = 0; c < dx.c; ++c) {
    for_each_pixel(dx, [&](int64_t n, const Spatial& p) {
      T sum = 0;
      for (int64_t j = c - r.after; j <= c + r.before; ++j) {
        const int64_t at_dy = dy_begin + j, at_x = r.begin + j;
        if (at_dy < 0 || at_dy >= dy.c) continue;
        sum += dy.at(n, at_dy, p) * r.x.at(n, at_x, p) * std::pow(r.scale(n, at_x, p), -r.beta - T(1));
      }
      dx.at(n, c, p) = dy.at(n, dy_begin + c, p) * std::pow(r.scale(n, r.begin + c, p), -r.beta) -
                       T(2) * r.factor * r.beta * r.x.at(n, r.begin + c, p) * sum;
    });
  }
}

}  // namespace reference

void register_reference_normalization(Registry& registry) {
  using namespace reference;
  registry.add_reference("BatchNorm", with_groups<make_loop_kernel<batch_norm<float>>>,
                         with_groups<make_loop_kernel<batch_norm<double>>>);
  registry.add_reference("BatchNormSum", make_loop_kernel<batch_norm_sum<float>>,
                         make_loop_kernel<batch_norm_sum<double>>);
  registry.add_reference("BatchNormSquares", make_loop_kernel<batch_norm_squares<float>>,
                         make_loop_kernel<batch_norm_squares<double>>);
  registry.add_reference("BatchNormNormalize", make_loop_kernel<batch_norm_normalize<float>>,
                         make_loop_kernel<batch_norm_normalize<double>>);
  registry.add_reference("BatchNormGrad", with_groups<make_loop_kernel<batch_norm_grad<float>>>,
                         with_groups<make_loop_kernel<batch_norm_grad<double>>>);
  registry.add_reference("BatchNormGradSums", make_loop_kernel<batch_norm_grad_sums<float>>,
                         make_loop_kernel<batch_norm_grad_sums<double>>);
  registry.add_reference("BatchNormGradData", make_loop_kernel<batch_norm_grad_data<float>>,
                         make_loop_kernel<batch_norm_grad_data<double>>);
  registry.add_reference("BatchNormInferenceGrad", make_loop_kernel<batch_norm_inference_grad<float>>,
                         make_loop_kernel<batch_norm_inference_grad<double>>);
  registry.add_reference("BatchNormRunning", make_loop_kernel<batch_norm_running<float>>,
                         make_loop_kernel<batch_norm_running<double>>);
  registry.add_reference("LRN", make_loop_kernel<lrn<float>>, make_loop_kernel<lrn<double>>);
  registry.add_reference("LRNGrad", make_loop_kernel<lrn_grad<float>>, make_loop_kernel<lrn_grad<double>>);
}

}  // namespace ff::cpu
