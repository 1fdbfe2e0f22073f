// From a strategy to the programs of its devices. The task graph's simulated order, (ready, id), is one total
// order; each device's program is its projection, so the smallest instruction that has not run can always
// run, and nothing can deadlock.
//
// A task becomes: a run, a kernel on its device; a copy, fill or sum, a kernel; a message, a send on one
// device and a receive on another; a collective, an instruction on each member. An instruction waits for the
// earlier asynchronous ones of its device that its task depends on. Buffers get offsets by their lifetimes,
// so that the arena is what the plan says, to the byte.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/plan/plan.h"
#include "compiler/simulator/simulator.h"

namespace ff {

/// Bytes of scratch memory that a kernel asks for.
using WorkspaceQuery = std::function<int64_t(const KernelCall&)>;

/// Adds entry `name` to `programs` (one a device; buffers of parameters are shared with the entries that are
/// there) and the groups of its collectives to `groups`.
void lower_entry(const std::string& name, const Problem& problem, const TaskGraph& tasks,
                 const Timeline& timeline, const WorkspaceQuery& workspace, std::vector<Program>& programs,
                 std::vector<std::vector<int32_t>>& groups);

/// Where the parameters of this task graph lie, by tensor name, for Simulator::build of the graph `other`.
Homes homes_of(const Problem& problem, const TaskGraph& tasks, const Graph& other);

}  // namespace ff
