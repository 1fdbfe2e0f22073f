// LayerNorm and RMSNorm: plain loops for any layout and precision, and rows in f32.
//
// With u = (x - mean) * inv_std (no mean: RMS) and g = dy * scale:
//   dx = inv_std * (g - mean(g) - u * mean(g * u)),   without mean(g) for RMS;   dscale = sum dy * u,   dbias
//   = sum dy
#include <cmath>
#include <vector>

#include "executor/kernels/cpu/registry.h"
#include "executor/kernels/cpu/simd.h"
#include "executor/kernels/cpu/strides.h"

namespace ff::cpu {
namespace {

/// What is normalised of an operand: offsets of its elements, and of the positions. The operands that lack
/// one or the other have one offset there.
struct Split {
  std::vector<int64_t> outer, inner;

  Split(const Operand& operand, size_t axis) {
    const Shape strides = dense_strides(operand.shape, operand.layout);
    outer = offsets(operand.shape, strides, 0, axis);
    inner = offsets(operand.shape, strides, axis, operand.shape.size());
  }

 private:
  static std::vector<int64_t> offsets(const Shape& shape, const Shape& strides, size_t first, size_t last) {
    std::vector<int64_t> out{0};
    for (size_t d = first; d < last; ++d) {
      std::vector<int64_t> finer;
      finer.reserve(out.size() * static_cast<size_t>(shape[d]));
      for (int64_t at : out) {
        for (int64_t i = 0; i < shape[d]; ++i) finer.push_back(at + i * strides[d]);
      }
      out = std::move(finer);
    }
    return out;
  }
};

struct Operands {
  bool rms;
  size_t axis;
  explicit Operands(const KernelCall& call)
      : rms(call.kernel.starts_with("RMS")), axis(static_cast<size_t>(call.attributes.integer("axis"))) {}
};

template <typename T>
T* vector_of(std::span<void* const> operands, size_t i) {
  return i < operands.size() ? static_cast<T*>(operands[i]) : nullptr;
}

template <typename T>
void forward(const KernelCall& call, std::span<void* const> operands) {
  const Operands o(call);
  const size_t first = o.rms ? 2 : 3;  // y
  const Split x(call.operands[0], o.axis), y(call.operands[first], o.axis);
  const T* in = static_cast<const T*>(operands[0]);
  const T* scale = vector_of<T>(operands, 1);
  const T* bias = o.rms ? nullptr : vector_of<T>(operands, 2);
  T* out = static_cast<T*>(operands[first]);
  T* means = o.rms ? nullptr : static_cast<T*>(operands[first + 1]);
  T* inverses = static_cast<T*>(operands.back());
  const auto n = static_cast<T>(x.inner.size());
  for (size_t r = 0; r < x.outer.size(); ++r) {
    T mean = 0, squares = 0;
    if (!o.rms) {
      for (int64_t i : x.inner) mean += in[x.outer[r] + i];
      mean /= n;
    }
    for (int64_t i : x.inner) squares += (in[x.outer[r] + i] - mean) * (in[x.outer[r] + i] - mean);
    const T inverse = 1 / std::sqrt(squares / n + static_cast<T>(call.attributes.real("epsilon")));
    for (size_t i = 0; i < x.inner.size(); ++i) {
      const T u = (in[x.outer[r] + x.inner[i]] - mean) * inverse;
      out[y.outer[r] + y.inner[i]] = u * (scale != nullptr ? scale[i] : 1) + (bias != nullptr ? bias[i] : 0);
    }
    if (means != nullptr) means[r] = mean;
    inverses[r] = inverse;
  }
}

/// Operands: x, dy, scale, mean (not of RMS), inv_std; dx, dscale, dbias (not of RMS). Each output may be
/// absent.
template <typename T>
void backward(const KernelCall& call, std::span<void* const> operands) {
  const Operands o(call);
  const size_t first = o.rms ? 4 : 5;  // dx
  const Split x(call.operands[0], o.axis), dy(call.operands[1], o.axis);
  const T* in = static_cast<const T*>(operands[0]);
  const T* arriving = static_cast<const T*>(operands[1]);
  const T* scale = vector_of<T>(operands, 2);
  const T* means = o.rms ? nullptr : static_cast<const T*>(operands[3]);
  const T* inverses = static_cast<const T*>(operands[o.rms ? 3 : 4]);
  T* dx = vector_of<T>(operands, first);
  T* dscale = vector_of<T>(operands, first + 1);
  T* dbias = vector_of<T>(operands, first + 2);
  const Split to = dx != nullptr ? Split(call.operands[first], o.axis) : x;
  const size_t n = x.inner.size();
  for (T* sums : {dscale, dbias}) {
    if (sums != nullptr) std::fill_n(sums, n, T(0));
  }
  for (size_t r = 0; r < x.outer.size(); ++r) {
    const T mean = means != nullptr ? means[r] : T(0), inverse = inverses[r];
    T plain = 0, product = 0;
    for (size_t i = 0; i < n; ++i) {
      const T g = arriving[dy.outer[r] + dy.inner[i]], u = (in[x.outer[r] + x.inner[i]] - mean) * inverse;
      if (dscale != nullptr) dscale[i] += g * u;
      if (dbias != nullptr) dbias[i] += g;
      plain += g * (scale != nullptr ? scale[i] : 1);
      product += g * (scale != nullptr ? scale[i] : 1) * u;
    }
    if (dx == nullptr) continue;
    plain = o.rms ? 0 : plain / static_cast<T>(n);
    product /= static_cast<T>(n);
    for (size_t i = 0; i < n; ++i) {
      const T g = arriving[dy.outer[r] + dy.inner[i]] * (scale != nullptr ? scale[i] : 1);
      const T u = (in[x.outer[r] + x.inner[i]] - mean) * inverse;
      dx[to.outer[r] + to.inner[i]] = inverse * (g - plain - u * product);
    }
  }
}

// Rows in f32.

FF_TARGET_CLONES float sum_row(const float* x, int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

FF_TARGET_CLONES float squares_row(const float* x, float mean, int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += (x[i] - mean) * (x[i] - mean);
  return sum;
}

FF_TARGET_CLONES void normalize_row(const float* x, float mean, float inverse, const float* scale,
                                    const float* bias, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * inverse * scale[i] + bias[i];
}

/// The two sums of dx.
FF_TARGET_CLONES void gradient_sums(const float* x, const float* dy, float mean, float inverse,
                                    const float* scale, int64_t n, float* plain, float* product) {
  float a = 0, b = 0;
#pragma omp simd reduction(+ : a, b)
  for (int64_t i = 0; i < n; ++i) {
    const float g = dy[i] * scale[i];
    a += g;
    b += g * ((x[i] - mean) * inverse);
  }
  *plain = a, *product = b;
}

FF_TARGET_CLONES void add_parameters(const float* x, const float* dy, float mean, float inverse, int64_t n,
                                     float* dscale, float* dbias) {
  for (int64_t i = 0; i < n; ++i) {
    dscale[i] += dy[i] * ((x[i] - mean) * inverse);
    dbias[i] += dy[i];
  }
}

FF_TARGET_CLONES void gradient_row(const float* x, const float* dy, float mean, float inverse,
                                   const float* scale, float plain, float product, int64_t n, float* dx) {
  for (int64_t i = 0; i < n; ++i)
    dx[i] = inverse * (dy[i] * scale[i] - plain - (x[i] - mean) * inverse * product);
}

/// Rows of `n` that follow each other in every operand that has them.
class Rows final : public Kernel {
 public:
  Rows(const KernelCall& call, bool backward) : o_(call), backward_(backward) {
    const Shape& x = call.operands[0].shape;
    for (size_t d = 0; d < x.size(); ++d) (d < o_.axis ? rows_ : n_) *= x[d];
    epsilon_ = static_cast<float>(call.attributes.real("epsilon"));
    ones_.assign(static_cast<size_t>(n_), 1.0F);
    zeros_.assign(static_cast<size_t>(n_), 0.0F);
  }

  void run(std::span<void* const> operands, void*, const RunContext&) override {
    if (backward_) {
      run_backward(operands);
    } else {
      run_forward(operands);
    }
  }

 private:
  void run_forward(std::span<void* const> operands) {
    const float* x = static_cast<const float*>(operands[0]);
    const float* scale = or_else(vector_of<float>(operands, 1), ones_);
    const float* bias = or_else(o_.rms ? nullptr : vector_of<float>(operands, 2), zeros_);
    float* y = static_cast<float*>(operands[o_.rms ? 2 : 3]);
    float* means = o_.rms ? nullptr : static_cast<float*>(operands[4]);
    float* inverses = static_cast<float*>(operands.back());
    const auto count = static_cast<float>(n_);
    for (int64_t r = 0; r < rows_; ++r, x += n_, y += n_) {
      const float mean = o_.rms ? 0 : sum_row(x, n_) / count;
      inverses[r] = 1 / std::sqrt(squares_row(x, mean, n_) / count + epsilon_);
      if (means != nullptr) means[r] = mean;
      normalize_row(x, mean, inverses[r], scale, bias, n_, y);
    }
  }

  void run_backward(std::span<void* const> operands) {
    const size_t first = o_.rms ? 4 : 5;
    const float* x = static_cast<const float*>(operands[0]);
    const float* dy = static_cast<const float*>(operands[1]);
    const float* scale = or_else(vector_of<float>(operands, 2), ones_);
    const float* means = o_.rms ? nullptr : static_cast<const float*>(operands[3]);
    const float* inverses = static_cast<const float*>(operands[o_.rms ? 3 : 4]);
    float* dx = vector_of<float>(operands, first);
    float* given[2] = {vector_of<float>(operands, first + 1), vector_of<float>(operands, first + 2)};
    for (size_t i = 0; i < 2; ++i) {
      if (given[i] == nullptr) given[i] = unwanted(i);
      std::fill_n(given[i], n_, 0.0F);
    }
    for (int64_t r = 0; r < rows_; ++r, x += n_, dy += n_) {
      const float mean = means != nullptr ? means[r] : 0, inverse = inverses[r];
      add_parameters(x, dy, mean, inverse, n_, given[0], given[1]);
      if (dx == nullptr) continue;
      float plain = 0, product = 0;
      gradient_sums(x, dy, mean, inverse, scale, n_, &plain, &product);
      plain = o_.rms ? 0 : plain / static_cast<float>(n_);
      gradient_row(x, dy, mean, inverse, scale, plain, product / static_cast<float>(n_), n_, dx + r * n_);
    }
  }

  float* unwanted(size_t i) {
    unwanted_[i].resize(static_cast<size_t>(n_));
    return unwanted_[i].data();
  }
  static const float* or_else(const float* given, const std::vector<float>& otherwise) {
    return given != nullptr ? given : otherwise.data();
  }

  Operands o_;
  bool backward_;
  int64_t rows_ = 1, n_ = 1;
  float epsilon_ = 0;
  std::vector<float> ones_, zeros_;
  std::vector<float> unwanted_[2];
};

template <bool kBackward>
std::unique_ptr<Kernel> make_rows(const KernelCall& call) {
  for (const Operand& operand : call.operands) {
    if (!is_absent(operand) && operand.layout != Layout::row_major && operand.shape.size() > 2)
      return make_kernel(call, Flavor::reference);
  }
  return std::make_unique<Rows>(call, kBackward);
}

}  // namespace

void register_layer_norm(Registry& registry) {
  for (const char* type : {"LayerNorm", "RMSNorm"}) {
    registry.add_reference(type, make_loop_kernel<forward<float>>, make_loop_kernel<forward<double>>);
    registry.add_fast(type, make_rows<false>);
    const std::string grad = std::string(type) + "Grad";
    registry.add_reference(grad, make_loop_kernel<backward<float>>, make_loop_kernel<backward<double>>);
    registry.add_fast(grad, make_rows<true>);
  }
}

}  // namespace ff::cpu
