// The file around a plan: what ffcompile writes and every rank reads its part of.
//
//   write_plan("net.soap", plan);                                   // as a whole or not at all
//   Plan mine = read_plan_for_rank("net.soap", /*rank=*/3, /*want_reference=*/false);
//
// Layout, little-endian:
//   8 bytes    "FFPLAN\r\n", which a transfer as text would damage
//   u32 u32    major and minor version: another major is refused, a later minor only adds
//   u32 u32    number of sections; 0
//   32 bytes   a section: u32 kind, u32 index, u64 offset, u64 size, u64 hash of its bytes
//   u64        hash of everything above
//   ...        the sections: header, parameters, strategy, a program for each distinct one (those that
//   several
//              devices share stand once), reference, predictions
// The same plan gives the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/plan/plan.h"

namespace ff {

inline constexpr uint32_t kPlanMajor = 1;
inline constexpr uint32_t kPlanMinor = 0;

/// Names that Plan::required_features may hold: what a reader must know to execute the plan at all.
const std::vector<std::string>& known_plan_features();

/// Writes to a file beside `path` and renames it. Throws RunError naming the file and the reason.
void write_plan(const std::string& path, const Plan& plan);

/// All of it. Throws UserError naming the file if it is no plan, truncated, of another major version, damaged
/// (with the section), or requires a feature that is not known here (by name).
Plan read_plan(const std::string& path);

/// What one rank needs: header, parameters, predictions, and its own program; those of other ranks are empty.
/// The strategy's text and summaries are left out; the reference is there if it is wanted and in the plan.
/// A rank that the plan does not have gets no program.
Plan read_plan_for_rank(const std::string& path, int rank, bool want_reference);

}  // namespace ff
