// What ffplan-dump prints of a plan, beside the texts of compiler/plan/text.h.
#pragma once

#include <string>

#include "compiler/plan/plan.h"

namespace ff {

/// The whole plan as one JSON object; programs as lists of buffers and of instruction texts.
std::string plan_json(const Plan& plan);
/// Chrome trace events of the predicted step: a process a device, a row a stream.
std::string plan_trace(const Plan& plan);
/// The train_step (or first entry) as a graph in dot: instructions, and who waits for or receives from whom.
std::string plan_dot(const Plan& plan);

}  // namespace ff
