#include "executor/data/input_source.h"

#include <cmath>
#include <cstdlib>
#include <numeric>

#include "compiler/base/check.h"
#include "executor/data/region_walk.h"

namespace ff {

std::vector<int> storage_order(const InputRegion& region) {
  const auto rank = static_cast<size_t>(region.box.rank());
  if (!region.order.empty()) {
    FF_CHECK_EQ(region.order.size(), rank);
    return region.order;
  }
  std::vector<int> order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::pair<std::string, Normalize> parse_normalize(const std::string& text) {
  const UserError error("--normalize " + text + ": not NAME=SCALE or NAME=SCALE,MEAN,STD",
                        "for example --normalize image=255");
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) throw error;
  std::vector<double> numbers;
  const char* at = text.c_str() + equals + 1;
  while (true) {
    char* end = nullptr;
    numbers.push_back(std::strtod(at, &end));
    if (end == at || !std::isfinite(numbers.back())) throw error;
    at = end;
    if (*at == '\0') break;
    if (*at++ != ',') throw error;
  }
  if (numbers.size() != 1 && numbers.size() != 3) throw error;
  Normalize normalize{.scale = numbers[0]};
  if (numbers.size() == 3) {
    normalize.mean = numbers[1];
    normalize.stddev = numbers[2];
  }
  if (normalize.scale == 0 || normalize.stddev == 0) {
    throw UserError("--normalize " + text + ": divides by zero");
  }
  return {text.substr(0, equals), normalize};
}

}  // namespace ff
