// The data of the conformance suite, and what the ranks must have made of it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <vector>

#include "compiler/base/check.h"
#include "compiler/base/rng.h"
#include "executor/comm/communicator.h"

namespace ff {

using Ranks = std::vector<int>;
using Counts = std::vector<int64_t>;

/// Element i of what `rank` gives: of magnitudes from 2^-20 to 2^20, so that the order of a sum shows in its
/// bits.
template <typename T>
T element(int rank, int64_t i, uint64_t stream = 0) {
  const uint64_t bits = counter_random(stream, static_cast<uint64_t>(rank), static_cast<uint64_t>(i));
  if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<int64_t>(bits % 2001) - 1000);
  return static_cast<T>(std::ldexp(to_unit(bits) - 0.5, static_cast<int>(bits % 41) - 20));
}

template <typename T>
std::vector<T> elements(int rank, int64_t count, uint64_t stream = 0) {
  std::vector<T> data;
  for (int64_t i = 0; i < count; ++i) data.push_back(element<T>(rank, i, stream));
  return data;
}

/// The reduction as one thread would do it, member after member.
template <typename T>
std::vector<T> reduced(const Ranks& ranks, int64_t count, ReduceOp op, uint64_t stream = 0) {
  std::vector<T> result = elements<T>(ranks[0], count, stream);
  for (size_t m = 1; m < ranks.size(); ++m) {
    for (int64_t i = 0; i < count; ++i) {
      T& r = result[static_cast<size_t>(i)];
      const T x = element<T>(ranks[m], i, stream);
      r = op == ReduceOp::sum ? static_cast<T>(r + x) : std::max(r, x);
    }
  }
  return result;
}

template <typename T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  if constexpr (std::is_same_v<T, int64_t>) return DType::i64;
  return DType::i32;
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <typename T>
uint64_t checksum(const std::vector<T>& data) {
  uint64_t sum = 0;
  for (size_t i = 0; i < data.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, &data[i], sizeof(T));
    sum = mix64(sum ^ bits);
  }
  return sum;
}

inline Ranks all_ranks(const Communicator& comm) {
  Ranks ranks(static_cast<size_t>(comm.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

inline void wait_all(Communicator& comm, std::vector<Request>& requests) {
  for (Request& request : requests) {
    comm.wait(request);
    FF_CHECK(request.null() && comm.test(request));
  }
}

}  // namespace ff
