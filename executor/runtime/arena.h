// A region of a device's memory: exactly as many bytes as the plan says, taken once.
//
//   Arena scratch(program.scratch_bytes, /*fill_nan=*/true);   // tests: an unwritten byte is a NaN
//   float* x = static_cast<float*>(scratch.at(4096));
//
// Pages come from the kernel untouched, so that the thread that first writes one gets it near; regions of
// 2 MiB and more ask for huge pages.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ff {

class Arena {
 public:
  /// Throws RunError if there is no such memory.
  explicit Arena(int64_t bytes, bool fill_nan = false);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  void* at(int64_t offset) const { return data_ + offset; }
  int64_t bytes() const { return bytes_; }
  /// Never gives the memory back: for operations in flight that nobody can end any more.
  void abandon() { abandoned_ = true; }

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
  bool abandoned_ = false;
};

}  // namespace ff
