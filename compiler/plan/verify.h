// Whether a plan can be executed: what lowering promises, checked before anything runs.
//
//   verify(plan);   // InternalError: "program of rank 1, entry train_step, #13 (conv1): reads b9 while #8
//                   //   (receive of conv1/halo) writes it; a wait for #8 is missing"
//
// Checked are
//   shapes     operands fit their buffers, buffers their regions, groups and peers exist;
//   messages   every send has one receive of its bytes and tag, the members of a group issue the same
//              collectives in the same order;
//   progress   executing all programs in order, every wait ends;
//   memory     overlapping bytes are ordered by happens-before, nothing is read that was not written, and
//              parameters are in place at the end of an entry.
// Happens-before: the instructions of a program run in order; a send, a receive or a collective is
// asynchronous and complete only once an instruction has waited for it, or the entry has ended. A wait for a
// send may need its receive to be posted.
//
// Bytes are read through a buffer of the tensor that was last written there, whose boxes share elements: that
// is how two live tensors in one place are found. A buffer that several box copies fill together counts as
// written from the first of them on.
#pragma once

#include "compiler/plan/plan.h"

namespace ff {

/// Throws InternalError naming rank, entry and instruction.
void verify(const Plan& plan);
/// The part that one program shows by itself (shapes, memory): what a rank can check of its own.
/// `rank` is for messages; -1: the reference.
void verify_program(const Program& program, const std::vector<std::vector<int32_t>>& groups, int rank);

inline bool is_asynchronous(const Instruction& instruction) {
  return instruction.kind != InstructionKind::kernel;
}
inline bool is_collective(const Instruction& instruction) {
  return instruction.kind >= InstructionKind::all_reduce;
}

}  // namespace ff
