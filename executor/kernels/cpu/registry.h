// The CPU kernels by name. Each file of kernels has a function that enters them; registry.cc calls all of
// them, so that there is one list and no order of initialisation.
//
//   std::unique_ptr<Kernel> k = cpu::make_kernel(call);                    // the fast one if there is, else
//   plain loops std::unique_ptr<Kernel> r = cpu::make_kernel(call, Flavor::reference);  // plain loops
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "executor/kernels/kernel.h"

namespace ff::cpu {

using KernelFactory = std::unique_ptr<Kernel> (*)(const KernelCall&);

enum class Flavor : uint8_t { fast, reference };

class Registry {
 public:
  /// Plain loops in both precisions.
  void add_reference(const std::string& name, KernelFactory f32, KernelFactory f64);
  /// The f32 kernel that trains.
  void add_fast(std::string name, KernelFactory f32);
  /// One kernel for every type (copies).
  void add_any(const std::string& name, KernelFactory factory) { add_reference(name, factory, factory); }
  KernelFactory find(const KernelCall& call, Flavor flavor) const;

 private:
  struct Row {
    KernelFactory fast = nullptr, f32 = nullptr, f64 = nullptr;
  };
  std::map<std::string, Row, std::less<>> rows_;
};

void register_fast_functions(Registry& registry);
void register_fast_lrn(Registry& registry);
void register_fast_normalization(Registry& registry);
void register_fast_pool(Registry& registry);
void register_fast_elementwise(Registry& registry);
void register_along_axis(Registry& registry);
void register_dropout(Registry& registry);
void register_elements(Registry& registry);
void register_expand(Registry& registry);
void register_gather(Registry& registry);
void register_layer_norm(Registry& registry);
void register_logic(Registry& registry);
void register_onednn_conv(Registry& registry);
void register_onednn_matmul(Registry& registry);
void register_recurrent(Registry& registry);
void register_recurrent_weights(Registry& registry);
void register_reduce(Registry& registry);
void register_reference_conv(Registry& registry);
void register_reference_elementwise(Registry& registry);
void register_reference_loss(Registry& registry);
void register_reference_matmul(Registry& registry);
void register_reference_normalization(Registry& registry);
void register_reference_pool(Registry& registry);
void register_reference_shape(Registry& registry);
void register_reference_softmax(Registry& registry);
void register_resize(Registry& registry);
void register_system(Registry& registry);
void register_update(Registry& registry);

/// Makes the kernel of a call. InternalError if there is none of this name.
std::unique_ptr<Kernel> make_kernel(const KernelCall& call, Flavor flavor = Flavor::fast);

}  // namespace ff::cpu
