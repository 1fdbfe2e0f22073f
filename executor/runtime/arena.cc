#include "executor/runtime/arena.h"

#include <sys/mman.h>

#include <cstring>

#include "compiler/base/check.h"
#include "compiler/base/units.h"

namespace ff {
namespace {
constexpr int64_t kHugePage = 2 << 20;
}

Arena::Arena(int64_t bytes, bool fill_nan) : bytes_(bytes) {
  if (bytes == 0) return;
  void* const data =
      ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw RunError("no memory for a region of " + format_bytes(bytes));
  if (bytes >= kHugePage) ::madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  data_ = static_cast<std::byte*>(data);
  // All bits set: a NaN in every floating-point type, -1 in integers.
  if (fill_nan) std::memset(data, 0xFF, static_cast<size_t>(bytes));
}

Arena::~Arena() {
  if (data_ != nullptr && !abandoned_) ::munmap(data_, static_cast<size_t>(bytes_));
}

}  // namespace ff
