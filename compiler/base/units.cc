#include "compiler/base/units.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <utility>

#include "compiler/base/check.h"

namespace ff {
namespace {

std::string format(const char* pattern, double value, const char* unit) {
  std::array<char, 64> buffer{};
  const int n = std::snprintf(buffer.data(), buffer.size(), pattern, value, unit);
  return {buffer.data(), static_cast<size_t>(n)};
}

std::string signed_text(int64_t value, const std::string& magnitude) {
  return (value > 0 ? "+" : value < 0 ? "-" : "") + magnitude;
}

}  // namespace

std::string format_bytes(int64_t bytes) {
  const double b = static_cast<double>(bytes);
  if (bytes < 1024) return std::to_string(bytes) + " B";
  if (b < 1024.0 * 1024) return format("%.1f %s", b / 1024, "KiB");
  if (b < 1024.0 * 1024 * 1024) return format("%.1f %s", b / 1024 / 1024, "MiB");
  return format("%.2f %s", b / 1024 / 1024 / 1024, "GiB");
}

std::string format_seconds(double seconds) {
  if (seconds < 1e-6) return format("%.0f %s", seconds * 1e9, "ns");
  if (seconds < 1e-3) return format("%.1f %s", seconds * 1e6, "us");
  if (seconds < 1) return format("%.2f %s", seconds * 1e3, "ms");
  return format("%.3f %s", seconds, "s");
}

std::string format_byte_difference(int64_t bytes) {
  return signed_text(bytes, format_bytes(bytes < 0 ? -bytes : bytes));
}

std::string format_time_difference(Nanoseconds time) {
  return signed_text(time, format_seconds(static_cast<double>(time < 0 ? -time : time) * 1e-9));
}

int64_t parse_bytes(std::string_view text, std::string_view what) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view suffix(end, static_cast<size_t>(text.data() + text.size() - end));
  while (!suffix.empty() && suffix.front() == ' ') suffix.remove_prefix(1);
  constexpr std::array<std::pair<std::string_view, double>, 6> kUnits{{{"", 1},
                                                                       {"B", 1},
                                                                       {"KiB", 1024.0},
                                                                       {"MiB", 1048576.0},
                                                                       {"GiB", 1073741824.0},
                                                                       {"TiB", 1099511627776.0}}};
  if (error == std::errc() && value >= 0) {
    for (const auto& [name, factor] : kUnits) {
      if (suffix == name) return static_cast<int64_t>(value * factor);
    }
  }
  throw UserError(std::string(what) + ": '" + std::string(text) + "' is not a number of bytes",
                  "write it as 4096, 512MiB or 12GiB");
}

}  // namespace ff
