// What rows of ops with integer indices share: which types index, and what a kernel is told so that it can
// name the sample of an index that is out of range.
//
//   Indices of 32x8 tokens, cell of samples [16, 32): sample_axis=0 sample_offset=16. Element [3, 5] of the
//   cell's indices belongs to sample 19.
#pragma once

#include <string>

#include "compiler/base/check.h"
#include "compiler/graph/graph.h"

namespace ff {

/// UserError unless the type is i64 or i32.
inline void require_index_type(DType type) {
  if (type != DType::i64 && type != DType::i32)
    throw UserError("the indices have type " + std::string(name(type)) + "; they must be i64 or i32");
}

/// Sets `sample_axis` (-1: none) and `sample_offset` of a call whose indices are `box` of this tensor.
inline void set_sample(Attributes& attributes, const Tensor& indices, const Box& box) {
  const int axis = indices.batch_axis < box.rank() ? indices.batch_axis : -1;
  attributes.set("sample_axis", static_cast<int64_t>(axis));
  attributes.set("sample_offset", axis < 0 ? int64_t{0} : box[axis].lo);
}

}  // namespace ff
