#include "executor/kernels/cpu/registry.h"

#include "compiler/base/check.h"

namespace ff::cpu {

void Registry::add_reference(const std::string& name, KernelFactory f32, KernelFactory f64) {
  Row& row = rows_[name];
  FF_CHECK(row.f32 == nullptr && row.f64 == nullptr) << "two kernels named " << name;
  row.f32 = f32;
  row.f64 = f64;
}

void Registry::add_fast(std::string name, KernelFactory f32) { rows_[std::move(name)].fast = f32; }

KernelFactory Registry::find(const KernelCall& call, Flavor flavor) const {
  const auto it = rows_.find(call.kernel);
  FF_CHECK(it != rows_.end()) << "no CPU kernel named " << call.kernel;
  // The first float operand decides the precision.
  DType type = DType::f32;
  for (const Operand& operand : call.operands) {
    if (is_absent(operand) || !is_float(operand.dtype)) continue;
    type = operand.dtype;
    break;
  }
  const Row& row = it->second;
  KernelFactory out = type == DType::f64                              ? row.f64
                      : flavor == Flavor::fast && row.fast != nullptr ? row.fast
                                                                      : row.f32;
  FF_CHECK(out != nullptr) << "no CPU kernel " << call.kernel << " for " << name(type);
  return out;
}

std::unique_ptr<Kernel> make_kernel(const KernelCall& call, Flavor flavor) {
  static const Registry registry = [] {
    Registry r;
    register_reference_conv(r);
    register_reference_elementwise(r);
    register_reference_loss(r);
    register_reference_matmul(r);
    register_reference_normalization(r);
    register_reference_pool(r);
    register_reference_shape(r);
    register_reference_softmax(r);
    register_along_axis(r);
    register_dropout(r);
    register_elements(r);
    register_expand(r);
    register_gather(r);
    register_layer_norm(r);
    register_logic(r);
    register_recurrent(r);
    register_recurrent_weights(r);
    register_reduce(r);
    register_resize(r);
    register_system(r);
    register_update(r);
    register_fast_elementwise(r);
    register_fast_functions(r);
    register_fast_lrn(r);
    register_fast_normalization(r);
    register_fast_pool(r);
    register_onednn_conv(r);
    register_onednn_matmul(r);
    return r;
  }();
  return registry.find(call, flavor)(call);
}

}  // namespace ff::cpu
