// Strategies as text that people edit: what `ffplan-dump --strategy` prints and `ffcompile --strategy` reads.
//
//   model_hash: "00000000000000aa"
//   machine_hash: "00000000000000bb"
//   op { name: "conv1" degree { dim: "n" by: 2 } degree { dim: "co" by: 2 } devices: "0-3" }
#pragma once

#include <string>
#include <vector>

#include "compiler/partition/config.h"

namespace ff {

/// What a strategy was made for.
struct StrategyHashes {
  uint64_t model = 0;
  uint64_t machine = 0;
};

/// Canonical: one op a line in graph order; equal strategies give equal text.
std::string to_text(const Strategy& strategy, const Problem& problem, const StrategyHashes& hashes);

/// `source` is what errors call the text. UserError naming the op if the text is broken, an op is missing
/// (and there is no default) or unknown, or a config does not fit the graph. A hash that differs from
/// `expected` is said in `warnings`.
Strategy parse_strategy(const std::string& text, const std::string& source, const Problem& problem,
                        const StrategyHashes& expected, std::vector<std::string>& warnings);

/// "0-3", "0-60:4", "5,2,7".
std::string devices_to_text(const std::vector<DeviceId>& devices);
/// UserError naming `what` if it is no device list.
std::vector<DeviceId> parse_devices(const std::string& text, const std::string& what);

}  // namespace ff
