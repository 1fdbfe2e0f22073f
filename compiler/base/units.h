// Quantities as people write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ff {

/// Integer nanoseconds: the unit of every simulated time.
using Nanoseconds = int64_t;

/// "1.5 GiB", "640 B".
std::string format_bytes(int64_t bytes);
/// "1.234 ms", "56.7 us", "2.000 s".
std::string format_seconds(double seconds);
/// A difference: "+1.5 GiB", "-640 B", "0 B".
std::string format_byte_difference(int64_t bytes);
/// A difference: "+1.23 ms", "-56.7 us", "0 ns".
std::string format_time_difference(Nanoseconds time);
/// Parses "12GiB", "512 MiB", "4096" (bytes; suffixes KiB MiB GiB TiB). Throws UserError naming `what`.
int64_t parse_bytes(std::string_view text, std::string_view what);

}  // namespace ff
