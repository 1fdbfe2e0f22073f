#include "executor/comm/reduce.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include "compiler/base/check.h"

namespace ff {
namespace {

template <typename T>
struct Sum {
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;  // wraps around instead of being undefined
      return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    } else {
      return a + b;
    }
  }
};

template <typename T>
struct Max {
  T operator()(T a, T b) const { return b > a || b != b ? b : a; }
};

/// Elements that are worked on at a time, so that partial results stay in the first-level cache.
constexpr int64_t kBlock = 1024;

template <typename T, typename Op>
void reduce_typed(std::span<const void* const> parts, void* out, int64_t count) {
  const Op op;
  T acc[kBlock];
  for (int64_t start = 0; start < count; start += kBlock) {
    const int64_t n = std::min(kBlock, count - start);
    std::memcpy(acc, static_cast<const T*>(parts[0]) + start, static_cast<size_t>(n) * sizeof(T));
    for (const void* part : parts.subspan(1)) {
      const T* x = static_cast<const T*>(part) + start;
      for (int64_t i = 0; i < n; ++i) acc[i] = op(acc[i], x[i]);
    }
    std::memcpy(static_cast<T*>(out) + start, acc, static_cast<size_t>(n) * sizeof(T));
  }
}

template <typename T>
void reduce_by(ReduceOp op, std::span<const void* const> parts, void* out, int64_t count) {
  if (op == ReduceOp::sum) {
    reduce_typed<T, Sum<T>>(parts, out, count);
  } else {
    reduce_typed<T, Max<T>>(parts, out, count);
  }
}

}  // namespace

void check_reducible(DType type) {
  if (type == DType::f64 || type == DType::f32 || type == DType::i64 || type == DType::i32) return;
  throw UserError(
      "a reduction between CPU ranks of " + std::string(name(type)) + " elements is not supported",
      "f64, f32, i64 and i32 are");
}

void reduce_parts(std::span<const void* const> parts, DType type, ReduceOp op, void* out, int64_t count) {
  check_reducible(type);
  if (count == 0) return;
  FF_CHECK(!parts.empty());
  switch (type) {
    case DType::f64:
      return reduce_by<double>(op, parts, out, count);
    case DType::f32:
      return reduce_by<float>(op, parts, out, count);
    case DType::i64:
      return reduce_by<int64_t>(op, parts, out, count);
    default:
      return reduce_by<int32_t>(op, parts, out, count);
  }
}

}  // namespace ff
