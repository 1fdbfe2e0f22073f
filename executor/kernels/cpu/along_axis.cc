// CumSum, ArgMax, ArgMin, TopK and OneHot: rows along one axis, for every type and layout.

#include <algorithm>
#include <numeric>

#include "executor/kernels/cpu/class_rows.h"
#include "executor/kernels/cpu/dispatch.h"
#include "executor/kernels/cpu/registry.h"

namespace ff::cpu {
namespace {

using Buffers = std::span<void* const>;

int axis_of(const KernelCall& call) { return static_cast<int>(call.attributes.integer("axis")); }

template <typename T>
void cumsum(const KernelCall& call, Buffers operands) {
  const ClassRows<T> x(call.operands[0], operands[0], axis_of(call)),
      y(call.operands[1], operands[1], axis_of(call));
  const bool exclusive = call.attributes.integer("exclusive") != 0;
  const bool reverse = call.attributes.integer("reverse") != 0;
  for (size_t r = 0; r < x.rows(); ++r) {
    T sum{0};
    for (int64_t i = 0; i < x.classes; ++i) {
      const int64_t at = reverse ? x.classes - 1 - i : i;
      const T before = sum;
      sum = static_cast<T>(sum + x(r, at));
      y(r, at) = exclusive ? before : sum;
    }
  }
}

/// The first of equal elements, or the last.
template <typename T>
void arg(const KernelCall& call, Buffers operands) {
  const bool smallest = call.kernel == "ArgMin";
  const bool last = call.attributes.integer("select_last_index", 0) != 0;
  const ClassRows<T> x(call.operands[0], operands[0], axis_of(call));
  const RowVector<int64_t> y(call.operands[1], operands[1]);  // an axis of 1 changes no order of rows
  for (size_t r = 0; r < x.rows(); ++r) {
    int64_t best = 0;
    for (int64_t i = 1; i < x.classes; ++i) {
      const bool better = smallest ? x(r, i) < x(r, best) : x(r, i) > x(r, best);
      if (better || (last && x(r, i) == x(r, best))) best = i;
    }
    y[r] = best;
  }
}

/// The k largest (or smallest) in order; of equal ones the first.
template <typename T>
void top_k(const KernelCall& call, Buffers operands) {
  const int axis = axis_of(call);
  const ClassRows<T> x(call.operands[0], operands[0], axis), values(call.operands[1], operands[1], axis);
  const ClassRows<int64_t> indices(call.operands[2], operands[2], axis);
  const bool largest = call.attributes.integer("largest") != 0;
  const int64_t k = call.attributes.integer("k");
  std::vector<int64_t> order(static_cast<size_t>(x.classes));
  for (size_t r = 0; r < x.rows(); ++r) {
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int64_t a, int64_t b) {
      if (x(r, a) != x(r, b)) return largest ? x(r, a) > x(r, b) : x(r, a) < x(r, b);
      return a < b;
    });
    for (int64_t i = 0; i < k; ++i) {
      const int64_t at = order[static_cast<size_t>(i)];
      values(r, i) = x(r, at);
      indices(r, i) = at;
    }
  }
}

/// An index out of range has no class, as ONNX says.
template <typename T>
void one_hot(const KernelCall& call, Buffers operands) {
  const Operand& x = call.operands[0];
  const std::vector<int64_t> at = row_offsets(x, -1);
  const ClassRows<T> y(call.operands[1], operands[1], axis_of(call));
  const auto off = static_cast<T>(call.attributes.real("off")),
             on = static_cast<T>(call.attributes.real("on"));
  const int64_t depth = call.attributes.integer("depth"), offset = call.attributes.integer("offset");
  for (size_t r = 0; r < y.rows(); ++r) {
    int64_t hot = x.dtype == DType::i64 ? static_cast<const int64_t*>(operands[0])[at[r]]
                                        : int64_t{static_cast<const int32_t*>(operands[0])[at[r]]};
    if (hot < 0) hot += depth;
    for (int64_t c = 0; c < y.classes; ++c) y(r, c) = c + offset == hot ? on : off;
  }
}

/// A kernel of any type, which is that of operand `of`.
#define FF_ANY(function, of)                                                                             \
  void any_##function(const KernelCall& call, Buffers operands) {                                        \
    with_element(call.operands[of].dtype, [&](auto zero) { function<decltype(zero)>(call, operands); }); \
  }
FF_ANY(cumsum, 0)
FF_ANY(arg, 0)
FF_ANY(top_k, 0)
FF_ANY(one_hot, 1)
#undef FF_ANY

}  // namespace

void register_along_axis(Registry& registry) {
  registry.add_any("CumSum", make_loop_kernel<any_cumsum>);
  registry.add_any("ArgMax", make_loop_kernel<any_arg>);
  registry.add_any("ArgMin", make_loop_kernel<any_arg>);
  registry.add_any("TopK", make_loop_kernel<any_top_k>);
  registry.add_any("OneHot", make_loop_kernel<any_one_hot>);
}

}  // namespace ff::cpu
