// What ranks under mpirun reach among each other, as a machine file.
//
//   mpirun -n 4 fftopo --measure        // two hosts, two ranks each: messages inside a host, messages
//   between hosts
//
// Both members of a pair send at once, as they do in the rounds of a collective. The smallest message's time
// is the latency; the bandwidth is that of the large ones, by least squares of relative errors: those of a
// few kilobytes, which a network lets through in bursts and libraries send by other protocols, say little
// about either.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "executor/comm/communicator.h"
#include "tools/fftopo/host.h"

namespace ff {

struct TimedMessage {
  int64_t bytes = 0;
  double seconds = 0;
};

struct Line {
  double latency = 0;    // seconds
  double bandwidth = 0;  // bytes per second
  double at(double bytes) const { return latency + bytes / bandwidth; }
};

Line fit_line(const std::vector<TimedMessage>& times);

struct Measured {
  std::vector<std::string> host_of_rank;
  Host host;  // the first one, its cores the most ranks that a host has
  std::vector<TimedMessage> inside, between, all_reduce;  // empty where there is no such pair

  int ranks() const { return static_cast<int>(host_of_rank.size()); }
  /// Ranks of each host, in order of their first ranks.
  std::vector<int> ranks_by_host() const;
};

/// All ranks call it; the result holds on rank 0. Throws UserError if there is one rank.
Measured measure_ranks(Communicator& comm);

std::string measured_facts(const Measured& measured);
/// A machine file but for its name.
std::string measured_machine_text(const Measured& measured);
/// Bytes per second at which a collective sums, such that the machine prices all-reduces as near as it can to
/// what they took; 0 if messages alone take that long.
double reduction_rate(const Measured& measured);

}  // namespace ff
