// What differs between two plans of a model, and what that is worth: what `ffplan-dump FIRST --diff SECOND`
// prints.
//
//                     first     second    difference
//     predicted step  1.09 ms   1.20 ms   +111.4 us (+10.2 %)
//     ...
//     op   type    first          second         compute   sent        memory
//     fc1  MatMul  n:2(P) on 0-1  m:2(S) on 0-1  +11.2 us  +275.9 KiB  +88.0 KiB
//     ...
//     others: 15                                 0 ns      -117.7 KiB  0 B
//
// What a step gains by one op alone is not in a plan: `ffcompile --explain OP` says it.
#pragma once

#include <string>
#include <vector>

#include "compiler/plan/plan.h"

namespace ff {

struct NamedPlan {
  std::string path;
  Plan plan;
};

struct PlanFigures {
  int64_t step_ns = 0;
  int64_t compute_ns = 0;    // of the busiest device
  int64_t sent_bytes = 0;    // by all devices, for what ops compute
  int64_t memory_bytes = 0;  // arena of the fullest device
  int64_t instructions = 0;  // of a training step, on the device that has most
};

/// What an op takes: forward, backward, update.
struct OpFigures {
  int64_t compute_ns = 0;    // of the device that has most of its cells
  int64_t sent_bytes = 0;    // of what it writes
  int64_t memory_bytes = 0;  // of what it writes, all devices
};

struct OpDifference {
  const OpSummary* first = nullptr;  // null: only in the second
  const OpSummary* second = nullptr;
  OpFigures change;  // second less first
};

struct PlanDifference {
  NamedPlan first, second;
  PlanFigures first_figures, second_figures;
  struct Field {
    std::string name, first, second;
  };
  std::vector<Field> header;      // fields that differ
  std::vector<OpDifference> ops;  // split or placed differently, in the first's order
  int64_t programs = 0;           // devices whose programs differ
  int64_t others = 0;             // ops that are split and placed alike
  OpFigures others_change;        // of all of them: what they send depends on their neighbours
};

PlanFigures figures_of(const Plan& plan);
OpFigures figures_of(const OpSummary& op);

/// UserError if they are plans of different models.
PlanDifference compare(NamedPlan first, NamedPlan second);

std::string difference_text(const PlanDifference& difference);
std::string difference_json(const PlanDifference& difference);

}  // namespace ff
