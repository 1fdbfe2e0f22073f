// Pooling in f32 where channels are innermost: every inner loop runs over the channels of one pixel, side by
// side in memory, so the compiler turns it into vectors. Other layouts take the plain loops.
#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "executor/kernels/cpu/image.h"
#include "executor/kernels/cpu/registry.h"
#include "executor/kernels/cpu/simd.h"

namespace ff::cpu {
namespace {

// Inner loops, over the channels of a pixel.

/// A tap of a window that is inside the image: its number and the first element of its row.
struct Tap {
  int64_t row;
  int32_t number;
};

/// The later of two values if it is larger or NaN.
#define FF_TAKE_LATER(value, number)                     \
  {                                                      \
    const float later = (value);                         \
    const bool take = (later > best) | (later != later); \
    best = take ? later : best;                          \
    where = take ? (number) : where;                     \
  }

/// The largest of the taps' values in every channel, the first of equal ones, and its number; a NaN wins.
/// Three taps a pass, so that the best so far is read and written once for them.
FF_TARGET_CLONES void max_of_taps(const float* __restrict x, const Tap* taps, size_t count, int64_t n,
                                  float* __restrict y, int32_t* __restrict index) {
  size_t t = 1;
  const float* first = x + taps[0].row;
  const int32_t number = taps[0].number;
  if (count >= 3) {
    const float *second = x + taps[1].row, *third = x + taps[2].row;
    const int32_t number2 = taps[1].number, number3 = taps[2].number;
    for (int64_t c = 0; c < n; ++c) {
      float best = first[c];
      int32_t where = number;
      FF_TAKE_LATER(second[c], number2)
      FF_TAKE_LATER(third[c], number3)
      y[c] = best;
      index[c] = where;
    }
    t = 3;
  } else {
    for (int64_t c = 0; c < n; ++c) y[c] = first[c], index[c] = number;
  }
  for (; t + 3 <= count; t += 3) {
    const float *a = x + taps[t].row, *b = x + taps[t + 1].row, *d = x + taps[t + 2].row;
    const int32_t number1 = taps[t].number, number2 = taps[t + 1].number, number3 = taps[t + 2].number;
    for (int64_t c = 0; c < n; ++c) {
      float best = y[c];
      int32_t where = index[c];
      FF_TAKE_LATER(a[c], number1)
      FF_TAKE_LATER(b[c], number2)
      FF_TAKE_LATER(d[c], number3)
      y[c] = best;
      index[c] = where;
    }
  }
  for (; t < count; ++t) {
    const float* a = x + taps[t].row;
    const int32_t number1 = taps[t].number;
    for (int64_t c = 0; c < n; ++c) {
      float best = y[c];
      int32_t where = index[c];
      FF_TAKE_LATER(a[c], number1)
      y[c] = best;
      index[c] = where;
    }
  }
}
#undef FF_TAKE_LATER

/// Adds dy to the tap whose number each channel's index is.
FF_TARGET_CLONES void add_to_taps(const float* __restrict dy, const int32_t* __restrict index,
                                  const Tap* taps, size_t count, int64_t n, float* __restrict dx) {
  for (size_t t = 0; t < count; ++t) {
    float* __restrict to = dx + taps[t].row;
    const int32_t number = taps[t].number;
    for (int64_t c = 0; c < n; ++c) {
      const float whole = dy[c];  // read whether it counts or not: a branch would keep the loop from vectors
      to[c] += index[c] == number ? whole : 0.0f;
    }
  }
}

FF_TARGET_CLONES void add_scaled(const float* __restrict x, float* __restrict y, int64_t n, float factor) {
  for (int64_t c = 0; c < n; ++c) y[c] += factor * x[c];
}

FF_TARGET_CLONES void scale(const float* __restrict x, float* __restrict y, int64_t n, float factor) {
  for (int64_t c = 0; c < n; ++c) y[c] = factor * x[c];
}

/// Rows of channels of one sample, and the windows over them.
struct Rows {
  Window window;
  Spatial in, out;
  int64_t channels;

  Rows(const KernelCall& call, const Operand& image, const Operand& pooled)
      : window(call.attributes, call.attributes.ints("kernel_shape")),
        in(Image<float>(image, nullptr).size),
        out(Image<float>(pooled, nullptr).size),
        channels(image.shape[1]) {}

  static int64_t pixel(const Spatial& size, const Spatial& p) {
    return (p[0] * size[1] + p[1]) * size[2] + p[2];
  }
  int64_t in_row(const Spatial& p) const { return pixel(in, p) * channels; }
  int64_t out_row(const Spatial& p) const { return pixel(out, p) * channels; }
  int64_t in_elements() const { return in[0] * in[1] * in[2] * channels; }
  int64_t out_elements() const { return out[0] * out[1] * out[2] * channels; }

  /// Calls body(tap number, first element of the input's row) for the taps of a window that are inside.
  template <typename Body>
  void for_each_tap(const Spatial& o, Body&& body) const {
    Spatial first, last, at0;
    for (size_t a = 0; a < 3; ++a) {
      at0[a] = o[a] * window.strides[a] - window.begin[a];
      const int64_t d = window.dilations[a];
      first[a] = at0[a] >= 0 ? 0 : (-at0[a] + d - 1) / d;
      last[a] = std::min(window.kernel[a], at0[a] >= in[a] ? 0 : (in[a] - 1 - at0[a]) / d + 1);
    }
    for (int64_t z = first[0]; z < last[0]; ++z) {
      for (int64_t y = first[1]; y < last[1]; ++y) {
        for (int64_t x = first[2]; x < last[2]; ++x) {
          const auto tap = static_cast<int32_t>((z * window.kernel[1] + y) * window.kernel[2] + x);
          body(tap, in_row(window.input(o, {z, y, x})));
        }
      }
    }
  }
};

class MaxPool final : public Kernel {
 public:
  explicit MaxPool(const KernelCall& call)
      : rows_(call, call.operands[0], call.operands[1]),
        samples_(call.operands[0].shape[0]),
        spare_(static_cast<size_t>(rows_.channels)) {}

  void run(std::span<void* const> operands, void*, const RunContext&) override {
    const auto* x = static_cast<const float*>(operands[0]);
    auto* y = static_cast<float*>(operands[1]);
    auto* index = operands.size() > 2 ? static_cast<int32_t*>(operands[2]) : nullptr;
    const int64_t c = rows_.channels;
    for (int64_t n = 0; n < samples_; ++n, x += rows_.in_elements(), y += rows_.out_elements()) {
      for_each_point(rows_.out, [&](const Spatial& o) {
        const int64_t at = rows_.out_row(o);
        int32_t* where = index ? index + n * rows_.out_elements() + at : spare_.data();
        taps_.clear();
        rows_.for_each_tap(o, [&](int32_t number, int64_t row) { taps_.push_back({row, number}); });
        if (!taps_.empty()) return max_of_taps(x, taps_.data(), taps_.size(), c, y + at, where);
        std::fill_n(y + at, c, -std::numeric_limits<float>::infinity());  // padding alone
        std::fill_n(where, c, -1);
      });
    }
  }

 private:
  Rows rows_;
  int64_t samples_;
  std::vector<Tap> taps_;
  std::vector<int32_t> spare_;  // where indices go that nobody wants
};

/// Zeroes the input's gradient just ahead of the windows that add to it, while it is in the cache.
class ZeroAhead {
 public:
  ZeroAhead(const Rows& rows, float* dx)
      : rows_(rows), dx_(dx), row_(rows.in[2] * rows.channels), lines_(rows.in[0] * rows.in[1]) {}

  /// Before the windows of output line (z, y).
  void reach(int64_t z, int64_t y) {
    const auto& w = rows_.window;
    const int64_t last_z =
        std::min(rows_.in[0], z * w.strides[0] - w.begin[0] + (w.kernel[0] - 1) * w.dilations[0] + 1);
    const int64_t last_y =
        std::min(rows_.in[1], y * w.strides[1] - w.begin[1] + (w.kernel[1] - 1) * w.dilations[1] + 1);
    if (rows_.in[0] > 1) return until(lines_);
    if (last_z > 0 && last_y > 0) until(last_y);
  }
  void until(int64_t line) {
    if (line > done_)
      std::memset(dx_ + done_ * row_, 0, static_cast<size_t>((line - done_) * row_) * sizeof(float));
    done_ = std::max(done_, line);
  }
  void finish() { until(lines_); }

 private:
  const Rows& rows_;
  float* dx_;
  int64_t row_, lines_, done_ = 0;
};

/// Calls body(n, o) for all windows of dy, with dx zeroed as far as the window reaches.
template <typename Body>
void for_each_window(const Rows& rows, int64_t samples, float* dx, Body&& body) {
  for (int64_t n = 0; n < samples; ++n) {
    ZeroAhead zero(rows, dx + n * rows.in_elements());
    for (int64_t z = 0; z < rows.out[0]; ++z) {
      for (int64_t y = 0; y < rows.out[1]; ++y) {
        zero.reach(z, y);
        for (int64_t x = 0; x < rows.out[2]; ++x) body(n, Spatial{z, y, x});
      }
    }
    zero.finish();
  }
}

void max_pool_grad(const KernelCall& call, std::span<void* const> operands) {
  const Rows rows(call, call.operands[2], call.operands[0]);
  const auto* dy = static_cast<const float*>(operands[0]);
  const auto* index = static_cast<const int32_t*>(operands[1]);
  auto* dx = static_cast<float*>(operands[2]);
  std::vector<Tap> taps;
  for_each_window(rows, call.operands[0].shape[0], dx, [&](int64_t n, const Spatial& o) {
    const int64_t at = n * rows.out_elements() + rows.out_row(o);
    float* image = dx + n * rows.in_elements();
    taps.clear();
    rows.for_each_tap(o, [&](int32_t number, int64_t row) { taps.push_back({row, number}); });
    add_to_taps(dy + at, index + at, taps.data(), taps.size(), rows.channels, image);
  });
}

/// One over the elements of each window that the average counts.
std::vector<float> shares(const KernelCall& call, const Rows& rows) {
  const Ints& begin = call.attributes.ints("count_begin");
  const Ints& end = call.attributes.ints("count_end");
  const size_t missing = 3 - begin.size();
  std::vector<float> out;
  for_each_point(rows.out, [&](const Spatial& o) {
    int64_t count = 1;
    for (size_t a = missing; a < 3; ++a) {
      int64_t inside = 0;
      for (int64_t k = 0; k < rows.window.kernel[a]; ++k) {
        const int64_t at =
            o[a] * rows.window.strides[a] - rows.window.begin[a] + k * rows.window.dilations[a];
        inside += at >= begin[a - missing] && at < end[a - missing];
      }
      count *= inside;
    }
    out.push_back(1.0f / static_cast<float>(std::max<int64_t>(1, count)));
  });
  return out;
}

class AveragePool final : public Kernel {
 public:
  explicit AveragePool(const KernelCall& call)
      : rows_(call, call.operands[0], call.operands[1]),
        samples_(call.operands[0].shape[0]),
        shares_(shares(call, rows_)) {}

  void run(std::span<void* const> operands, void*, const RunContext&) override {
    const auto* x = static_cast<const float*>(operands[0]);
    auto* y = static_cast<float*>(operands[1]);
    for (int64_t n = 0; n < samples_; ++n, x += rows_.in_elements(), y += rows_.out_elements()) {
      for_each_point(rows_.out, [&](const Spatial& o) {
        const int64_t at = rows_.out_row(o);
        const float share = shares_[static_cast<size_t>(at / rows_.channels)];
        bool first = true;
        rows_.for_each_tap(o, [&](int32_t, int64_t row) {
          (first ? scale : add_scaled)(x + row, y + at, rows_.channels, share);
          first = false;
        });
        if (first) std::fill_n(y + at, rows_.channels, 0.0f);
      });
    }
  }

 private:
  Rows rows_;
  int64_t samples_;
  std::vector<float> shares_;
};

void average_pool_grad(const KernelCall& call, std::span<void* const> operands) {
  const Rows rows(call, call.operands[1], call.operands[0]);
  const std::vector<float> share = shares(call, rows);
  const auto* dy = static_cast<const float*>(operands[0]);
  auto* dx = static_cast<float*>(operands[1]);
  for_each_window(rows, call.operands[0].shape[0], dx, [&](int64_t n, const Spatial& o) {
    const int64_t at = rows.out_row(o);
    rows.for_each_tap(o, [&](int32_t, int64_t row) {
      add_scaled(dy + n * rows.out_elements() + at, dx + n * rows.in_elements() + row, rows.channels,
                 share[static_cast<size_t>(at / rows.channels)]);
    });
  });
}

void global_average_pool(const KernelCall& call, std::span<void* const> operands) {
  const Image<float> x(call.operands[0], operands[0]);
  auto* y = static_cast<float*>(operands[1]);
  const auto share = static_cast<float>(call.attributes.real("scale"));
  for (int64_t n = 0; n < x.n; ++n) {
    std::fill_n(y + n * x.c, x.c, 0.0f);
    for (int64_t p = 0; p < x.pixels(); ++p)
      add_scaled(x.data + (n * x.pixels() + p) * x.c, y + n * x.c, x.c, share);
  }
}

void global_average_pool_grad(const KernelCall& call, std::span<void* const> operands) {
  const auto* dy = static_cast<const float*>(operands[0]);
  const Image<float> dx(call.operands[1], operands[1]);
  const auto share = static_cast<float>(call.attributes.real("scale"));
  for (int64_t n = 0; n < dx.n; ++n) {
    for (int64_t p = 0; p < dx.pixels(); ++p)
      scale(dy + n * dx.c, dx.data + (n * dx.pixels() + p) * dx.c, dx.c, share);
  }
}

bool rows_of_channels(const KernelCall& call) {
  return std::all_of(call.operands.begin(), call.operands.end(),
                     [](const Operand& o) { return is_absent(o) || has_channel_rows(o); });
}

template <typename Fast, LoopFunction kLoops>
std::unique_ptr<Kernel> make_class(const KernelCall& call) {
  if (!rows_of_channels(call)) return make_loop_kernel<kLoops>(call);
  return std::make_unique<Fast>(call);
}

template <LoopFunction kFast, LoopFunction kLoops>
std::unique_ptr<Kernel> make_function(const KernelCall& call) {
  return rows_of_channels(call) ? make_loop_kernel<kFast>(call) : make_loop_kernel<kLoops>(call);
}

}  // namespace

void register_fast_pool(Registry& registry) {
  using namespace reference;
  registry.add_fast("MaxPool", make_class<MaxPool, max_pool<float>>);
  registry.add_fast("MaxPoolGrad", make_function<cpu::max_pool_grad, reference::max_pool_grad<float>>);
  registry.add_fast("AveragePool", make_class<AveragePool, average_pool<float>>);
  registry.add_fast("AveragePoolGrad",
                    make_function<cpu::average_pool_grad, reference::average_pool_grad<float>>);
  registry.add_fast("GlobalAveragePool",
                    make_function<cpu::global_average_pool, reference::global_average_pool<float>>);
  registry.add_fast("GlobalAveragePoolGrad",
                    make_function<cpu::global_average_pool_grad, reference::global_average_pool_grad<float>>);
}

}  // namespace ff::cpu
