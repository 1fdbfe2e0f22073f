#include "compiler/ops/op_space.h"

#include <algorithm>

#include "compiler/base/check.h"

namespace ff {

int OpSpace::dim_index(std::string_view name) const {
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].name == name) return static_cast<int>(d);
  }
  return -1;
}

Box region(const AccessMap& map, const Shape& shape, std::span<const Range> cell) {
  Box box;
  const bool skipped = map.first_block_of >= 0 && cell[static_cast<size_t>(map.first_block_of)].lo != 0;
  bool empty = skipped;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    FF_CHECK_LT(axis, map.axes.size()) << "an access map lacks an axis of " << to_string(shape);
    const AxisMap& m = map.axes[axis];
    Range range{0, shape[axis]};
    if (m.dim >= 0) {
      const Range block = cell[static_cast<size_t>(m.dim)];
      empty |= block.empty();
      range = intersect(unclipped(m, block), range);
    }
    if (empty || range.empty()) range = {0, 0};
    box.push_back(range);
  }
  // A scalar has no range to empty: an operand that is skipped is an empty box of rank 1.
  if (empty && shape.empty()) box.push_back({0, 0});
  return box;
}

}  // namespace ff
