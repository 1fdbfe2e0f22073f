// Which of a program's input buffers an entry reads: the ones to fill before it runs. Those of other entries
// may lie in memory that this one uses for something else.
//
//   for (int32_t b : input_buffers(program, program.entries[0])) fill(program.buffers[b]);
#pragma once

#include <vector>

#include "compiler/plan/plan.h"

namespace ff {

/// In ascending order; a buffer counts as read where only a part of it, another buffer of its tensor, is.
std::vector<int32_t> input_buffers(const Program& program, const Entry& entry);

}  // namespace ff
