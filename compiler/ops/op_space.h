// An op is an iteration space. A task is a cell of it. What a cell reads and writes are boxes, given by
// access maps.
//
// Conv2d of 64 images 3x224x224 to 64 channels, kernel 7, stride 2, padding 3, in the one-line text form:
//
//   Conv(n:S=64, co:P=64, h:A=112, w:A=112, ci:C=3) [n, ci, 2h-3+7, 2w-3+7], [co, ci, :, :], [co]@ci -> [n,
//   co, h, w]
//
// Dimension h of a cell's block [28, 56) reads rows [2*28-3, 2*55-3+7) = [53, 114) of the input: halos fall
// out of the map. `ci` is in no axis of the output: the output is a sum over it, and a split leaves partial
// sums. `:` is the whole axis.
// `[co]@ci`: read only by cells whose block of ci is the first (a bias is added once).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/box.h"

namespace ff {

/// Sample, attribute and parameter dimensions appear in the output; a contracted one is summed over.
enum class Role : uint8_t { sample, attribute, parameter, contracted };

struct IterDim {
  std::string name;
  Role role = Role::attribute;
  int64_t extent = 1;
  int64_t max_degree = 1;  // 1: this dimension may not be split

  friend bool operator==(const IterDim&, const IterDim&) = default;
};

/// From a block [lo, hi) of iteration dimension `dim` to the range [lo*stride + offset, (hi-1)*stride +
/// offset + span) of a tensor axis, clipped to the axis. `dim` -1: the whole axis, whatever the cell.
struct AxisMap {
  int dim = -1;
  int64_t stride = 1;
  int64_t offset = 0;
  int64_t span = 1;

  static AxisMap whole() { return {}; }
  static AxisMap identity(int dim) { return {.dim = dim}; }
  /// Blocks of `factor` elements: axis extent = factor * dimension extent (reshape, groups).
  static AxisMap blocks(int dim, int64_t factor) {
    return {.dim = dim, .stride = factor, .offset = 0, .span = factor};
  }
  friend bool operator==(const AxisMap&, const AxisMap&) = default;
};

enum class Combiner : uint8_t { sum, max };

struct AccessMap {
  std::vector<AxisMap> axes;
  Combiner combiner = Combiner::sum;  // outputs: over the dimensions that no axis has
  int first_block_of = -1;            // inputs: only cells in the first block of this dimension read it

  friend bool operator==(const AccessMap&, const AccessMap&) = default;
};

struct OpSpace {
  std::vector<IterDim> dims;
  std::vector<AccessMap> inputs;   // as the op's inputs; an absent input has a map without axes
  std::vector<AccessMap> outputs;  // as the op's outputs

  int dim_index(std::string_view name) const;  // -1 if there is none
  friend bool operator==(const OpSpace&, const OpSpace&) = default;
};

/// The range of one axis that a block touches, not clipped: what a window would read with its padding.
inline Range unclipped(const AxisMap& map, Range block) {
  return {block.lo * map.stride + map.offset, (block.hi - 1) * map.stride + map.offset + map.span};
}

/// The box of a tensor of `shape` that a cell (one range an iteration dimension) reads or writes. An empty
/// block, or a cell that skips this operand (`first_block_of`), gives an empty box.
Box region(const AccessMap& map, const Shape& shape, std::span<const Range> cell);

/// Prints and parses the text form. `type` is the op's. Parsing needs no shapes; throws UserError with the
/// position.
std::string to_text(std::string_view type, const OpSpace& space);
OpSpace parse_space(std::string_view text, std::string* type = nullptr);

}  // namespace ff
