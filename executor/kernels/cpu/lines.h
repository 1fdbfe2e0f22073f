// Elementwise f32 kernels that vectorise: the axes of a call are merged into an inner line along which every
// operand is contiguous or one value, and a few outer axes. A call of one shape and layout is one line.
//
//   FF_TARGET_CLONES void line_add(const Line& l, const Parameters&) {
//     run_line(l, [](float a, float b, float) { return a + b; });
//   }
//   registry.add_fast("Add", make_lines<line_add>);
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "executor/kernels/cpu/elementwise.h"
#include "executor/kernels/cpu/registry.h"
#include "executor/kernels/cpu/simd.h"
#include "executor/kernels/cpu/strides.h"

namespace ff::cpu {

/// Operands a, b, c and the result along a line of `n`; each stride is 1 or 0, or any other.
struct Line {
  const float *a, *b, *c;
  float* y;
  int64_t sa, sb, sc, sy, n;
  bool add;  // to what the result has: it is a sum over outer axes
};

/// One line by function `f`, inlined into a clone for each instruction set.
template <typename F>
[[gnu::always_inline]] inline void run_line(const Line& l, F f) {
  const int64_t n = l.n;
  const float *a = l.a, *b = l.b, *c = l.c;
  float* y = l.y;
  if (l.sy == 0 && n > 1) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) sum += f(a[i * l.sa], b[i * l.sb], c[i * l.sc]);
    *y = (l.add ? *y : 0) + sum;
  } else if (l.add) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i * l.sy] += f(a[i * l.sa], b[i * l.sb], c[i * l.sc]);
  } else if (l.sa == 1 && l.sb == 1 && l.sc == 1 && l.sy == 1) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i], c[i]);
  } else if (l.sa == 1 && l.sb == 0 && l.sy == 1) {
    const float value = *b;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], value, c[i * l.sc]);
  } else if (l.sa == 0 && l.sb == 1 && l.sy == 1) {
    const float value = *a;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = f(value, b[i], c[i * l.sc]);
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i * l.sy] = f(a[i * l.sa], b[i * l.sb], c[i * l.sc]);
  }
}

using LineLoop = void (*)(const Line&, const elementwise::Parameters&);

/// An axis of the call: its extent, and the strides of a, b, c and the result.
struct Axis {
  int64_t extent;
  std::array<int64_t, 4> strides;
};

class LineKernel final : public Kernel {
 public:
  LineKernel(const KernelCall& call, LineLoop loop)
      : loop_(loop), p_(elementwise::parameters_of(call.attributes)), inputs_(call.operands.size() - 1) {
    Shape whole;
    for (const Operand& o : call.operands) {
      whole.insert(whole.begin(), std::max(o.shape.size(), whole.size()) - whole.size(), 1);
      for (size_t i = 0; i < o.shape.size(); ++i) {
        int64_t& extent = whole[whole.size() - o.shape.size() + i];
        extent = std::max(extent, o.shape[i]);
      }
    }
    std::array<std::array<int64_t, kMaxRank>, 4> strides{};
    for (size_t i = 0; i < 4; ++i) strides[i] = strides_along(call.operands[place(i)], whole);
    for (size_t d = 0; d < whole.size(); ++d) {
      if (whole[d] > 1)
        axes_.push_back({whole[d], {strides[0][d], strides[1][d], strides[2][d], strides[3][d]}});
    }
    results_ = volume(call.operands.back().shape);
    sums_ = results_ != volume(whole);
    order_and_merge();
  }

  void run(std::span<void* const> operands, void*, const RunContext&) override {
    Line line{};
    std::array<const float*, 3> in{};
    for (size_t i = 0; i < 3; ++i) in[i] = static_cast<const float*>(operands[place(i)]);
    float* out = static_cast<float*>(operands.back());
    if (sums_) std::fill_n(out, results_, 0.0F);
    const Axis& inner = axes_.back();
    line.sa = inner.strides[0], line.sb = inner.strides[1], line.sc = inner.strides[2];
    line.sy = inner.strides[3], line.n = inner.extent, line.add = sums_;
    std::array<int64_t, kMaxRank> index{};
    std::array<int64_t, 4> at{};
    while (true) {
      line.a = in[0] + at[0], line.b = in[1] + at[1], line.c = in[2] + at[2], line.y = out + at[3];
      loop_(line, p_);
      size_t d = axes_.size() - 1;
      while (d-- > 0) {
        for (size_t i = 0; i < 4; ++i) at[i] += axes_[d].strides[i];
        if (++index[d] < axes_[d].extent) break;
        index[d] = 0;
        for (size_t i = 0; i < 4; ++i) at[i] -= axes_[d].strides[i] * axes_[d].extent;
      }
      if (d == static_cast<size_t>(-1)) return;
    }
  }

 private:
  /// Operand of a, b, c (an op of fewer repeats its first) and the result.
  size_t place(size_t i) const { return i == 3 ? inputs_ : i < inputs_ ? i : 0; }

  /// Axes from the outermost in memory to the innermost, neighbours that are one axis for every operand
  /// merged.
  void order_and_merge() {
    const auto size = [](const Axis& a) {
      return std::max({a.strides[0], a.strides[1], a.strides[2], a.strides[3]});
    };
    std::stable_sort(axes_.begin(), axes_.end(),
                     [&](const Axis& a, const Axis& b) { return size(a) > size(b); });
    std::vector<Axis> merged;
    for (const Axis& axis : axes_) {
      const bool joins = !merged.empty() && [&] {
        for (size_t i = 0; i < 4; ++i) {
          if (merged.back().strides[i] != axis.strides[i] * axis.extent) return false;
        }
        return true;
      }();
      if (joins) {
        merged.back() = {merged.back().extent * axis.extent, axis.strides};
      } else {
        merged.push_back(axis);
      }
    }
    if (merged.empty()) merged.push_back({1, {1, 1, 1, 1}});
    axes_ = std::move(merged);
  }

  LineLoop loop_;
  elementwise::Parameters p_;
  size_t inputs_;
  std::vector<Axis> axes_;
  int64_t results_ = 1;
  bool sums_ = false;
};

template <LineLoop kLoop>
std::unique_ptr<Kernel> make_lines(const KernelCall& call) {
  for (const Operand& operand : call.operands) {
    if (operand.dtype != DType::f32 || volume(operand.shape) == 0)
      return make_kernel(call, Flavor::reference);
  }
  return std::make_unique<LineKernel>(call, kLoop);
}

}  // namespace ff::cpu
