#include "compiler/lower/arena.h"

#include <algorithm>
#include <numeric>

namespace ff {

int64_t plan_arena(std::vector<ArenaRequest>& requests) {
  std::vector<size_t> by_size(requests.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](size_t a, size_t b) { return requests[a].bytes > requests[b].bytes; });
  std::vector<const ArenaRequest*> placed;  // by offset
  int64_t size = 0;
  for (size_t i : by_size) {
    ArenaRequest& request = requests[i];
    const int64_t bytes = (request.bytes + 63) / 64 * 64;
    int64_t offset = 0;
    for (const ArenaRequest* other : placed) {
      if (other->last < request.first || request.last < other->first) continue;
      if (offset + bytes <= other->offset) break;
      offset = std::max(offset, other->offset + (other->bytes + 63) / 64 * 64);
    }
    request.offset = offset;
    size = std::max(size, offset + bytes);
    const auto at = std::upper_bound(placed.begin(), placed.end(), offset,
                                     [](int64_t o, const ArenaRequest* r) { return o < r->offset; });
    placed.insert(at, &request);
  }
  return size;
}

}  // namespace ff
