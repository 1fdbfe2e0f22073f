// Plain loops of the elementwise ops, with broadcasting, any layout.

#include "executor/kernels/cpu/elementwise.h"
#include "executor/kernels/cpu/registry.h"
#include "executor/kernels/cpu/strides.h"

namespace ff::cpu {
namespace {

using elementwise::Parameters;
template <typename T>
using Function = T (*)(T, T, T, const Parameters&);

Parameters parameters_of(const KernelCall& call) {
  const Attributes& a = call.attributes;
  Parameters p;
  p.alpha = a.real("alpha", p.alpha);
  p.low = a.real("min", -INFINITY);
  p.high = a.real("max", INFINITY);
  p.scale = a.real("scale", 1.0);
  return p;
}

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
  const Parameters p = parameters_of(call);
  const bool sums = volume(out.shape) != volume(shape);
  if (sums) std::fill_n(data[3], volume(out.shape), T(0));
  for_each_element(shape, strides, [&](const std::array<int64_t, 4>& at) {
    const T value = kFunction(data[0][at[0]], data[1][at[1]], data[2][at[2]], p);
    T& result = data[3][at[3]];
    result = sums ? result + value : value;
  });
}

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

template <typename From, typename To>
void cast_elements(const KernelCall& call, std::span<void* const> operands) {
  const Operand& x = call.operands[0];
  const std::array<std::array<int64_t, kMaxRank>, 2> strides{strides_along(x, x.shape),
                                                             strides_along(call.operands[1], x.shape)};
  const From* in = static_cast<const From*>(operands[0]);
  To* out = static_cast<To*>(operands[1]);
  for_each_element(x.shape, strides,
                   [&](const std::array<int64_t, 2>& at) { out[at[1]] = static_cast<To>(in[at[0]]); });
}

template <typename From>
void cast_from(const KernelCall& call, std::span<void* const> operands) {
  switch (call.operands[1].dtype) {
    case DType::f64:
      return cast_elements<From, double>(call, operands);
    case DType::f32:
      return cast_elements<From, float>(call, operands);
    case DType::i64:
      return cast_elements<From, int64_t>(call, operands);
    case DType::i32:
      return cast_elements<From, int32_t>(call, operands);
    case DType::u8:
      return cast_elements<From, uint8_t>(call, operands);
    default:
      FF_CHECK(false) << "cast to " << name(call.operands[1].dtype);
  }
}

void cast(const KernelCall& call, std::span<void* const> operands) {
  switch (call.operands[0].dtype) {
    case DType::f64:
      return cast_from<double>(call, operands);
    case DType::f32:
      return cast_from<float>(call, operands);
    case DType::i64:
      return cast_from<int64_t>(call, operands);
    case DType::i32:
      return cast_from<int32_t>(call, operands);
    case DType::u8:
    case DType::boolean:
      return cast_from<uint8_t>(call, operands);
    default:
      FF_CHECK(false) << "cast from " << name(call.operands[0].dtype);
  }
}

template <typename T>
std::unique_ptr<Kernel> make_add(const KernelCall& call) {
  using elementwise::add, elementwise::add_relu;
  if (call.attributes.integer("relu", 0) != 0) return make_loop_kernel<apply<T, add_relu<T>>>(call);
  return make_loop_kernel<apply<T, add<T>>>(call);
}

}  // namespace

void register_reference_elementwise(Registry& registry) {
  using namespace elementwise;
#define FF_ROW(name, function)                                                  \
  registry.add_reference(name, make_loop_kernel<apply<float, function<float>>>, \
                         make_loop_kernel<apply<double, function<double>>>)
  FF_ROW("Sub", sub);
  FF_ROW("Mul", mul);
  FF_ROW("Div", div);
  FF_ROW("ReduceTo", reduce_to);
  FF_ROW("MulGrad", mul);
  FF_ROW("DivGradA", div_grad_a);
  FF_ROW("DivGradB", div_grad_b);
  FF_ROW("Neg", neg);
  FF_ROW("NegGrad", neg);
  FF_ROW("Relu", relu);
  FF_ROW("ReluGrad", relu_grad);
  FF_ROW("Sigmoid", sigmoid);
  FF_ROW("SigmoidGrad", sigmoid_grad);
  FF_ROW("Tanh", elementwise::tanh);
  FF_ROW("TanhGrad", tanh_grad);
  FF_ROW("Exp", elementwise::exp);
  FF_ROW("ExpGrad", exp_grad);
  FF_ROW("Sqrt", elementwise::sqrt);
  FF_ROW("SqrtGrad", sqrt_grad);
  FF_ROW("Log", elementwise::log);
  FF_ROW("LogGrad", log_grad);
  FF_ROW("LeakyRelu", leaky_relu);
  FF_ROW("LeakyReluGrad", leaky_relu_grad);
  FF_ROW("Clip", clip);
  FF_ROW("ClipGrad", clip_grad);
#undef FF_ROW
  registry.add_reference("Add", make_add<float>, make_add<double>);
  registry.add_reference("Dropout", make_dropout<float>, make_dropout<double>);
  registry.add_reference("DropoutGrad", make_dropout<float>, make_dropout<double>);
  registry.add_any("Cast", make_loop_kernel<cast>);
}

}  // namespace ff::cpu
