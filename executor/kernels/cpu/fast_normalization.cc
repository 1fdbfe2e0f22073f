// Batch normalisation in f32 where channels are innermost: a matrix of pixels by channels, of which whole
// columns are summed.
//
// Pixels are taken in chunks that stay in the second-level cache. Sums run in f32 inside a chunk and in f64
// across chunks. The fused forward kernel reads x twice, not three times: each chunk gives its own mean and
// squared deviations (two passes in the cache), which are joined as in Chan, Golub, LeVeque, "Updating
// formulae and a pairwise algorithm for computing sample variances" (1979): as good as two passes over all.
#include <algorithm>
#include <cmath>
#include <vector>

#include "executor/kernels/cpu/grouped_norm.h"
#include "executor/kernels/cpu/image.h"
#include "executor/kernels/cpu/registry.h"
#include "executor/kernels/cpu/simd.h"

namespace ff::cpu {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

// Inner loops over rows of `n` channels. `r` rows.

FF_TARGET_CLONES void add_rows(const float* __restrict x, int64_t r, int64_t n, float* __restrict sum) {
  int64_t i = 0;
  for (; i + 4 <= r; i += 4, x += 4 * n) {
    for (int64_t c = 0; c < n; ++c) sum[c] += (x[c] + x[n + c]) + (x[2 * n + c] + x[3 * n + c]);
  }
  for (; i < r; ++i, x += n) {
    for (int64_t c = 0; c < n; ++c) sum[c] += x[c];
  }
}

FF_TARGET_CLONES void add_squares(const float* __restrict x, int64_t r, int64_t n,
                                  const float* __restrict mean, float* __restrict sum) {
  int64_t i = 0;
  for (; i + 2 <= r; i += 2, x += 2 * n) {
    for (int64_t c = 0; c < n; ++c) {
      const float a = x[c] - mean[c], b = x[n + c] - mean[c];
      sum[c] += a * a + b * b;
    }
  }
  for (; i < r; ++i, x += n) {
    for (int64_t c = 0; c < n; ++c) sum[c] += (x[c] - mean[c]) * (x[c] - mean[c]);
  }
}

FF_TARGET_CLONES void scale_row(const float* __restrict x, float factor, int64_t n, float* __restrict y) {
  for (int64_t c = 0; c < n; ++c) y[c] = factor * x[c];
}

FF_TARGET_CLONES void normalize_rows(const float* __restrict x, int64_t r, int64_t n,
                                     const float* __restrict mean, const float* __restrict factor,
                                     const float* __restrict bias, float floor, float* __restrict y) {
  for (int64_t i = 0; i < r; ++i, x += n, y += n) {
    for (int64_t c = 0; c < n; ++c) {
      const float v = (x[c] - mean[c]) * factor[c] + bias[c];
      y[c] = v > floor ? v : floor;
    }
  }
}

FF_TARGET_CLONES void add_gradients(const float* __restrict x, const float* __restrict dy, int64_t r,
                                    int64_t n, const float* __restrict mean, float* __restrict product,
                                    float* __restrict plain) {
  int64_t i = 0;
  for (; i + 2 <= r; i += 2, x += 2 * n, dy += 2 * n) {
    for (int64_t c = 0; c < n; ++c) {
      product[c] += dy[c] * (x[c] - mean[c]) + dy[n + c] * (x[n + c] - mean[c]);
      plain[c] += dy[c] + dy[n + c];
    }
  }
  for (; i < r; ++i, x += n, dy += n) {
    for (int64_t c = 0; c < n; ++c) {
      product[c] += dy[c] * (x[c] - mean[c]);
      plain[c] += dy[c];
    }
  }
}

FF_TARGET_CLONES void add_masked_gradients(const float* __restrict x, const float* __restrict dy, int64_t r,
                                           int64_t n, const float* __restrict mean,
                                           const float* __restrict factor, const float* __restrict bias,
                                           float* __restrict product, float* __restrict plain) {
  for (int64_t i = 0; i < r; ++i, x += n, dy += n) {
    for (int64_t c = 0; c < n; ++c) {
      const float d = x[c] - mean[c], whole = dy[c];
      const float g = d * factor[c] + bias[c] > 0.0f ? whole : 0.0f;
      product[c] += g * d;
      plain[c] += g;
    }
  }
}

/// dx = factor * dy + slope * (x - mean) + shift.
FF_TARGET_CLONES void data_rows(const float* __restrict x, const float* __restrict dy, int64_t r, int64_t n,
                                const float* __restrict mean, const float* __restrict factor,
                                const float* __restrict slope, const float* __restrict shift,
                                float* __restrict dx) {
  for (int64_t i = 0; i < r; ++i, x += n, dy += n, dx += n) {
    for (int64_t c = 0; c < n; ++c) dx[c] = factor[c] * dy[c] + (slope[c] * (x[c] - mean[c]) + shift[c]);
  }
}

FF_TARGET_CLONES void masked_data_rows(const float* __restrict x, const float* __restrict dy, int64_t r,
                                       int64_t n, const float* __restrict mean,
                                       const float* __restrict factor, const float* __restrict bias,
                                       const float* __restrict slope, const float* __restrict shift,
                                       float* __restrict dx) {
  for (int64_t i = 0; i < r; ++i, x += n, dy += n, dx += n) {
    for (int64_t c = 0; c < n; ++c) {
      const float d = x[c] - mean[c], whole = dy[c];
      const float g = d * factor[c] + bias[c] > 0.0f ? whole : 0.0f;
      dx[c] = factor[c] * g + (slope[c] * d + shift[c]);
    }
  }
}

// Columns of a matrix.

/// Rows that are summed in f32. Gradients nearly cancel, so that their sums need more digits.
constexpr int64_t kSumRows = 4096, kGradientRows = 64;

/// Calls body(first row, rows) for all chunks: of 128 KiB, of at least 16 rows and at most `most`, since
/// longer sums in f32 are less exact.
template <typename Body>
void for_each_chunk(int64_t rows, int64_t channels, int64_t most, Body&& body) {
  const int64_t step = std::clamp<int64_t>(32768 / std::max<int64_t>(1, channels), 16, most);
  for (int64_t at = 0; at < rows; at += step) body(at, std::min(step, rows - at));
}

struct Matrix {
  const float* data;
  int64_t rows, channels;

  Matrix(const Operand& operand, const void* buffer)
      : data(static_cast<const float*>(buffer)),
        rows(operand.shape[1] ? volume(operand.shape) / operand.shape[1] : 0),
        channels(operand.shape[1]) {}
};

/// sum[c] += partial[c], and partial is zero again.
FF_TARGET_CLONES void drain_row(float* __restrict partial, double* __restrict sum, int64_t n) {
  for (int64_t c = 0; c < n; ++c) sum[c] += static_cast<double>(partial[c]);
  for (int64_t c = 0; c < n; ++c) partial[c] = 0.0f;
}
void drain(Floats& partial, Doubles& sum) {
  drain_row(partial.data(), sum.data(), static_cast<int64_t>(sum.size()));
}

/// Joins a chunk of `count` rows, given by its sums and its squared deviations from its rounded mean, to
/// `seen` rows before.
FF_TARGET_CLONES void join_moments(const float* __restrict sum, const float* __restrict rounded,
                                   const float* __restrict square, double seen, double count, int64_t n,
                                   double* __restrict mean, double* __restrict squares) {
  const double inverse = 1.0 / count, weight = count / (seen + count), product = seen * weight;
  for (int64_t c = 0; c < n; ++c) {
    const double exact = static_cast<double>(sum[c]) * inverse;
    const double rounding = exact - static_cast<double>(rounded[c]);
    const double delta = exact - mean[c];
    squares[c] += static_cast<double>(square[c]) - count * rounding * rounding + delta * delta * product;
    mean[c] += delta * weight;
  }
}

const float* floats(std::span<void* const> operands, size_t i) {
  return static_cast<const float*>(operands[i]);
}
float* results(std::span<void* const> operands, size_t i) {
  return i < operands.size() ? static_cast<float*>(operands[i]) : nullptr;
}

void store(const Doubles& from, double factor, float* to) {
  if (to)
    std::transform(from.begin(), from.end(), to, [&](double v) { return static_cast<float>(v * factor); });
}

/// Mean and population variance of every column, reading x once from memory.
void moments(const Matrix& x, Doubles& mean, Doubles& squares) {
  const auto n = static_cast<size_t>(x.channels);
  Floats sum(n, 0.0f), chunk_mean(n), square(n, 0.0f);
  double seen = 0;
  for_each_chunk(x.rows, x.channels, kSumRows, [&](int64_t at, int64_t rows) {
    const float* chunk = x.data + at * x.channels;
    const auto count = static_cast<double>(rows);
    add_rows(chunk, rows, x.channels, sum.data());
    scale_row(sum.data(), 1.0f / static_cast<float>(rows), x.channels, chunk_mean.data());
    add_squares(chunk, rows, x.channels, chunk_mean.data(), square.data());
    join_moments(sum.data(), chunk_mean.data(), square.data(), seen, count, x.channels, mean.data(),
                 squares.data());
    std::fill(sum.begin(), sum.end(), 0.0f);
    std::fill(square.begin(), square.end(), 0.0f);
    seen += count;
  });
}

/// Per channel: scale / sqrt(var + epsilon).
Floats factors(const KernelCall& call, const float* scale, const float* var, size_t n) {
  const double epsilon = call.attributes.real("epsilon");
  Floats out(n);
  for (size_t c = 0; c < n; ++c) {
    out[c] =
        static_cast<float>(static_cast<double>(scale[c]) / std::sqrt(static_cast<double>(var[c]) + epsilon));
  }
  return out;
}

bool relu(const KernelCall& call) { return call.attributes.integer("relu", 0) != 0; }

void normalize(const KernelCall& call, const Matrix& x, const float* scale, const float* bias,
               const float* mean, const float* var, float* y) {
  const Floats factor = factors(call, scale, var, static_cast<size_t>(x.channels));
  const float floor = relu(call) ? 0.0f : -std::numeric_limits<float>::infinity();
  normalize_rows(x.data, x.rows, x.channels, mean, factor.data(), bias, floor, y);
}

void batch_norm(const KernelCall& call, std::span<void* const> operands) {
  const Matrix x(call.operands[0], operands[0]);
  const auto n = static_cast<size_t>(x.channels);
  Doubles mean(n, 0.0), squares(n, 0.0);
  moments(x, mean, squares);
  Floats own_mean(n), own_var(n);
  float* mean_out = results(operands, 4) ? results(operands, 4) : own_mean.data();
  float* var_out = results(operands, 5) ? results(operands, 5) : own_var.data();
  store(mean, 1.0, mean_out);
  store(squares, call.attributes.real("scale"), var_out);
  normalize(call, x, floats(operands, 1), floats(operands, 2), mean_out, var_out, results(operands, 3));
}

void batch_norm_sum(const KernelCall& call, std::span<void* const> operands) {
  const Matrix x(call.operands[0], operands[0]);
  Floats partial(static_cast<size_t>(x.channels), 0.0f);
  Doubles sum(partial.size(), 0.0);
  for_each_chunk(x.rows, x.channels, kSumRows, [&](int64_t at, int64_t rows) {
    add_rows(x.data + at * x.channels, rows, x.channels, partial.data());
    drain(partial, sum);
  });
  store(sum, call.attributes.real("scale"), results(operands, 1));
}

void batch_norm_squares(const KernelCall& call, std::span<void* const> operands) {
  const Matrix x(call.operands[0], operands[0]);
  Floats partial(static_cast<size_t>(x.channels), 0.0f);
  Doubles sum(partial.size(), 0.0);
  for_each_chunk(x.rows, x.channels, kSumRows, [&](int64_t at, int64_t rows) {
    add_squares(x.data + at * x.channels, rows, x.channels, floats(operands, 1), partial.data());
    drain(partial, sum);
  });
  store(sum, call.attributes.real("scale"), results(operands, 2));
}

void batch_norm_normalize(const KernelCall& call, std::span<void* const> operands) {
  normalize(call, Matrix(call.operands[0], operands[0]), floats(operands, 1), floats(operands, 2),
            floats(operands, 3), floats(operands, 4), results(operands, 5));
}

/// Operands of the gradients: x, dy, scale, bias (absent without relu), mean, var. Scale is absent to none of
/// them.
struct NormGradient {
  const KernelCall& call;
  Matrix x, dy;
  const float *bias, *mean, *var;
  bool masked;
  Floats factor;

  NormGradient(const KernelCall& c, std::span<void* const> o)
      : call(c),
        x(c.operands[0], o[0]),
        dy(c.operands[1], o[1]),
        bias(floats(o, 3)),
        mean(floats(o, 4)),
        var(floats(o, 5)),
        masked(relu(c)),
        factor(factors(c, floats(o, 2), floats(o, 5), static_cast<size_t>(c.operands[0].shape[1]))) {}

  size_t channels() const { return factor.size(); }
  double inverse(size_t c) const {
    return 1.0 / std::sqrt(static_cast<double>(var[c]) + call.attributes.real("epsilon"));
  }

  /// Sums of dy * normalised x, and of dy.
  void sums(Doubles& product, Doubles& plain) const {
    Floats p(channels(), 0.0f), q(channels(), 0.0f);
    for_each_chunk(x.rows, x.channels, kGradientRows, [&](int64_t at, int64_t rows) {
      const float *xs = x.data + at * x.channels, *dys = dy.data + at * x.channels;
      if (masked) {
        add_masked_gradients(xs, dys, rows, x.channels, mean, factor.data(), bias, p.data(), q.data());
      } else {
        add_gradients(xs, dys, rows, x.channels, mean, p.data(), q.data());
      }
      drain(p, product);
      drain(q, plain);
    });
    for (size_t c = 0; c < channels(); ++c) product[c] *= inverse(c);
  }

  /// `share` 0: frozen statistics, no feedback through them.
  void data(const Doubles& product, const Doubles& plain, double share, float* dx) const {
    Floats slope(channels()), shift(channels());
    for (size_t c = 0; c < channels(); ++c) {
      const double f = static_cast<double>(factor[c]);
      slope[c] = static_cast<float>(-f * share * product[c] * inverse(c));
      shift[c] = static_cast<float>(-f * share * plain[c]);
    }
    if (masked) {
      masked_data_rows(x.data, dy.data, x.rows, x.channels, mean, factor.data(), bias, slope.data(),
                       shift.data(), dx);
    } else {
      data_rows(x.data, dy.data, x.rows, x.channels, mean, factor.data(), slope.data(), shift.data(), dx);
    }
  }
};

void norm_grad(const KernelCall& call, std::span<void* const> operands, double share) {
  const NormGradient g(call, operands);
  Doubles product(g.channels(), 0.0), plain(g.channels(), 0.0);
  if (share != 0 || results(operands, 7) || results(operands, 8)) g.sums(product, plain);
  store(product, 1.0, results(operands, 7));
  store(plain, 1.0, results(operands, 8));
  if (results(operands, 6)) g.data(product, plain, share, results(operands, 6));
}

void batch_norm_grad(const KernelCall& call, std::span<void* const> operands) {
  norm_grad(call, operands, call.attributes.real("scale"));
}
void batch_norm_inference_grad(const KernelCall& call, std::span<void* const> operands) {
  norm_grad(call, operands, 0.0);
}

void batch_norm_grad_sums(const KernelCall& call, std::span<void* const> operands) {
  const NormGradient g(call, operands);
  Doubles product(g.channels(), 0.0), plain(g.channels(), 0.0);
  g.sums(product, plain);
  store(product, 1.0, results(operands, 6));
  store(plain, 1.0, results(operands, 7));
}

void batch_norm_grad_data(const KernelCall& call, std::span<void* const> operands) {
  const NormGradient g(call, operands);
  const float *product = floats(operands, 6), *plain = floats(operands, 7);
  g.data(Doubles(product, product + g.channels()), Doubles(plain, plain + g.channels()),
         call.attributes.real("scale"), results(operands, 8));
}

/// The kernels know images whose operands all have rows of channels; vectors have rank 1.
template <LoopFunction kFast, LoopFunction kLoops>
std::unique_ptr<Kernel> make_function(const KernelCall& call) {
  const bool rows = std::all_of(call.operands.begin(), call.operands.end(),
                                [](const Operand& o) { return o.shape.size() == 1 || has_channel_rows(o); });
  return rows ? make_loop_kernel<kFast>(call) : make_loop_kernel<kLoops>(call);
}

}  // namespace

void register_fast_normalization(Registry& registry) {
  registry.add_fast("BatchNorm", with_groups<make_function<cpu::batch_norm, reference::batch_norm<float>>>);
  registry.add_fast("BatchNormSum", make_function<cpu::batch_norm_sum, reference::batch_norm_sum<float>>);
  registry.add_fast("BatchNormSquares",
                    make_function<cpu::batch_norm_squares, reference::batch_norm_squares<float>>);
  registry.add_fast("BatchNormNormalize",
                    make_function<cpu::batch_norm_normalize, reference::batch_norm_normalize<float>>);
  registry.add_fast("BatchNormGrad",
                    with_groups<make_function<cpu::batch_norm_grad, reference::batch_norm_grad<float>>>);
  registry.add_fast("BatchNormGradSums",
                    make_function<cpu::batch_norm_grad_sums, reference::batch_norm_grad_sums<float>>);
  registry.add_fast("BatchNormGradData",
                    make_function<cpu::batch_norm_grad_data, reference::batch_norm_grad_data<float>>);
  registry.add_fast(
      "BatchNormInferenceGrad",
      make_function<cpu::batch_norm_inference_grad, reference::batch_norm_inference_grad<float>>);
}

}  // namespace ff::cpu
