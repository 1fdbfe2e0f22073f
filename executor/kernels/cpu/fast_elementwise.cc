// Elementwise arithmetic in f32 along lines that vectorise.

#include "executor/kernels/cpu/lines.h"

namespace ff::cpu {
namespace {

using elementwise::Parameters;

#define FF_LINE(function)                                                                            \
  FF_TARGET_CLONES void line_##function(const Line& l, const Parameters& p) {                        \
    run_line(                                                                                        \
        l, [&p](float a, float b, float c)                                                           \
               __attribute__((always_inline)) { return elementwise::function<float>(a, b, c, p); }); \
  }
FF_LINE(add)
FF_LINE(add_relu)
FF_LINE(sub)
FF_LINE(mul)
FF_LINE(div)
FF_LINE(div_grad_a)
FF_LINE(div_grad_b)
FF_LINE(reduce_sum)
FF_LINE(neg)
FF_LINE(relu)
FF_LINE(relu_grad)
FF_LINE(sigmoid_grad)
FF_LINE(tanh_grad)
FF_LINE(leaky_relu)
FF_LINE(leaky_relu_grad)
FF_LINE(clip)
FF_LINE(clip_grad)
FF_LINE(square)
FF_LINE(square_grad)
FF_LINE(sqrt)
FF_LINE(sqrt_grad)
FF_LINE(reciprocal)
FF_LINE(reciprocal_grad)
FF_LINE(exp_grad)
FF_LINE(max)
FF_LINE(min)
#undef FF_LINE

std::unique_ptr<Kernel> make_add(const KernelCall& call) {
  return call.attributes.integer("relu", 0) != 0 ? make_lines<line_add_relu>(call)
                                                 : make_lines<line_add>(call);
}

}  // namespace

void register_fast_elementwise(Registry& registry) {
  registry.add_fast("Add", make_add);
  registry.add_fast("Sub", make_lines<line_sub>);
  registry.add_fast("Mul", make_lines<line_mul>);
  registry.add_fast("MulGrad", make_lines<line_mul>);
  registry.add_fast("Div", make_lines<line_div>);
  registry.add_fast("DivGradA", make_lines<line_div_grad_a>);
  registry.add_fast("DivGradB", make_lines<line_div_grad_b>);
  registry.add_fast("ReduceSum", make_lines<line_reduce_sum>);
  registry.add_fast("ReduceSumGrad", make_lines<line_reduce_sum>);
  registry.add_fast("Neg", make_lines<line_neg>);
  registry.add_fast("NegGrad", make_lines<line_neg>);
  registry.add_fast("Relu", make_lines<line_relu>);
  registry.add_fast("ReluGrad", make_lines<line_relu_grad>);
  registry.add_fast("SigmoidGrad", make_lines<line_sigmoid_grad>);
  registry.add_fast("TanhGrad", make_lines<line_tanh_grad>);
  registry.add_fast("LeakyRelu", make_lines<line_leaky_relu>);
  registry.add_fast("LeakyReluGrad", make_lines<line_leaky_relu_grad>);
  registry.add_fast("Clip", make_lines<line_clip>);
  registry.add_fast("ClipGrad", make_lines<line_clip_grad>);
  registry.add_fast("Square", make_lines<line_square>);
  registry.add_fast("SquareGrad", make_lines<line_square_grad>);
  registry.add_fast("Sqrt", make_lines<line_sqrt>);
  registry.add_fast("SqrtGrad", make_lines<line_sqrt_grad>);
  registry.add_fast("Reciprocal", make_lines<line_reciprocal>);
  registry.add_fast("ReciprocalGrad", make_lines<line_reciprocal_grad>);
  registry.add_fast("ExpGrad", make_lines<line_exp_grad>);
  registry.add_fast("Max", make_lines<line_max>);
  registry.add_fast("Min", make_lines<line_min>);
}

}  // namespace ff::cpu
