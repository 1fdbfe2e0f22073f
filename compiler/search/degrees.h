// The degrees that a leader may have, and every config with such degrees: what exhaustive search, bounds and
// dynamic programming range over.
//
//   a dimension of extent 8 and one of extent 3 on 4 devices
//   degrees_within(..., 4)      [1,1] [1,2] [1,3] [2,1] [2,2] [3,1] [4,1]: at most 4 cells
//   degrees_dividing(..., 4)    [1,1] [1,2] [2,1] [2,2] [4,1]: 1, 2 or 4 cells
#pragma once

#include <vector>

#include "compiler/search/follow.h"

namespace ff {

using Degrees = std::vector<int32_t>;

/// Of a leader, in lexicographic order: each degree at most what its dimension allows, dimensions that the
/// space does not split whole, and at most so many cells.
std::vector<Degrees> degrees_within(const Problem& problem, OpId leader, Space space, int most_cells);
/// Likewise, with a number of cells that divides `devices`.
std::vector<Degrees> degrees_dividing(const Problem& problem, OpId leader, Space space, int devices);

int64_t cells_of(const Degrees& degrees);

/// Configs without replicas whose number of cells divides the number of devices, each cell on a device of its
/// own, in every order; one after the other, because there may be too many to keep.
class ConfigStream {
 public:
  ConfigStream(const Problem& problem, OpId leader, Space space);
  /// The next config; false if there is none.
  bool next(Config& config);
  /// How many there are in all.
  double count() const;

 private:
  bool next_arrangement();

  int devices_;
  std::vector<Degrees> degrees_;
  size_t at_ = 0;            // in degrees_
  std::vector<int> chosen_;  // device of each cell; empty: none yet
};

/// Whether a stream of this leader has the config.
bool is_streamed(const Problem& problem, OpId leader, Space space, const Config& config);

}  // namespace ff
