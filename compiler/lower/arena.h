// Static memory: offsets for buffers whose lifetimes are known.
#pragma once

#include <cstdint>
#include <vector>

namespace ff {

struct ArenaRequest {
  int64_t bytes = 0;
  int32_t first = 0;  // places of the program between which the buffer lives, both included
  int32_t last = 0;
  int64_t offset = 0;  // the answer; a multiple of 64
};

/// Sets the offsets so that buffers alive at one time do not overlap; returns the arena's size. Largest
/// first, each at the lowest place that is free during its life.
int64_t plan_arena(std::vector<ArenaRequest>& requests);

}  // namespace ff
