// Convolution in plain loops. The three kernels visit the same products and differ in which of the three
// tensors they add to.
#include <algorithm>

#include "executor/kernels/cpu/image.h"
#include "executor/kernels/cpu/registry.h"

namespace ff::cpu {
namespace reference {
namespace {

/// Calls body(x index holder...) for each product x[n, ci, in] * w[co, ci of the group, k] of y[n, co, out].
template <typename T, typename Body>
void for_each_product(const KernelCall& call, const Image<T>& x, const Image<T>& w, const Image<T>& y,
                      Body&& body) {
  const int64_t group = call.attributes.integer("group");
  const Window window(call.attributes, std::span(w.size).last(call.attributes.ints("strides").size()));
  const int64_t ci_of_group = x.c / group, co_of_group = y.c / group;
  for (int64_t n = 0; n < y.n; ++n) {
    for (int64_t co = 0; co < y.c; ++co) {
      const int64_t first = co / co_of_group * ci_of_group;
      for_each_point(y.size, [&](const Spatial& out) {
        T& y_element = y.at(n, co, out);
        for (int64_t ci = 0; ci < ci_of_group; ++ci) {
          for_each_point(w.size, [&](const Spatial& k) {
            const Spatial in = window.input(out, k);
            if (x.contains(in)) body(x.at(n, first + ci, in), w.at(co, ci, k), y_element);
          });
        }
      });
    }
  }
}

template <typename T>
void fill(const Image<T>& image, T value) {
  std::fill_n(image.data, image.elements(), value);
}

}  // namespace

template <typename T>
void conv(const KernelCall& call, std::span<void* const> operands) {
  const size_t last = operands.size() - 1;
  const Image<T> x(call.operands[0], operands[0]), w(call.operands[1], operands[1]),
      y(call.operands[last], operands[last]);
  const T* bias = last > 2 ? static_cast<const T*>(operands[2]) : nullptr;
  for (int64_t n = 0; n < y.n; ++n) {
    for (int64_t co = 0; co < y.c; ++co) {
      for_each_point(y.size, [&](const Spatial& out) { y.at(n, co, out) = bias ? bias[co] : T(0); });
    }
  }
  for_each_product<T>(call, x, w, y, [](const T& xe, const T& we, T& ye) { ye += xe * we; });
  if (call.attributes.integer("relu", 0) == 0) return;
  for (int64_t i = 0; i < y.elements(); ++i) y.data[i] = y.data[i] > T(0) ? y.data[i] : T(0);
}

template <typename T>
void conv_grad_data(const KernelCall& call, std::span<void* const> operands) {
  const Image<T> dy(call.operands[0], operands[0]), w(call.operands[1], operands[1]),
      dx(call.operands[2], operands[2]);
  fill(dx, T(0));
  for_each_product<T>(call, dx, w, dy, [](T& dxe, const T& we, const T& dye) { dxe += dye * we; });
}

template <typename T>
void conv_grad_weight(const KernelCall& call, std::span<void* const> operands) {
  const Image<T> x(call.operands[0], operands[0]), dy(call.operands[1], operands[1]),
      dw(call.operands[2], operands[2]);
  fill(dw, T(0));
  for_each_product<T>(call, x, dw, dy, [](const T& xe, T& dwe, const T& dye) { dwe += dye * xe; });
  T* db = operands.size() > 3 ? static_cast<T*>(operands[3]) : nullptr;
  if (db == nullptr) return;
  for (int64_t co = 0; co < dy.c; ++co) {
    T sum = 0;
    for (int64_t n = 0; n < dy.n; ++n)
      for_each_point(dy.size, [&](const Spatial& out) { sum += dy.at(n, co, out); });
    db[co] = sum;
  }
}

template void conv<float>(const KernelCall&, std::span<void* const>);
template void conv<double>(const KernelCall&, std::span<void* const>);
template void conv_grad_data<float>(const KernelCall&, std::span<void* const>);
template void conv_grad_data<double>(const KernelCall&, std::span<void* const>);
template void conv_grad_weight<float>(const KernelCall&, std::span<void* const>);
template void conv_grad_weight<double>(const KernelCall&, std::span<void* const>);

}  // namespace reference

void register_reference_conv(Registry& registry) {
  registry.add_reference("Conv", make_loop_kernel<reference::conv<float>>,
                         make_loop_kernel<reference::conv<double>>);
  registry.add_reference("ConvGradData", make_loop_kernel<reference::conv_grad_data<float>>,
                         make_loop_kernel<reference::conv_grad_data<double>>);
  registry.add_reference("ConvGradWeight", make_loop_kernel<reference::conv_grad_weight<float>>,
                         make_loop_kernel<reference::conv_grad_weight<double>>);
}

}  // namespace ff::cpu
