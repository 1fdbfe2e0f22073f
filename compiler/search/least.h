// What every op takes at the least, over all degrees that a space allows: the ground that bounds stand on.
//
// A run of an op takes as long as its largest cell, whatever its device, and every addend (every distinct
// block) runs at least once. So a conv of 64 ms whose halves take 33 ms each and whose quarters take 18 ms
// each, on 4 devices:
//
//   time 18 ms       no run of it takes less
//   work 64 ms       no config takes less device time: 1 * 64, 2 * 33, 4 * 18
//
// Configs of a leader that touch tensors alike are one form: the same ops take part, and the same inputs are
// read by every run. Kernel costs need not fall as cells get smaller: every degree is asked for.
#pragma once

#include <memory>
#include <vector>

#include "compiler/search/degrees.h"
#include "compiler/simulator/parts.h"

namespace ff {

/// Which operands an op's runs touch under its own degrees.
struct Touched {
  /// Of each addend, the inputs whose box is not empty (bit k: input k); one for all if they are equal.
  /// Inputs from the 64th on are left out.
  std::vector<uint64_t> reads;
  uint64_t covers = 0;  // outputs of which every element is written
  uint64_t of(int32_t addend) const { return reads[reads.size() == 1 ? 0 : static_cast<size_t>(addend)]; }
};
Touched touched_by(const Problem& problem, OpId op, const Degrees& own_degrees);

struct LeastOp {
  bool active = false;
  Nanoseconds time = 0;         // no run takes less
  std::vector<uint64_t> reads;  // every run reads one of these sets of inputs
  uint64_t covers = 0;
};

struct LeastForm {
  std::vector<LeastOp> ops;  // as Problem::followers
};

struct LeastLeader {
  std::vector<LeastForm> forms;
  Nanoseconds work = 0;              // of all followers, one config for all
  std::vector<Nanoseconds> op_work;  // of each follower by itself
};

/// By OpId; null for ops that are no leaders. Over all configs with at most as many cells as there are
/// devices; leaders that are alike share theirs. Asks for the cost of every kernel that such configs call.
std::vector<std::shared_ptr<const LeastLeader>> least_costs(const Problem& problem, const Machine& machine,
                                                            CostModel& costs, Space space);

}  // namespace ff
