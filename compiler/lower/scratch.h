// The last two passes over a device's instructions: what is asynchronous is waited for, and every scratch
// buffer gets its place. Internal to this room.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "compiler/plan/plan.h"

namespace ff {

/// Runs beside the instructions that follow it, until it is waited for.
inline bool asynchronous(const Instruction& i) { return i.kind != InstructionKind::kernel; }

/// Adds waits for the asynchronous instructions that nobody waits for: a little later, where that cannot
/// stall long. Returns for every instruction where it is first waited for (the number of instructions: only
/// at the end).
std::vector<int32_t> wait_for_all(Entry& entry);

/// Gives the scratch buffers of the last entry, `first_buffer` and on, offsets by the instructions between
/// which they live. `parents`: of each of them, the buffer that it is a view of, or -1; persistent ones are
/// not in it. `complete` is what wait_for_all returned.
void place_scratch(Program& program, size_t first_buffer, const std::map<int32_t, int32_t>& parents,
                   const std::vector<int32_t>& complete);

}  // namespace ff
