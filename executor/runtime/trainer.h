// A run of a plan, from its file to trained weights: what one rank of `ffrun` does.
//
//   int status = run_plan(options, backend, comm);   // called by every rank
//
// Rank 0 speaks for all: progress and notes on stderr, results on stdout. Returns 0, 4 if --verify found a
// difference, or the status of an error at start-up, which one rank has printed. Later errors are thrown; the
// caller ends all ranks with them.
#pragma once

#include "executor/comm/communicator.h"
#include "executor/runtime/run_options.h"

namespace ff {

int run_plan(const RunOptions& options, const Backend& backend, Communicator& comm);

}  // namespace ff
