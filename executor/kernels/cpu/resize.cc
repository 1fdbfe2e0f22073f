// Resize and its gradient: each element of the result is a sum of elements of the input, and its gradient is
// added to those of them. Where channels are innermost, an element stands for a row of them.
#include "compiler/plan/resize_axis.h"

#include "executor/kernels/cpu/image.h"
#include "executor/kernels/cpu/registry.h"
#include "executor/kernels/cpu/simd.h"

namespace ff::cpu {
namespace {

FF_TARGET_CLONES void add_rows(const float* from, float* to, int64_t n, float weight) {
  for (int64_t e = 0; e < n; ++e) to[e] += weight * from[e];
}
void add_rows(const double* from, double* to, int64_t n, double weight) {
  for (int64_t e = 0; e < n; ++e) to[e] += weight * from[e];
}

template <typename T>
class Resize final : public Kernel {
 public:
  explicit Resize(const KernelCall& call)
      : call_(call), backward_(call.kernel == "ResizeGrad"), x_at_(backward_ ? 1 : 0) {
    const Shape &x = call.operands[x_at_].shape, &y = call.operands[1 - x_at_].shape;
    const Ints& factors = call.attributes.ints("factors");
    const size_t axes = factors.size();
    for (size_t a = 0; a < 3 - axes; ++a) taps_[a] = {{{0, 1}}};
    for (size_t a = 0; a < axes; ++a) {
      const ResizeAxis axis(call.attributes, a, x[2 + a]);
      auto& taps = taps_[3 - axes + a];
      for (int64_t o = 0; o < y[2 + a]; ++o) {
        taps.push_back(factors[a] > 0 ? std::vector<ResizeTap>{{o / factors[a], 1}} : axis.taps(o));
      }
    }
  }

  void run(std::span<void* const> operands, void*, const RunContext&) override {
    const Image<T> x(call_.operands[x_at_], operands[x_at_]),
        y(call_.operands[1 - x_at_], operands[1 - x_at_]);
    const Image<T>& out = backward_ ? x : y;
    std::fill_n(out.data, out.elements(), T(0));
    for (int64_t n = 0; n < y.n; ++n) {
      for_each_point(y.size, [&](const Spatial& o) { add_taps(x, y, n, o); });
    }
  }

 private:
  void add_taps(const Image<T>& x, const Image<T>& y, int64_t n, const Spatial& o) const {
    for (const ResizeTap& a : taps_[0][static_cast<size_t>(o[0])]) {
      for (const ResizeTap& b : taps_[1][static_cast<size_t>(o[1])]) {
        for (const ResizeTap& c : taps_[2][static_cast<size_t>(o[2])]) {
          const double weight = a.weight * b.weight * c.weight;
          if (weight == 0) continue;
          T* in = &x.at(n, 0, {a.element, b.element, c.element});
          T* result = &y.at(n, 0, o);
          if (backward_) {
            add(result, y.stride_c, in, x.stride_c, x.c, static_cast<T>(weight));
          } else {
            add(in, x.stride_c, result, y.stride_c, x.c, static_cast<T>(weight));
          }
        }
      }
    }
  }

  static void add(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t channels, T weight) {
    if (from_step == 1 && to_step == 1) return add_rows(from, to, channels, weight);
    for (int64_t c = 0; c < channels; ++c) to[c * to_step] += weight * from[c * from_step];
  }

  KernelCall call_;
  bool backward_;
  size_t x_at_;  // the input's place among the operands, or its gradient's
  std::array<std::vector<std::vector<ResizeTap>>, 3> taps_;  // by axis and element of the result
};

template <typename T>
std::unique_ptr<Kernel> make_resize(const KernelCall& call) {
  return std::make_unique<Resize<T>>(call);
}

}  // namespace

void register_resize(Registry& registry) {
  for (const char* name : {"Resize", "ResizeGrad"})
    registry.add_reference(name, make_resize<float>, make_resize<double>);
}

}  // namespace ff::cpu
