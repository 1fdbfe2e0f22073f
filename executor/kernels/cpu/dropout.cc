// Dropout, whose masks are computed from the place of an element in the whole tensor: the same under every
// strategy, and again in the backward pass.

#include "compiler/base/rng.h"
#include "executor/kernels/cpu/registry.h"
#include "executor/kernels/cpu/strides.h"

namespace ff::cpu {
namespace {

/// Dropout: mask and scale by the element's place in the whole tensor.
template <typename T>
class Dropout final : public Kernel {
 public:
  explicit Dropout(const KernelCall& call) : call_(call) {}

  void run(std::span<void* const> operands, void*, const RunContext& context) override {
    const Operand& x = call_.operands[0];
    const double ratio = call_.attributes.real("ratio");
    const auto scale = static_cast<T>(ratio < 1 ? 1 / (1 - ratio) : 0);
    const Ints& offset = call_.attributes.ints("offset");
    const Ints& whole = call_.attributes.ints("global_shape");
    const uint64_t stream = mix64(static_cast<uint64_t>(call_.attributes.integer("op_key"))) ^
                            static_cast<uint64_t>(context.step);
    std::array<std::array<int64_t, kMaxRank>, 3> strides{};
    strides[0] = strides_along(x, x.shape);
    strides[1] = strides_along(call_.operands[1], x.shape);
    int64_t step = 1;
    int64_t first = 0;
    for (size_t axis = whole.size(); axis-- > 0;) {
      strides[2][axis] = step;
      first += offset[axis] * step;
      step *= whole[axis];
    }
    const T* in = static_cast<const T*>(operands[0]);
    T* out = static_cast<T*>(operands[1]);
    for_each_element(x.shape, strides, [&](const std::array<int64_t, 3>& at) {
      const double u = to_unit(counter_random(context.seed, stream, static_cast<uint64_t>(first + at[2])));
      out[at[1]] = u >= ratio ? in[at[0]] * scale : T(0);
    });
  }

 private:
  KernelCall call_;
};

template <typename T>
std::unique_ptr<Kernel> make_dropout(const KernelCall& call) {
  return std::make_unique<Dropout<T>>(call);
}

}  // namespace

void register_dropout(Registry& registry) {
  registry.add_reference("Dropout", make_dropout<float>, make_dropout<double>);
  registry.add_reference("DropoutGrad", make_dropout<float>, make_dropout<double>);
}

}  // namespace ff::cpu
