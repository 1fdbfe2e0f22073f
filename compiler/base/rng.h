// Seeded random numbers. `Rng` is a sequence for searches and tests; `counter_random` is keyed by a global
// element index, so that what it gives (initial weights, dropout masks) does not depend on how a tensor is
// split.
#pragma once

#include <cstdint>

namespace ff {

/// SplitMix64's finaliser: a bijection of 64 bits whose outputs pass BigCrush on counters
/// (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
constexpr uint64_t mix64(uint64_t z) {
  z += 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

/// Random bits of element `index` of stream `stream` under `seed`.
constexpr uint64_t counter_random(uint64_t seed, uint64_t stream, uint64_t index) {
  return mix64(mix64(mix64(seed) ^ stream) ^ index);
}

__extension__ typedef unsigned __int128 uint128;

/// Uniform in [0, n) from random bits; n > 0.
constexpr int64_t to_below(uint64_t bits, int64_t n) {
  return static_cast<int64_t>((static_cast<uint128>(bits) * static_cast<uint64_t>(n)) >> 64);
}

/// Uniform in [0, 1) with 53 bits.
constexpr double to_unit(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1.0p-53; }

/// A seeded sequence. The same seed gives the same numbers on every platform (unlike <random>'s
/// distributions).
class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(mix64(seed)) {}
  uint64_t next() { return mix64(state_++); }
  /// Uniform in [0, n); n > 0.
  int64_t below(int64_t n) { return to_below(next(), n); }
  /// Uniform in [0, 1).
  double uniform() { return to_unit(next()); }

 private:
  uint64_t state_;
};

}  // namespace ff
