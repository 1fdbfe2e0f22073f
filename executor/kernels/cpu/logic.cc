// Casts, comparisons, boolean ops and choices, for every type and layout, with broadcasting.

#include <cmath>

#include "executor/kernels/cpu/dispatch.h"
#include "executor/kernels/cpu/registry.h"
#include "executor/kernels/cpu/strides.h"

namespace ff::cpu {
namespace {

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
void cast_to_boolean(const KernelCall& call, std::span<void* const> operands) {
  const Operand& x = call.operands[0];
  const std::array<std::array<int64_t, kMaxRank>, 2> strides{strides_along(x, x.shape),
                                                             strides_along(call.operands[1], x.shape)};
  const From* in = static_cast<const From*>(operands[0]);
  uint8_t* out = static_cast<uint8_t*>(operands[1]);
  for_each_element(x.shape, strides,
                   [&](const std::array<int64_t, 2>& at) { out[at[1]] = in[at[0]] != 0 ? 1 : 0; });
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
    case DType::boolean:
      return cast_to_boolean<From>(call, operands);
    default:
      FF_CHECK(false) << "cast to " << name(call.operands[1].dtype);
  }
}

void cast(const KernelCall& call, std::span<void* const> operands) {
  with_element(call.operands[0].dtype, [&](auto zero) { cast_from<decltype(zero)>(call, operands); });
}

/// y = f(x) or f(a, b), with another type of the result.
template <typename From, typename To, typename F>
void map_elements(const KernelCall& call, std::span<void* const> operands, F f) {
  const size_t inputs = call.operands.size() - 1;
  const Operand& y = call.operands.back();
  std::array<std::array<int64_t, kMaxRank>, 3> strides{};
  for (size_t i = 0; i < 2; ++i) strides[i] = strides_along(call.operands[std::min(i, inputs - 1)], y.shape);
  strides[2] = strides_along(y, y.shape);
  const From* a = static_cast<const From*>(operands[0]);
  const From* b = static_cast<const From*>(operands[inputs - 1]);
  To* out = static_cast<To*>(operands[inputs]);
  for_each_element(y.shape, strides, [&](const std::array<int64_t, 3>& at) {
    out[at[2]] = static_cast<To>(f(a[at[0]], b[at[1]]));
  });
}

/// `F` is a type whose call compares two values.
template <typename F>
void compare(const KernelCall& call, std::span<void* const> operands) {
  with_element(call.operands[0].dtype,
               [&](auto zero) { map_elements<decltype(zero), uint8_t>(call, operands, F{}); });
}

struct IsNaN {
  bool operator()(auto x, auto) const { return std::isnan(static_cast<double>(x)); }
};
struct And {
  bool operator()(auto a, auto b) const { return a != 0 && b != 0; }
};
struct Or {
  bool operator()(auto a, auto b) const { return a != 0 || b != 0; }
};
struct Xor {
  bool operator()(auto a, auto b) const { return (a != 0) != (b != 0); }
};
struct Not {
  bool operator()(auto x, auto) const { return x == 0; }
};

/// Of the signs that the call says.
void is_infinite(const KernelCall& call, std::span<void* const> operands) {
  const bool positive = call.attributes.integer("detect_positive", 1) != 0;
  const bool negative = call.attributes.integer("detect_negative", 1) != 0;
  with_element(call.operands[0].dtype, [&](auto zero) {
    map_elements<decltype(zero), uint8_t>(call, operands, [&](auto x, auto) {
      return std::isinf(static_cast<double>(x)) && (x > 0 ? positive : negative);
    });
  });
}

void where(const KernelCall& call, std::span<void* const> operands) {
  const Operand& y = call.operands[3];
  std::array<std::array<int64_t, kMaxRank>, 4> strides{};
  for (size_t i = 0; i < 4; ++i) strides[i] = strides_along(call.operands[i], y.shape);
  const uint8_t* condition = static_cast<const uint8_t*>(operands[0]);
  with_element(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* a = static_cast<const T*>(operands[1]);
    const T* b = static_cast<const T*>(operands[2]);
    T* out = static_cast<T*>(operands[3]);
    for_each_element(y.shape, strides, [&](const std::array<int64_t, 4>& at) {
      out[at[3]] = condition[at[0]] != 0 ? a[at[1]] : b[at[2]];
    });
  });
}

/// dx is the sum over what it was broadcast to.
template <typename T>
void where_grad(const KernelCall& call, std::span<void* const> operands) {
  const Operand& dy = call.operands[1];
  const Operand& dx = call.operands[2];
  std::array<std::array<int64_t, kMaxRank>, 3> strides{};
  for (size_t i = 0; i < 3; ++i) strides[i] = strides_along(call.operands[i], dy.shape);
  const bool otherwise = call.attributes.integer("otherwise") != 0;
  const uint8_t* condition = static_cast<const uint8_t*>(operands[0]);
  const T* in = static_cast<const T*>(operands[1]);
  T* out = static_cast<T*>(operands[2]);
  std::fill_n(out, volume(dx.shape), T(0));
  for_each_element(dy.shape, strides, [&](const std::array<int64_t, 3>& at) {
    if ((condition[at[0]] != 0) != otherwise) out[at[2]] += in[at[1]];
  });
}

}  // namespace

void register_logic(Registry& registry) {
  registry.add_any("Cast", make_loop_kernel<cast>);
  registry.add_any("Equal", make_loop_kernel<compare<std::equal_to<>>>);
  registry.add_any("Greater", make_loop_kernel<compare<std::greater<>>>);
  registry.add_any("GreaterOrEqual", make_loop_kernel<compare<std::greater_equal<>>>);
  registry.add_any("Less", make_loop_kernel<compare<std::less<>>>);
  registry.add_any("LessOrEqual", make_loop_kernel<compare<std::less_equal<>>>);
  registry.add_any("And", make_loop_kernel<compare<And>>);
  registry.add_any("Or", make_loop_kernel<compare<Or>>);
  registry.add_any("Xor", make_loop_kernel<compare<Xor>>);
  registry.add_any("Not", make_loop_kernel<compare<Not>>);
  registry.add_any("IsNaN", make_loop_kernel<compare<IsNaN>>);
  registry.add_any("IsInf", make_loop_kernel<is_infinite>);
  registry.add_any("Where", make_loop_kernel<where>);
  registry.add_reference("WhereGrad", make_loop_kernel<where_grad<float>>,
                         make_loop_kernel<where_grad<double>>);
}

}  // namespace ff::cpu
