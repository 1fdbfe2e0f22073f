// The arithmetic of reductions: several arrays of one length, added up element by element in the order given.
//
//   const void* parts[] = {a, b, c};
//   reduce_parts(parts, DType::f32, ReduceOp::sum, out, n);   // out[i] = (a[i] + b[i]) + c[i]
#pragma once

#include <cstdint>
#include <span>

#include "executor/comm/communicator.h"

namespace ff {

/// Throws UserError unless elements of this type can be reduced.
void check_reducible(DType type);
/// `out` may be one of the parts.
void reduce_parts(std::span<const void* const> parts, DType type, ReduceOp op, void* out, int64_t count);

}  // namespace ff
