// The plan file: "FFPLAN\r\n", major and minor version, a table of sections (name, offset, size, hash), the
// sections. A rank reads the header, the parameters and its own program only. The same plan gives the same
// bytes: no times, no maps, no paths.
//
//   header | parameters | strategy | program 0 | program 1 | ... | reference | predictions
#pragma once

#include <string>

#include "compiler/plan/plan.h"

namespace ff {

inline constexpr uint32_t kPlanMajor = 1;
inline constexpr uint32_t kPlanMinor = 0;

/// Writes beside the path and renames: a file is whole or not there. Equal programs are stored once. RunError
/// if it cannot be written.
void write_plan(const std::string& path, const Plan& plan);

/// Reads everything. UserError naming the file for what is no plan, another major version, a damaged section,
/// an unknown required feature.
Plan read_plan(const std::string& path);

/// Reads what one rank needs: programs holds its program alone, program_of is 0 for this rank and -1 for
/// others.
Plan read_plan_for_rank(const std::string& path, int rank, bool with_reference);

/// The number of devices alone.
int64_t read_plan_devices(const std::string& path);

}  // namespace ff
