// What every communicator must do, as checks that all ranks of a run execute together; of any number of
// ranks.
#pragma once

#include <span>

#include "executor/comm/communicator.h"

namespace ff {

struct ConformanceCase {
  const char* name;
  void (*run)(Communicator&);
};

std::span<const ConformanceCase> message_cases();
std::span<const ConformanceCase> collective_cases();

/// All of them, with a barrier after each. A check that fails throws on the rank that sees it.
void conformance(Communicator& comm);

}  // namespace ff
