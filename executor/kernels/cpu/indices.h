// Integer indices as kernels read them: negative ones count from the end, and one that is out of range is an
// error with its value and sample.
//
//   const Indices index(call, 1);         // operand 1, i64 or i32, any layout
//   index.get(operands[1], 7)             // element 7 in logical order, in [0, limit)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/base/check.h"
#include "compiler/plan/kernel_call.h"
#include "executor/kernels/cpu/image.h"

namespace ff::cpu {

/// The offsets of the elements of axes [first, last) of a dense buffer, at index 0 of the others, in logical
/// order.
inline std::vector<int64_t> axis_offsets(const Operand& operand, size_t first, size_t last) {
  const Shape strides = dense_strides(operand.shape, operand.layout);
  std::vector<int64_t> offsets{0};
  for (size_t d = first; d < last; ++d) {
    std::vector<int64_t> finer;
    finer.reserve(offsets.size() * static_cast<size_t>(operand.shape[d]));
    for (int64_t offset : offsets) {
      for (int64_t i = 0; i < operand.shape[d]; ++i) finer.push_back(offset + i * strides[d]);
    }
    offsets = std::move(finer);
  }
  return offsets;
}

class Indices {
 public:
  /// `limit`: how many there are to choose from; -1: the call's attribute `limit`.
  Indices(const KernelCall& call, size_t operand, int64_t limit = -1)
      : type_(call.operands[operand].dtype),
        shape_(call.operands[operand].shape),
        at_(axis_offsets(call.operands[operand], 0, shape_.size())),
        limit_(limit >= 0 ? limit : call.attributes.integer("limit")),
        sample_axis_(call.attributes.integer("sample_axis", -1)),
        sample_offset_(call.attributes.integer("sample_offset", 0)) {
    FF_CHECK(type_ == DType::i64 || type_ == DType::i32) << "indices of type " << name(type_);
  }

  size_t size() const { return at_.size(); }
  /// `limit`: another than the call's.
  int64_t get(const void* data, size_t i) const { return get(data, i, limit_); }
  int64_t get(const void* data, size_t i, int64_t limit) const {
    const int64_t index = type_ == DType::i64 ? static_cast<const int64_t*>(data)[at_[i]]
                                              : int64_t{static_cast<const int32_t*>(data)[at_[i]]};
    if (index < -limit || index >= limit) refuse(i, index, limit);
    return index < 0 ? index + limit : index;
  }

 private:
  [[noreturn]] void refuse(size_t i, int64_t index, int64_t limit) const {
    std::string where = " (element " + std::to_string(i) + " of the indices)";
    if (sample_axis_ >= 0) {
      auto rest = static_cast<int64_t>(i);
      for (size_t d = shape_.size() - 1; d > static_cast<size_t>(sample_axis_); --d) rest /= shape_[d];
      where =
          " of sample " + std::to_string(sample_offset_ + rest % shape_[static_cast<size_t>(sample_axis_)]);
    }
    throw UserError("index " + std::to_string(index) + where + " is outside [" + std::to_string(-limit) +
                        ", " + std::to_string(limit) + ")",
                    "check the data that the indices come from: there are " + std::to_string(limit) +
                        " entries to choose from");
  }

  DType type_;
  Shape shape_;
  std::vector<int64_t> at_;
  int64_t limit_;
  int64_t sample_axis_, sample_offset_;
};

}  // namespace ff::cpu
