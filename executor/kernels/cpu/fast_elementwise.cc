// Elementwise f32 kernels on operands of one shape and layout: flat loops that vectorise. Others fall back to
// the plain loops.

#include "executor/kernels/cpu/elementwise.h"
#include "executor/kernels/cpu/registry.h"
#include "executor/kernels/cpu/simd.h"

namespace ff::cpu {
namespace {

using elementwise::Parameters;
using FlatLoop = void (*)(const float*, const float*, float*, int64_t, const Parameters&);

#define FF_FLAT(function)                                                                     \
  FF_TARGET_CLONES void flat_##function(const float* a, const float* b, float* y, int64_t n,  \
                                        const Parameters& p) {                                \
    for (int64_t i = 0; i < n; ++i) y[i] = elementwise::function<float>(a[i], b[i], 0.0F, p); \
  }
FF_FLAT(add)
FF_FLAT(add_relu)
FF_FLAT(sub)
FF_FLAT(mul)
FF_FLAT(div)
FF_FLAT(neg)
FF_FLAT(relu)
FF_FLAT(relu_grad)
FF_FLAT(sigmoid_grad)
FF_FLAT(tanh_grad)
FF_FLAT(leaky_relu)
FF_FLAT(leaky_relu_grad)
FF_FLAT(clip)
FF_FLAT(clip_grad)
#undef FF_FLAT

class FlatKernel final : public Kernel {
 public:
  FlatKernel(const KernelCall& call, FlatLoop loop) : loop_(loop), count_(volume(call.operands[0].shape)) {
    p_.alpha = call.attributes.real("alpha", p_.alpha);
    p_.low = call.attributes.real("min", -INFINITY);
    p_.high = call.attributes.real("max", INFINITY);
  }

  void run(std::span<void* const> operands, void*, const RunContext&) override {
    const float* a = static_cast<const float*>(operands[0]);
    const float* b = operands.size() > 2 ? static_cast<const float*>(operands[1]) : a;
    loop_(a, b, static_cast<float*>(operands.back()), count_, p_);
  }

 private:
  FlatLoop loop_;
  int64_t count_;
  Parameters p_;
};

bool is_flat(const KernelCall& call) {
  for (const Operand& operand : call.operands) {
    if (operand.shape != call.operands[0].shape || operand.layout != call.operands[0].layout) return false;
  }
  return true;
}

template <FlatLoop kLoop>
std::unique_ptr<Kernel> make_flat(const KernelCall& call) {
  if (!is_flat(call)) return make_kernel(call, Flavor::reference);
  return std::make_unique<FlatKernel>(call, kLoop);
}

std::unique_ptr<Kernel> make_add(const KernelCall& call) {
  return call.attributes.integer("relu", 0) != 0 ? make_flat<flat_add_relu>(call) : make_flat<flat_add>(call);
}

}  // namespace

void register_fast_elementwise(Registry& registry) {
  registry.add_fast("Add", make_add);
  registry.add_fast("Sub", make_flat<flat_sub>);
  registry.add_fast("Mul", make_flat<flat_mul>);
  registry.add_fast("MulGrad", make_flat<flat_mul>);
  registry.add_fast("Div", make_flat<flat_div>);
  registry.add_fast("Neg", make_flat<flat_neg>);
  registry.add_fast("NegGrad", make_flat<flat_neg>);
  registry.add_fast("Relu", make_flat<flat_relu>);
  registry.add_fast("ReluGrad", make_flat<flat_relu_grad>);
  registry.add_fast("SigmoidGrad", make_flat<flat_sigmoid_grad>);
  registry.add_fast("TanhGrad", make_flat<flat_tanh_grad>);
  registry.add_fast("LeakyRelu", make_flat<flat_leaky_relu>);
  registry.add_fast("LeakyReluGrad", make_flat<flat_leaky_relu_grad>);
  registry.add_fast("Clip", make_flat<flat_clip>);
  registry.add_fast("ClipGrad", make_flat<flat_clip_grad>);
}

}  // namespace ff::cpu
