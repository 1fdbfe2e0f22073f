// Images as kernels see them: samples, channels and three spatial axes, of which the leading ones have size 1
// where an image has fewer; and windows over them.
//
//   Image<float> x(call.operands[0], operands[0]);         // 16x64x56x56, channels last
//   x.at(n, c, {0, y, x})                                  // through strides: any layout
//
// The plain loops of convolution, pooling and normalisation are declared here too: in f64 they are the
// reference that all else is measured against, in f32 what the fast kernels fall back to on layouts that they
// do not know.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "compiler/base/check.h"
#include "executor/kernels/kernel.h"

namespace ff::cpu {

using Spatial = std::array<int64_t, 3>;

/// Strides of a dense buffer, in elements, in the logical order of its dimensions.
inline Shape dense_strides(const Shape& shape, Layout layout) {
  const size_t rank = shape.size();
  Shape strides(rank, 1);
  const bool last = layout == Layout::channels_last && rank > 2;
  int64_t step = last ? shape[1] : 1;
  for (size_t axis = rank; axis-- > 0;) {
    if (last && axis == 1) continue;  // the channel is innermost: stride 1
    strides[axis] = step;
    step *= shape[axis];
  }
  return strides;
}

template <typename T>
struct Image {
  T* data = nullptr;
  int64_t n = 0, c = 0;
  Spatial size{1, 1, 1};
  int64_t stride_n = 0, stride_c = 0;
  Spatial stride{0, 0, 0};

  Image(const Operand& operand, void* buffer) : data(static_cast<T*>(buffer)) {
    const Shape strides = dense_strides(operand.shape, operand.layout);
    const size_t rank = operand.shape.size();
    FF_CHECK(rank >= 2 && rank <= 5) << to_string(operand.shape);
    n = operand.shape[0], c = operand.shape[1];
    stride_n = strides[0], stride_c = strides[1];
    for (size_t a = 2; a < rank; ++a) {
      size[a + 3 - rank] = operand.shape[a];
      stride[a + 3 - rank] = strides[a];
    }
  }

  int64_t pixels() const { return size[0] * size[1] * size[2]; }
  int64_t elements() const { return n * c * pixels(); }
  bool contains(const Spatial& p) const {
    for (size_t a = 0; a < 3; ++a) {
      if (p[a] < 0 || p[a] >= size[a]) return false;
    }
    return true;
  }
  T& at(int64_t sample, int64_t channel, const Spatial& p) const {
    return data[sample * stride_n + channel * stride_c + p[0] * stride[0] + p[1] * stride[1] +
                p[2] * stride[2]];
  }
};

/// Windows of a kernel call over three axes; `begin` are the pads before the first row.
struct Window {
  Spatial kernel{1, 1, 1}, strides{1, 1, 1}, dilations{1, 1, 1}, begin{0, 0, 0};

  /// `kernel`: one size a spatial axis of the call.
  Window(const Attributes& attributes, std::span<const int64_t> sizes) {
    const size_t axes = sizes.size();
    for (size_t a = 0; a < axes; ++a) {
      kernel[a + 3 - axes] = sizes[a];
      strides[a + 3 - axes] = attributes.ints("strides")[a];
      dilations[a + 3 - axes] = attributes.ints("dilations")[a];
      begin[a + 3 - axes] = attributes.ints("pads")[a];
    }
  }

  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  /// Where tap `k` of the window of output `o` lies in the input; it may be outside.
  Spatial input(const Spatial& o, const Spatial& k) const {
    Spatial p;
    for (size_t a = 0; a < 3; ++a) p[a] = o[a] * strides[a] - begin[a] + k[a] * dilations[a];
    return p;
  }
};

/// Calls `body` for every point below `size`, in scan order.
template <typename Body>
void for_each_point(const Spatial& size, Body&& body) {
  for (int64_t z = 0; z < size[0]; ++z) {
    for (int64_t y = 0; y < size[1]; ++y) {
      for (int64_t x = 0; x < size[2]; ++x) body(Spatial{z, y, x});
    }
  }
}

/// Whether an operand is an image whose channels are innermost: rows of `c` elements, one a pixel.
inline bool has_channel_rows(const Operand& operand) {
  const Shape& s = operand.shape;
  return s.size() == 2 || operand.layout == Layout::channels_last || s[1] == 1 || volume(s) == s[0] * s[1];
}

/// A kernel that is one function of its call.
using LoopFunction = void (*)(const KernelCall&, std::span<void* const>);

class LoopKernel final : public Kernel {
 public:
  LoopKernel(KernelCall call, LoopFunction function) : call_(std::move(call)), function_(function) {}
  void run(std::span<void* const> operands, void*, const RunContext&) override { function_(call_, operands); }

 private:
  KernelCall call_;
  LoopFunction function_;
};

template <LoopFunction kFunction>
std::unique_ptr<Kernel> make_loop_kernel(const KernelCall& call) {
  return std::make_unique<LoopKernel>(call, kFunction);
}

/// The plain loops, for T = float and double. Operands as in the op's row (compiler/ops).
namespace reference {

template <typename T>
void conv(const KernelCall& call, std::span<void* const> operands);
template <typename T>
void conv_grad_data(const KernelCall& call, std::span<void* const> operands);
template <typename T>
void conv_grad_weight(const KernelCall& call, std::span<void* const> operands);

template <typename T>
void max_pool(const KernelCall& call, std::span<void* const> operands);
template <typename T>
void max_pool_grad(const KernelCall& call, std::span<void* const> operands);
template <typename T>
void average_pool(const KernelCall& call, std::span<void* const> operands);
template <typename T>
void average_pool_grad(const KernelCall& call, std::span<void* const> operands);
template <typename T>
void global_average_pool(const KernelCall& call, std::span<void* const> operands);
template <typename T>
void global_average_pool_grad(const KernelCall& call, std::span<void* const> operands);

template <typename T>
void batch_norm(const KernelCall& call, std::span<void* const> operands);
template <typename T>
void batch_norm_sum(const KernelCall& call, std::span<void* const> operands);
template <typename T>
void batch_norm_squares(const KernelCall& call, std::span<void* const> operands);
template <typename T>
void batch_norm_normalize(const KernelCall& call, std::span<void* const> operands);
template <typename T>
void batch_norm_grad(const KernelCall& call, std::span<void* const> operands);
template <typename T>
void batch_norm_grad_sums(const KernelCall& call, std::span<void* const> operands);
template <typename T>
void batch_norm_grad_data(const KernelCall& call, std::span<void* const> operands);
template <typename T>
void batch_norm_inference_grad(const KernelCall& call, std::span<void* const> operands);
template <typename T>
void batch_norm_running(const KernelCall& call, std::span<void* const> operands);

template <typename T>
void lrn(const KernelCall& call, std::span<void* const> operands);
template <typename T>
void lrn_grad(const KernelCall& call, std::span<void* const> operands);

}  // namespace reference
}  // namespace ff::cpu
