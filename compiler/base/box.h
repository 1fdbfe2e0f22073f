// Boxes: half-open n-dimensional index ranges, the one shape of everything that is stored, computed or sent.
//
//   Box b({0, 2}, {4, 6});            // rows 0..3, columns 2..5: 16 elements
//   intersect(b, Box({2, 0}, {8, 4})) // rows 2..3, columns 2..3
//
// A scalar is a box of rank 0 with one element. A box is empty if any range is; empty boxes are legal values.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace ff {

using Shape = std::vector<int64_t>;

/// Largest rank of any tensor.
inline constexpr int kMaxRank = 8;

struct Range {
  int64_t lo = 0;
  int64_t hi = 0;

  int64_t size() const { return hi > lo ? hi - lo : 0; }
  bool empty() const { return hi <= lo; }
  friend bool operator==(Range, Range) = default;
  friend auto operator<=>(Range, Range) = default;
};

inline Range intersect(Range a, Range b) { return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)}; }

class Box {
 public:
  Box() = default;  // a scalar
  Box(std::initializer_list<int64_t> lo, std::initializer_list<int64_t> hi);
  /// The whole of a tensor of this shape.
  static Box whole(const Shape& shape);
  static Box of_ranges(std::span<const Range> ranges);

  int rank() const { return rank_; }
  Range operator[](int axis) const { return ranges_[static_cast<size_t>(axis)]; }
  void set(int axis, Range r) { ranges_[static_cast<size_t>(axis)] = r; }
  void push_back(Range r);
  Shape shape() const;
  /// Number of elements; 1 for a scalar, 0 for an empty box.
  int64_t volume() const;
  bool empty() const { return volume() == 0; }
  /// Whether every element of `inner` is in this box. An empty box is inside everything.
  bool contains(const Box& inner) const;

  friend bool operator==(const Box& a, const Box& b) {
    return a.rank_ == b.rank_ &&
           std::equal(a.ranges_.begin(), a.ranges_.begin() + a.rank_, b.ranges_.begin());
  }
  friend std::strong_ordering operator<=>(const Box& a, const Box& b);
  /// "[0:4,2:6]"; a scalar is "[]".
  friend std::ostream& operator<<(std::ostream& out, const Box& box);

 private:
  int rank_ = 0;
  std::array<Range, kMaxRank> ranges_{};
};

/// The common part of two boxes of one rank; empty if there is none.
Box intersect(const Box& a, const Box& b);
std::string to_string(const Box& box);
/// `a` without `b`: at most 2 * rank disjoint boxes, appended to `out`.
void subtract(const Box& a, const Box& b, std::vector<Box>& out);

/// Block `i` of `degree` blocks of an extent: boundaries at floor(i * extent / degree), so that a degree and
/// its multiples share cuts and sizes differ by at most one.
inline Range block(int64_t extent, int64_t degree, int64_t i) {
  return {i * extent / degree, (i + 1) * extent / degree};
}

int64_t volume(const Shape& shape);
/// "2x3x4"; a scalar is "scalar".
std::string to_string(const Shape& shape);

}  // namespace ff
