// Moving elements between dense buffers of any layout: a box with steps on both sides. Internal to this room.
#pragma once

#include <cstdint>

#include "compiler/base/box.h"

namespace ff::cpu {

/// Copies `extent` elements an axis; strides in elements. Axes are reordered and merged so that the innermost
/// runs are long.
void move(const void* source, const Shape& source_strides, void* target, const Shape& target_strides,
          const Shape& extent, int64_t element_bytes);

}  // namespace ff::cpu
