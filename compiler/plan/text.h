// A plan as people read it: programs, memory, the table of ops.
//
//   print_program(plan, plan.programs[0], "train_step")
//     b0 persistent +0        1024 B  f32:row  [0:16,0:16]       parameter  fc.weight
//     b9 scratch    +4096     8192 B  f32:last [0:4,0:8,0:8,0:8] computed   relu1
//     train_step
//     #12 compute conv group=1 ... (b3 in, b7 in, none, b9 out) workspace b11  waits 8  | conv1
//     #13 comm    send b9[0:4,0:8,0:8,0:8] to 1 tag 41  | conv1
//
// The text of a program is canonical: equal programs, equal text.
#pragma once

#include <string>
#include <vector>

#include "compiler/plan/plan.h"

namespace ff {

/// "b9 scratch +4096 ...", one line.
std::string to_string(const Buffer& buffer);
/// "compute conv group=1 ... (b3 in, ...)  waits 8  | conv1", without its number. `buffers` are the
/// program's.
std::string to_string(const Instruction& instruction, const std::vector<Buffer>& buffers,
                      const std::vector<std::vector<int32_t>>& groups);
/// All buffers and entries, one line each.
std::string program_text(const Program& program, const std::vector<std::vector<int32_t>>& groups);

/// Left-aligned columns, two spaces between them; the first row is the header.
std::string text_table(const std::vector<std::vector<std::string>>& rows);
/// "n:4(S) replicas:2", of dimensions that are split; "-" if the op is whole.
std::string degrees_text(const OpSummary& op);
/// In their order, progressions as ranges: "0-3", "0-60:4", "5,2,7".
std::string device_list(const std::vector<int32_t>& devices);
/// "0-3,6": ascending, each once.
std::string device_ranges(std::vector<int32_t> devices);

/// What the plan is for and needs, and the prediction.
std::string summary_text(const Plan& plan);
/// One row an op: degrees with the letter of each dimension's role, devices, compute, traffic, memory, and
/// the devices that the op leaves idle.
std::string ops_table(const Plan& plan);
/// One row a device: persistent, scratch, arena, the simulated live peak; and the largest tensors.
std::string memory_table(const Plan& plan);

}  // namespace ff
