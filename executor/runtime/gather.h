// What every rank says to rank 0 outside of steps: strings, and agreements of a number.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/comm/communicator.h"

namespace ff {

/// Rank 0 gets every rank's text, in rank order; the others get nothing. Called by all ranks.
std::vector<std::string> gather_texts(const std::string& mine, Communicator& comm);
/// Every rank gets every rank's number, in rank order.
std::vector<int64_t> all_gather(int64_t mine, Communicator& comm);

}  // namespace ff
