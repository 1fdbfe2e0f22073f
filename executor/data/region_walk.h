// The order in which a region's buffer is filled: runs along its innermost axis.
//
//   walk_region(region, rank, [&](const RegionPoint& at, int inner, Range run, int64_t offset) { ... });
// calls back once a run: `at` holds the global index of the run's first element, `inner` the axis it runs
// along, `run` its range on that axis, and `offset` its first element's place in the buffer.
#pragma once

#include <array>

#include "executor/data/input_source.h"

namespace ff {

using RegionPoint = std::array<int64_t, kMaxRank>;

/// The region's axes from outermost to innermost.
std::vector<int> storage_order(const InputRegion& region);

template <typename F>
void walk_region(const InputRegion& region, F&& run) {
  const Box& box = region.box;
  const int rank = box.rank();
  if (box.empty()) return;
  RegionPoint at{};
  if (rank == 0) {
    run(at, 0, Range{0, 1}, int64_t{0});
    return;
  }
  const std::vector<int> order = storage_order(region);
  for (int axis = 0; axis < rank; ++axis) at[static_cast<size_t>(axis)] = box[axis].lo;
  const int inner = order.back();
  for (int64_t offset = 0;; offset += box[inner].size()) {
    run(at, inner, box[inner], offset);
    int level = rank - 2;
    for (; level >= 0; --level) {
      const int axis = order[static_cast<size_t>(level)];
      if (++at[static_cast<size_t>(axis)] < box[axis].hi) break;
      at[static_cast<size_t>(axis)] = box[axis].lo;
    }
    if (level < 0) return;
  }
}

}  // namespace ff
