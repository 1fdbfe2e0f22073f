// Plain loops of the elementwise ops, with broadcasting, any layout.

#include "executor/kernels/cpu/dispatch.h"
#include "executor/kernels/cpu/functions.h"
#include "executor/kernels/cpu/registry.h"
#include "executor/kernels/cpu/strides.h"

namespace ff::cpu {
namespace {

using elementwise::Parameters;
template <typename T>
using Function = T (*)(T, T, T, const Parameters&);

/// The largest extents among the operands: the cell's own block.
Shape whole_of(const KernelCall& call) {
  Shape out;
  for (const Operand& operand : call.operands) {
    if (operand.shape.size() > out.size()) out.insert(out.begin(), operand.shape.size() - out.size(), 1);
    for (size_t i = 0; i < operand.shape.size(); ++i) {
      int64_t& extent = out[out.size() - operand.shape.size() + i];
      extent = std::max(extent, operand.shape[i]);
    }
  }
  return out;
}

/// out = f(inputs), or where the result is smaller than the cell (the gradient of a broadcast operand) the
/// sum of it.
template <typename T, Function<T> kFunction>
void apply(const KernelCall& call, std::span<void* const> operands) {
  const Shape shape = whole_of(call);
  const size_t inputs = call.operands.size() - 1;
  std::array<std::array<int64_t, kMaxRank>, 4> strides{};
  std::array<T*, 4> data{};
  for (size_t i = 0; i < inputs; ++i) {
    strides[i] = strides_along(call.operands[i], shape);
    data[i] = static_cast<T*>(operands[i]);
  }
  for (size_t i = inputs; i < 3; ++i) data[i] = data[0], strides[i] = strides[0];
  const Operand& out = call.operands.back();
  strides[3] = strides_along(out, shape);
  data[3] = static_cast<T*>(operands.back());
  const Parameters p = elementwise::parameters_of(call.attributes);
  const bool sums = volume(out.shape) != volume(shape);
  if (sums) std::fill_n(data[3], volume(out.shape), T(0));
  for_each_element(shape, strides, [&](const std::array<int64_t, 4>& at) {
    const T value = kFunction(data[0][at[0]], data[1][at[1]], data[2][at[2]], p);
    T& result = data[3][at[3]];
    result = sums ? result + value : value;
  });
}

/// Makes the name of a function template one that can be passed on.
#define FF_FUNCTION(function)                                      \
  template <typename T>                                            \
  struct function##_of {                                           \
    static constexpr Function<T> value = elementwise::function<T>; \
  };
FF_FUNCTION(abs)
FF_FUNCTION(abs_grad)
FF_FUNCTION(acos)
FF_FUNCTION(acos_grad)
FF_FUNCTION(acosh)
FF_FUNCTION(acosh_grad)
FF_FUNCTION(add)
FF_FUNCTION(add_relu)
FF_FUNCTION(asin)
FF_FUNCTION(asin_grad)
FF_FUNCTION(asinh)
FF_FUNCTION(asinh_grad)
FF_FUNCTION(atan)
FF_FUNCTION(atan_grad)
FF_FUNCTION(atanh)
FF_FUNCTION(atanh_grad)
FF_FUNCTION(ceil)
FF_FUNCTION(celu)
FF_FUNCTION(celu_grad)
FF_FUNCTION(clip)
FF_FUNCTION(clip_grad)
FF_FUNCTION(cos)
FF_FUNCTION(cos_grad)
FF_FUNCTION(cosh)
FF_FUNCTION(cosh_grad)
FF_FUNCTION(div)
FF_FUNCTION(div_grad_a)
FF_FUNCTION(div_grad_b)
FF_FUNCTION(elu)
FF_FUNCTION(elu_grad)
FF_FUNCTION(erf)
FF_FUNCTION(erf_grad)
FF_FUNCTION(exp)
FF_FUNCTION(exp_grad)
FF_FUNCTION(floor)
FF_FUNCTION(fmod)
FF_FUNCTION(gelu)
FF_FUNCTION(gelu_grad)
FF_FUNCTION(gelu_tanh)
FF_FUNCTION(gelu_tanh_grad)
FF_FUNCTION(hard_sigmoid)
FF_FUNCTION(hard_sigmoid_grad)
FF_FUNCTION(hard_swish)
FF_FUNCTION(hard_swish_grad)
FF_FUNCTION(leaky_relu)
FF_FUNCTION(leaky_relu_grad)
FF_FUNCTION(log)
FF_FUNCTION(log_grad)
FF_FUNCTION(max)
FF_FUNCTION(max_grad)
FF_FUNCTION(min)
FF_FUNCTION(min_grad)
FF_FUNCTION(mish)
FF_FUNCTION(mish_grad)
FF_FUNCTION(mod)
FF_FUNCTION(mul)
FF_FUNCTION(neg)
FF_FUNCTION(pow)
FF_FUNCTION(pow_grad_a)
FF_FUNCTION(pow_grad_b)
FF_FUNCTION(prelu)
FF_FUNCTION(prelu_grad_a)
FF_FUNCTION(prelu_grad_b)
FF_FUNCTION(reciprocal)
FF_FUNCTION(reciprocal_grad)
FF_FUNCTION(reduce_max_grad)
FF_FUNCTION(reduce_max_ties)
FF_FUNCTION(reduce_sum)
FF_FUNCTION(relu)
FF_FUNCTION(relu_grad)
FF_FUNCTION(round)
FF_FUNCTION(selu)
FF_FUNCTION(selu_grad)
FF_FUNCTION(shrink)
FF_FUNCTION(shrink_grad)
FF_FUNCTION(sigmoid)
FF_FUNCTION(sigmoid_grad)
FF_FUNCTION(sign)
FF_FUNCTION(sin)
FF_FUNCTION(sin_grad)
FF_FUNCTION(sinh)
FF_FUNCTION(sinh_grad)
FF_FUNCTION(softplus)
FF_FUNCTION(softplus_grad)
FF_FUNCTION(softsign)
FF_FUNCTION(softsign_grad)
FF_FUNCTION(sqrt)
FF_FUNCTION(sqrt_grad)
FF_FUNCTION(square)
FF_FUNCTION(square_grad)
FF_FUNCTION(sub)
FF_FUNCTION(swish)
FF_FUNCTION(swish_grad)
FF_FUNCTION(tan)
FF_FUNCTION(tan_grad)
FF_FUNCTION(tanh)
FF_FUNCTION(tanh_grad)
FF_FUNCTION(thresholded_relu)
FF_FUNCTION(thresholded_relu_grad)
#undef FF_FUNCTION

/// Of floats.
template <template <typename> typename F>
void add_function(Registry& registry, const char* name) {
  registry.add_reference(name, make_loop_kernel<apply<float, F<float>::value>>,
                         make_loop_kernel<apply<double, F<double>::value>>);
}

/// Of floats and integers.
template <template <typename> typename F>
std::unique_ptr<Kernel> make_arithmetic(const KernelCall& call) {
  std::unique_ptr<Kernel> out;
  with_element(call.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    out = make_loop_kernel<apply<T, F<T>::value>>(call);
  });
  return out;
}

template <typename T, template <typename> typename F, template <typename> typename G>
std::unique_ptr<Kernel> make_float(const KernelCall& call, bool first) {
  return first ? make_loop_kernel<apply<T, F<T>::value>>(call)
               : make_loop_kernel<apply<T, G<T>::value>>(call);
}

/// One of two functions, as an attribute says.
template <template <typename> typename F, template <typename> typename G>
std::unique_ptr<Kernel> make_either(const KernelCall& call, bool first) {
  return first ? make_arithmetic<F>(call) : make_arithmetic<G>(call);
}
std::unique_ptr<Kernel> make_add(const KernelCall& call) {
  return make_either<add_relu_of, add_of>(call, call.attributes.integer("relu", 0) != 0);
}
std::unique_ptr<Kernel> make_mod(const KernelCall& call) {
  return make_either<fmod_of, mod_of>(call, call.attributes.integer("fmod", 0) != 0);
}
std::unique_ptr<Kernel> make_gelu(const KernelCall& call) {
  const bool tanh = call.attributes.integer("tanh", 0) != 0;
  return call.operands[0].dtype == DType::f64 ? make_float<double, gelu_tanh_of, gelu_of>(call, tanh)
                                              : make_float<float, gelu_tanh_of, gelu_of>(call, tanh);
}
std::unique_ptr<Kernel> make_gelu_grad(const KernelCall& call) {
  const bool tanh = call.attributes.integer("tanh", 0) != 0;
  return call.operands[0].dtype == DType::f64
             ? make_float<double, gelu_tanh_grad_of, gelu_grad_of>(call, tanh)
             : make_float<float, gelu_tanh_grad_of, gelu_grad_of>(call, tanh);
}

}  // namespace

void register_reference_elementwise(Registry& registry) {
  registry.add_any("Sub", make_arithmetic<sub_of>);
  registry.add_any("Mul", make_arithmetic<mul_of>);
  registry.add_any("Div", make_arithmetic<div_of>);
  registry.add_any("Pow", make_arithmetic<pow_of>);
  registry.add_any("Max", make_arithmetic<max_of>);
  registry.add_any("Min", make_arithmetic<min_of>);
  registry.add_any("Neg", make_arithmetic<neg_of>);
  registry.add_any("Relu", make_arithmetic<relu_of>);
  registry.add_any("Abs", make_arithmetic<abs_of>);
  registry.add_any("Sign", make_arithmetic<sign_of>);
  registry.add_any("Clip", make_arithmetic<clip_of>);
  registry.add_any("Add", make_add);
  registry.add_any("Mod", make_mod);
  registry.add_any("Gelu", make_gelu);
  registry.add_any("GeluGrad", make_gelu_grad);
  add_function<reduce_sum_of>(registry, "ReduceSum");
  add_function<reduce_sum_of>(registry, "ReduceSumGrad");
  add_function<reduce_max_ties_of>(registry, "ReduceMaxTies");
  add_function<reduce_max_grad_of>(registry, "ReduceMaxGrad");
  add_function<mul_of>(registry, "MulGrad");
  add_function<div_grad_a_of>(registry, "DivGradA");
  add_function<div_grad_b_of>(registry, "DivGradB");
  add_function<pow_grad_a_of>(registry, "PowGradA");
  add_function<pow_grad_b_of>(registry, "PowGradB");
  add_function<max_grad_of>(registry, "MaxGrad");
  add_function<min_grad_of>(registry, "MinGrad");
  add_function<prelu_of>(registry, "PRelu");
  add_function<prelu_grad_a_of>(registry, "PReluGradA");
  add_function<prelu_grad_b_of>(registry, "PReluGradB");
  add_function<neg_of>(registry, "NegGrad");
  add_function<relu_grad_of>(registry, "ReluGrad");
  add_function<sigmoid_of>(registry, "Sigmoid");
  add_function<sigmoid_grad_of>(registry, "SigmoidGrad");
  add_function<tanh_of>(registry, "Tanh");
  add_function<tanh_grad_of>(registry, "TanhGrad");
  add_function<exp_of>(registry, "Exp");
  add_function<exp_grad_of>(registry, "ExpGrad");
  add_function<sqrt_of>(registry, "Sqrt");
  add_function<sqrt_grad_of>(registry, "SqrtGrad");
  add_function<reciprocal_of>(registry, "Reciprocal");
  add_function<reciprocal_grad_of>(registry, "ReciprocalGrad");
  add_function<log_of>(registry, "Log");
  add_function<log_grad_of>(registry, "LogGrad");
  add_function<leaky_relu_of>(registry, "LeakyRelu");
  add_function<leaky_relu_grad_of>(registry, "LeakyReluGrad");
  add_function<square_of>(registry, "Square");
  add_function<square_grad_of>(registry, "SquareGrad");
  add_function<abs_grad_of>(registry, "AbsGrad");
  add_function<clip_grad_of>(registry, "ClipGrad");
  add_function<acos_of>(registry, "Acos");
  add_function<acos_grad_of>(registry, "AcosGrad");
  add_function<acosh_of>(registry, "Acosh");
  add_function<acosh_grad_of>(registry, "AcoshGrad");
  add_function<asin_of>(registry, "Asin");
  add_function<asin_grad_of>(registry, "AsinGrad");
  add_function<asinh_of>(registry, "Asinh");
  add_function<asinh_grad_of>(registry, "AsinhGrad");
  add_function<atan_of>(registry, "Atan");
  add_function<atan_grad_of>(registry, "AtanGrad");
  add_function<atanh_of>(registry, "Atanh");
  add_function<atanh_grad_of>(registry, "AtanhGrad");
  add_function<celu_of>(registry, "Celu");
  add_function<celu_grad_of>(registry, "CeluGrad");
  add_function<cos_of>(registry, "Cos");
  add_function<cos_grad_of>(registry, "CosGrad");
  add_function<cosh_of>(registry, "Cosh");
  add_function<cosh_grad_of>(registry, "CoshGrad");
  add_function<elu_of>(registry, "Elu");
  add_function<elu_grad_of>(registry, "EluGrad");
  add_function<erf_of>(registry, "Erf");
  add_function<erf_grad_of>(registry, "ErfGrad");
  add_function<hard_sigmoid_of>(registry, "HardSigmoid");
  add_function<hard_sigmoid_grad_of>(registry, "HardSigmoidGrad");
  add_function<hard_swish_of>(registry, "HardSwish");
  add_function<hard_swish_grad_of>(registry, "HardSwishGrad");
  add_function<mish_of>(registry, "Mish");
  add_function<mish_grad_of>(registry, "MishGrad");
  add_function<selu_of>(registry, "Selu");
  add_function<selu_grad_of>(registry, "SeluGrad");
  add_function<shrink_of>(registry, "Shrink");
  add_function<shrink_grad_of>(registry, "ShrinkGrad");
  add_function<sin_of>(registry, "Sin");
  add_function<sin_grad_of>(registry, "SinGrad");
  add_function<sinh_of>(registry, "Sinh");
  add_function<sinh_grad_of>(registry, "SinhGrad");
  add_function<softplus_of>(registry, "Softplus");
  add_function<softplus_grad_of>(registry, "SoftplusGrad");
  add_function<softsign_of>(registry, "Softsign");
  add_function<softsign_grad_of>(registry, "SoftsignGrad");
  add_function<swish_of>(registry, "Swish");
  add_function<swish_grad_of>(registry, "SwishGrad");
  add_function<tan_of>(registry, "Tan");
  add_function<tan_grad_of>(registry, "TanGrad");
  add_function<thresholded_relu_of>(registry, "ThresholdedRelu");
  add_function<thresholded_relu_grad_of>(registry, "ThresholdedReluGrad");
  add_function<ceil_of>(registry, "Ceil");
  add_function<floor_of>(registry, "Floor");
  add_function<round_of>(registry, "Round");
}

}  // namespace ff::cpu
