// One axis of a resized image: which elements of the input an element of the result is made of. The op table
// asks to see whether the axis can be cut, the kernels to compute.
//
//   Linear, 2 elements to 4, half_pixel: element o stands at (o + 0.5) * 2 / 4 - 0.5 of the input.
//   Element 2 stands at 0.75: a quarter of element 0 and three quarters of element 1. Element 0 stands at
//   -0.25: all of element 0.
//
// Attributes, of which those in the plural have a value for each spatial axis:
//
//   mode            nearest, linear or cubic
//   rounding        of nearest: floor, ceil, round_prefer_floor or round_prefer_ceil
//   result_shift    s in (o + s) * from / to - shift, where element o stands
//   from, to, shifts
//   coefficient     of cubic: the a of Keys' kernel
//   exclude_outside of cubic: 1: elements past the border count for nothing, not as the border's
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "compiler/base/attributes.h"

namespace ff {

struct ResizeTap {
  int64_t element = 0;
  double weight = 1;
};

class ResizeAxis {
 public:
  /// `extent`: the input's elements.
  ResizeAxis(const Attributes& attributes, size_t axis, int64_t extent)
      : mode_(attributes.string("mode")),
        rounding_(attributes.string("rounding")),
        result_shift_(attributes.real("result_shift")),
        from_(attributes.reals("from").at(axis)),
        to_(attributes.reals("to").at(axis)),
        shift_(attributes.reals("shifts").at(axis)),
        coefficient_(attributes.real("coefficient")),
        exclude_outside_(attributes.integer("exclude_outside") != 0),
        extent_(extent) {}

  /// What element `o` of the result is the sum of.
  std::vector<ResizeTap> taps(int64_t o) const {
    const double place = (static_cast<double>(o) + result_shift_) * from_ / to_ - shift_;
    if (mode_ == "nearest") return {{clamped(rounded(place)), 1}};
    const double before = std::floor(place), rest = place - before;
    const auto first = static_cast<int64_t>(before);
    if (mode_ == "linear") return {{clamped(first), 1 - rest}, {clamped(first + 1), rest}};
    return cubic(first, rest);
  }

 private:
  int64_t clamped(int64_t element) const { return std::clamp<int64_t>(element, 0, extent_ - 1); }

  int64_t rounded(double place) const {
    if (rounding_ == "ceil") return static_cast<int64_t>(std::ceil(place));
    if (rounding_ == "round_prefer_floor") return static_cast<int64_t>(std::ceil(place - 0.5));
    if (rounding_ == "round_prefer_ceil") return static_cast<int64_t>(std::floor(place + 0.5));
    return static_cast<int64_t>(std::floor(place));
  }

  /// Keys, "Cubic convolution interpolation for digital image processing" (1981), equation 4, at distance d.
  double keys(double d) const {
    const double a = coefficient_;
    return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  }

  std::vector<ResizeTap> cubic(int64_t first, double rest) const {
    std::vector<ResizeTap> out{{first - 1, keys(1 + rest)},
                               {first, keys(rest)},
                               {first + 1, keys(1 - rest)},
                               {first + 2, keys(2 - rest)}};
    double inside = 0;
    for (ResizeTap& tap : out) {
      if (exclude_outside_ && (tap.element < 0 || tap.element >= extent_)) tap.weight = 0;
      inside += tap.weight;
      tap.element = clamped(tap.element);
    }
    for (ResizeTap& tap : out) tap.weight /= exclude_outside_ ? inside : 1;
    return out;
  }

  std::string mode_, rounding_;
  double result_shift_, from_, to_, shift_, coefficient_;
  bool exclude_outside_;
  int64_t extent_;
};

}  // namespace ff
