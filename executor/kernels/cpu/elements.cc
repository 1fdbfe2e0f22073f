// GatherElements, ScatterElements, GatherND, ScatterND and their gradients. `offset` is where the cell's part
// of the indexed axis begins, `limit` how long the whole is.

#include <algorithm>
#include <string>

#include "executor/kernels/cpu/dispatch.h"
#include "executor/kernels/cpu/indices.h"
#include "executor/kernels/cpu/moves.h"
#include "executor/kernels/cpu/registry.h"
#include "executor/kernels/cpu/strides.h"

namespace ff::cpu {
namespace {

using Buffers = std::span<void* const>;

/// Calls body(place in the data or -1 where the cell lacks it, place beside the index) for every index.
template <typename Body>
void for_each_along(const KernelCall& call, Buffers operands, size_t indices, size_t data, size_t beside,
                    Body&& body) {
  const Indices index(call, indices);
  const auto axis = static_cast<size_t>(call.attributes.integer("axis"));
  const Operand& x = call.operands[data];
  const Shape& shape = call.operands[indices].shape;
  const auto fill = [&](const Shape& from) {
    std::array<int64_t, kMaxRank> to{};
    std::copy(from.begin(), from.end(), to.begin());
    return to;
  };
  std::array<std::array<int64_t, kMaxRank>, 3> strides{
      fill(dense_strides(shape, Layout::row_major)), fill(dense_strides(x.shape, x.layout)),
      fill(dense_strides(call.operands[beside].shape, call.operands[beside].layout))};
  const int64_t step = strides[1][axis], first = call.attributes.integer("offset"), count = x.shape[axis];
  strides[1][axis] = 0;
  for_each_element(shape, strides, [&](const std::array<int64_t, 3>& at) {
    const int64_t own = index.get(operands[indices], static_cast<size_t>(at[0])) - first;
    body(own >= 0 && own < count ? at[1] + own * step : -1, at[2]);
  });
}

template <typename T>
void gather_elements(const KernelCall& call, Buffers operands) {
  const T* x = static_cast<const T*>(operands[0]);
  T* y = static_cast<T*>(operands[2]);
  for_each_along(call, operands, 1, 0, 2,
                 [&](int64_t from, int64_t to) { y[to] = from < 0 ? T(0) : x[from]; });
}

template <typename T>
void gather_elements_grad(const KernelCall& call, Buffers operands) {
  const T* dy = static_cast<const T*>(operands[1]);
  T* dx = static_cast<T*>(operands[2]);
  std::fill_n(dx, volume(call.operands[2].shape), T(0));
  for_each_along(call, operands, 0, 2, 1, [&](int64_t to, int64_t from) {
    if (to >= 0) dx[to] += dy[from];
  });
}

/// How an update meets what is there.
template <typename T>
void meet(const std::string& reduction, T& there, T update) {
  if (reduction == "none") {
    there = update;
  } else if (reduction == "add") {
    there = static_cast<T>(there + update);
  } else if (reduction == "mul") {
    there = static_cast<T>(there * update);
  } else if (reduction == "max") {
    there = std::max(there, update);
  } else {
    FF_CHECK_EQ(reduction, "min");
    there = std::min(there, update);
  }
}

void copy_all(const KernelCall& call, Buffers operands, size_t from, size_t to) {
  const Operand& x = call.operands[from];
  const Operand& y = call.operands[to];
  move(operands[from], dense_strides(x.shape, x.layout), operands[to], dense_strides(y.shape, y.layout),
       x.shape, size_of(x.dtype));
}

template <typename T>
void scatter_elements(const KernelCall& call, Buffers operands) {
  copy_all(call, operands, 0, 3);
  if (operands[1] == nullptr) return;
  const std::string reduction = call.attributes.string("reduction", "none");
  const T* updates = static_cast<const T*>(operands[2]);
  T* y = static_cast<T*>(operands[3]);
  for_each_along(call, operands, 1, 3, 2, [&](int64_t to, int64_t from) {
    if (to >= 0) meet(reduction, y[to], updates[from]);
  });
}

template <typename T>
void scatter_elements_grad(const KernelCall& call, Buffers operands) {
  copy_all(call, operands, 1, 2);
  if (operands[0] == nullptr) return;
  T* dx = static_cast<T*>(operands[2]);
  for_each_along(call, operands, 0, 2, 0, [&](int64_t to, int64_t) {
    if (to >= 0) dx[to] = T(0);
  });
}

/// Calls body(place in the data, place beside the tuple) for every element of every slice that a tuple of
/// indices names; tuples of other cells' parts are left out. `beside` may be the indices: then its place
/// means nothing.
template <typename Body>
void for_each_tuple(const KernelCall& call, Buffers operands, size_t indices, size_t data, size_t beside,
                    Body&& body) {
  const Shape& tuples = call.operands[indices].shape;
  const Operand& x = call.operands[data];
  const auto depth = static_cast<size_t>(tuples.back());
  const auto batch = static_cast<size_t>(call.attributes.integer("batch_dims", 0));
  const Indices index(call, indices, 0);
  const Shape strides = dense_strides(x.shape, x.layout);
  const int64_t first = call.attributes.integer("offset", 0);
  const auto limit = [&](size_t d) {
    return d == 0 && call.attributes.has("limit") ? call.attributes.integer("limit") : x.shape[batch + d];
  };
  const auto x_batch = axis_offsets(x, 0, batch), x_inner = axis_offsets(x, batch + depth, x.shape.size());
  const Operand& other = call.operands[beside];
  const bool has_place = beside != indices;
  const auto outer = axis_offsets(other, 0, tuples.size() - 1);
  const auto inner = has_place ? axis_offsets(other, tuples.size() - 1, other.shape.size()) : x_inner;
  const size_t a_batch = outer.size() / x_batch.size();
  for (size_t n = 0; n < outer.size(); ++n) {
    int64_t at = x_batch[n / a_batch];
    bool own = true;
    for (size_t d = 0; d < depth; ++d) {
      int64_t entry = index.get(operands[indices], n * depth + d, limit(d));
      if (d == 0) {
        entry -= first;
        own = entry >= 0 && entry < x.shape[batch];
      }
      at += entry * strides[batch + d];
    }
    for (size_t e = 0; own && e < x_inner.size(); ++e) body(at + x_inner[e], outer[n] + inner[e]);
  }
}

template <typename T>
void gather_nd(const KernelCall& call, Buffers operands) {
  const T* x = static_cast<const T*>(operands[0]);
  T* y = static_cast<T*>(operands[2]);
  for_each_tuple(call, operands, 1, 0, 2, [&](int64_t from, int64_t to) { y[to] = x[from]; });
}

template <typename T>
void gather_nd_grad(const KernelCall& call, Buffers operands) {
  const T* dy = static_cast<const T*>(operands[1]);
  T* dx = static_cast<T*>(operands[2]);
  std::fill_n(dx, volume(call.operands[2].shape), T(0));
  for_each_tuple(call, operands, 0, 2, 1, [&](int64_t to, int64_t from) { dx[to] += dy[from]; });
}

template <typename T>
void scatter_nd(const KernelCall& call, Buffers operands) {
  copy_all(call, operands, 0, 3);
  const std::string reduction = call.attributes.string("reduction", "none");
  const T* updates = static_cast<const T*>(operands[2]);
  T* y = static_cast<T*>(operands[3]);
  for_each_tuple(call, operands, 1, 3, 2,
                 [&](int64_t to, int64_t from) { meet(reduction, y[to], updates[from]); });
}

template <typename T>
void scatter_nd_grad(const KernelCall& call, Buffers operands) {
  copy_all(call, operands, 1, 2);
  T* dx = static_cast<T*>(operands[2]);
  for_each_tuple(call, operands, 0, 2, 0, [&](int64_t to, int64_t) { dx[to] = T(0); });
}

/// A kernel of any type, which is that of its last operand.
#define FF_ANY(function)                                                                                    \
  void any_##function(const KernelCall& call, Buffers operands) {                                           \
    with_element(call.operands.back().dtype, [&](auto zero) { function<decltype(zero)>(call, operands); }); \
  }
FF_ANY(gather_elements)
FF_ANY(gather_elements_grad)
FF_ANY(scatter_elements)
FF_ANY(scatter_elements_grad)
FF_ANY(gather_nd)
FF_ANY(gather_nd_grad)
FF_ANY(scatter_nd)
FF_ANY(scatter_nd_grad)
#undef FF_ANY

}  // namespace

void register_elements(Registry& registry) {
  registry.add_any("GatherElements", make_loop_kernel<any_gather_elements>);
  registry.add_any("GatherElementsGrad", make_loop_kernel<any_gather_elements_grad>);
  registry.add_any("ScatterElements", make_loop_kernel<any_scatter_elements>);
  registry.add_any("ScatterElementsGrad", make_loop_kernel<any_scatter_elements_grad>);
  registry.add_any("GatherND", make_loop_kernel<any_gather_nd>);
  registry.add_any("GatherNDGrad", make_loop_kernel<any_gather_nd_grad>);
  registry.add_any("ScatterND", make_loop_kernel<any_scatter_nd>);
  registry.add_any("ScatterNDGrad", make_loop_kernel<any_scatter_nd_grad>);
}

}  // namespace ff::cpu
