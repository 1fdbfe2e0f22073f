// From a plan's path to a plan that this world can execute: what goes wrong here is the user's to mend, is
// found by every rank alone, and is said once.
#pragma once

#include <string>

#include "compiler/plan/plan.h"
#include "executor/comm/communicator.h"
#include "executor/runtime/run_options.h"

namespace ff {

struct Session {
  Plan plan;  // with this rank's program
  std::string model_path;
  ModelFile model;     // empty if no parameter comes from a model
  RunContext context;  // of the optimizer, with what the flags changed
  uint64_t seed = 0;
};

/// Reads and checks plan and model. UserError naming plan, model or the number of ranks.
Session open_session(const RunOptions& options, const Backend& backend, const Communicator& comm);

/// Cores that this process may use.
int64_t usable_cores();

}  // namespace ff
