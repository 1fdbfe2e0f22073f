// What the parts of the verifier share: where in a plan they are, and which bytes an instruction touches.
#pragma once

#include <string>
#include <vector>

#include "compiler/plan/plan.h"

namespace ff::internal {

using Groups = std::vector<std::vector<int32_t>>;

/// An entry of a program that is being checked.
struct EntryPlace {
  const Program& program;
  const Groups& groups;
  int rank;  // -1: the reference
  const Entry& entry;

  /// "program of rank 1, entry train_step, #13 (conv1): <what>" as an InternalError.
  [[noreturn]] void fail(size_t instruction, const std::string& what) const;
  [[noreturn]] void fail(const std::string& what) const;
  /// "#13 (conv1)", or "#13 (receive of conv1)".
  std::string name(size_t instruction) const;
  /// "b9 (relu1)".
  std::string buffer_name(int32_t buffer) const;
};

/// What an instruction does to one buffer.
struct BufferUse {
  int32_t buffer;
  bool reads;
  bool writes;
};

/// All buffers of an instruction, its workspace included; of zero bytes, too.
std::vector<BufferUse> uses(const EntryPlace& place, const Instruction& instruction);

/// Place of `rank` in a group; -1 if it is none of its members.
int64_t place_in_group(const std::vector<int32_t>& group, int rank);

void verify_shapes(const EntryPlace& place);
void verify_memory(const EntryPlace& place);
/// Entry number `entry` of all devices' programs.
void verify_messages(const Plan& plan, size_t entry);

}  // namespace ff::internal
