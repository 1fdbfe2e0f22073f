// Pooling in plain loops.
#include <algorithm>
#include <cmath>
#include <limits>

#include "executor/kernels/cpu/image.h"
#include "executor/kernels/cpu/registry.h"

namespace ff::cpu {
namespace reference {
namespace {

Window pool_window(const KernelCall& call) {
  return Window(call.attributes, call.attributes.ints("kernel_shape"));
}

template <typename T, typename Body>
void for_each_element(const Image<T>& image, Body&& body) {
  for (int64_t n = 0; n < image.n; ++n) {
    for (int64_t c = 0; c < image.c; ++c)
      for_each_point(image.size, [&](const Spatial& p) { body(n, c, p); });
  }
}

/// Elements of the window of `out` that the average counts: those in rows [count_begin, count_end) of every
/// axis.
int64_t counted(const KernelCall& call, const Window& window, const Spatial& out) {
  const Ints& begin = call.attributes.ints("count_begin");
  const Ints& end = call.attributes.ints("count_end");
  const size_t missing = 3 - begin.size();
  int64_t count = 0;
  for_each_point(window.kernel, [&](const Spatial& k) {
    const Spatial in = window.input(out, k);
    bool inside = true;
    for (size_t a = missing; a < 3; ++a)
      inside = inside && in[a] >= begin[a - missing] && in[a] < end[a - missing];
    count += inside;
  });
  return count;
}

}  // namespace

template <typename T>
void max_pool(const KernelCall& call, std::span<void* const> operands) {
  const Image<T> x(call.operands[0], operands[0]), y(call.operands[1], operands[1]);
  const bool keep = operands.size() > 2 && operands[2] != nullptr;
  const Image<int32_t> index(call.operands[1], keep ? operands[2] : nullptr);
  const Window window = pool_window(call);
  for_each_element(y, [&](int64_t n, int64_t c, const Spatial& out) {
    T best = -std::numeric_limits<T>::infinity();
    int32_t where = -1, tap = 0;
    for_each_point(window.kernel, [&](const Spatial& k) {
      const Spatial in = window.input(out, k);
      if (x.contains(in)) {
        const T value = x.at(n, c, in);
        if (where < 0 || value > best || value != value) best = value, where = tap;  // a NaN wins
      }
      ++tap;
    });
    y.at(n, c, out) = best;
    if (keep) index.at(n, c, out) = where;
  });
}

template <typename T>
void max_pool_grad(const KernelCall& call, std::span<void* const> operands) {
  const Image<T> dy(call.operands[0], operands[0]), dx(call.operands[2], operands[2]);
  const Image<int32_t> index(call.operands[1], operands[1]);
  const Window window = pool_window(call);
  std::fill_n(dx.data, dx.elements(), T(0));
  for_each_element(dy, [&](int64_t n, int64_t c, const Spatial& out) {
    const int64_t tap = index.at(n, c, out);
    if (tap < 0) return;  // a window of padding alone
    const Spatial k{tap / (window.kernel[1] * window.kernel[2]), tap / window.kernel[2] % window.kernel[1],
                    tap % window.kernel[2]};
    const Spatial in = window.input(out, k);
    if (dx.contains(in)) dx.at(n, c, in) += dy.at(n, c, out);
  });
}

template <typename T>
void average_pool(const KernelCall& call, std::span<void* const> operands) {
  const Image<T> x(call.operands[0], operands[0]), y(call.operands[1], operands[1]);
  const Window window = pool_window(call);
  for_each_element(y, [&](int64_t n, int64_t c, const Spatial& out) {
    T sum = 0;
    for_each_point(window.kernel, [&](const Spatial& k) {
      const Spatial in = window.input(out, k);
      if (x.contains(in)) sum += x.at(n, c, in);
    });
    y.at(n, c, out) = sum / static_cast<T>(std::max<int64_t>(1, counted(call, window, out)));
  });
}

template <typename T>
void average_pool_grad(const KernelCall& call, std::span<void* const> operands) {
  const Image<T> dy(call.operands[0], operands[0]), dx(call.operands[1], operands[1]);
  const Window window = pool_window(call);
  std::fill_n(dx.data, dx.elements(), T(0));
  for_each_element(dy, [&](int64_t n, int64_t c, const Spatial& out) {
    const T share = dy.at(n, c, out) / static_cast<T>(std::max<int64_t>(1, counted(call, window, out)));
    for_each_point(window.kernel, [&](const Spatial& k) {
      const Spatial in = window.input(out, k);
      if (dx.contains(in)) dx.at(n, c, in) += share;
    });
  });
}

template <typename T>
void global_average_pool(const KernelCall& call, std::span<void* const> operands) {
  const Image<T> x(call.operands[0], operands[0]), y(call.operands[1], operands[1]);
  const T scale = static_cast<T>(call.attributes.real("scale"));
  for_each_element(y, [&](int64_t n, int64_t c, const Spatial& one) {
    T sum = 0;
    for_each_point(x.size, [&](const Spatial& p) { sum += x.at(n, c, p); });
    y.at(n, c, one) = sum * scale;
  });
}

template <typename T>
void global_average_pool_grad(const KernelCall& call, std::span<void* const> operands) {
  const Image<T> dy(call.operands[0], operands[0]), dx(call.operands[1], operands[1]);
  const T scale = static_cast<T>(call.attributes.real("scale"));
  for_each_element(dx, [&](int64_t n, int64_t c, const Spatial& p) {
    dx.at(n, c, p) = dy.at(n, c, {0, 0, 0}) * scale;
  });
}

namespace {

/// |value|^p for a whole p >= 0.
template <typename T>
T power(T value, int64_t p) {
  T out = 1;
  for (int64_t i = 0; i < p; ++i) out *= std::abs(value);
  return out;
}

/// y = (sum of |x|^p)^(1/p).
template <typename T>
void lp_pool(const KernelCall& call, std::span<void* const> operands) {
  const Image<T> x(call.operands[0], operands[0]), y(call.operands[1], operands[1]);
  const Window window = pool_window(call);
  const int64_t p = call.attributes.integer("p");
  for_each_element(y, [&](int64_t n, int64_t c, const Spatial& out) {
    T sum = 0;
    for_each_point(window.kernel, [&](const Spatial& k) {
      const Spatial in = window.input(out, k);
      if (x.contains(in)) sum += power(x.at(n, c, in), p);
    });
    y.at(n, c, out) = p == 1 ? sum : p == 2 ? std::sqrt(sum) : std::pow(sum, T(1) / static_cast<T>(p));
  });
}

/// dx = dy sign(x) (|x| / y)^(p-1); 0 where all of the window is 0.
template <typename T>
void lp_pool_grad(const KernelCall& call, std::span<void* const> operands) {
  const Image<T> x(call.operands[0], operands[0]), y(call.operands[1], operands[1]),
      dy(call.operands[2], operands[2]), dx(call.operands[3], operands[3]);
  const Window window = pool_window(call);
  const int64_t p = call.attributes.integer("p");
  std::fill_n(dx.data, dx.elements(), T(0));
  for_each_element(y, [&](int64_t n, int64_t c, const Spatial& out) {
    const T norm = y.at(n, c, out), arriving = dy.at(n, c, out);
    if (norm == T(0)) return;
    for_each_point(window.kernel, [&](const Spatial& k) {
      const Spatial in = window.input(out, k);
      if (!dx.contains(in)) return;
      const T value = x.at(n, c, in);
      const T slope = power(value / norm, p - 1);
      dx.at(n, c, in) += arriving * (value > T(0) ? slope : value < T(0) ? -slope : T(0));
    });
  });
}

}  // namespace
}  // namespace reference

void register_reference_pool(Registry& registry) {
  using namespace reference;
  registry.add_reference("MaxPool", make_loop_kernel<max_pool<float>>, make_loop_kernel<max_pool<double>>);
  registry.add_reference("MaxPoolGrad", make_loop_kernel<max_pool_grad<float>>,
                         make_loop_kernel<max_pool_grad<double>>);
  registry.add_reference("AveragePool", make_loop_kernel<average_pool<float>>,
                         make_loop_kernel<average_pool<double>>);
  registry.add_reference("AveragePoolGrad", make_loop_kernel<average_pool_grad<float>>,
                         make_loop_kernel<average_pool_grad<double>>);
  registry.add_reference("LpPool", make_loop_kernel<lp_pool<float>>, make_loop_kernel<lp_pool<double>>);
  registry.add_reference("LpPoolGrad", make_loop_kernel<lp_pool_grad<float>>,
                         make_loop_kernel<lp_pool_grad<double>>);
  registry.add_reference("GlobalAveragePool", make_loop_kernel<global_average_pool<float>>,
                         make_loop_kernel<global_average_pool<double>>);
  registry.add_reference("GlobalAveragePoolGrad", make_loop_kernel<global_average_pool_grad<float>>,
                         make_loop_kernel<global_average_pool_grad<double>>);
}

}  // namespace ff::cpu
