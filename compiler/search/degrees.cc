#include "compiler/search/degrees.h"

#include <algorithm>
#include <functional>

namespace ff {
namespace {

/// Visits degrees with at most `most` cells in lexicographic order.
void visit_degrees(const Problem& problem, OpId leader, Space space, int64_t most,
                   const std::function<void(const Degrees&)>& visit) {
  const size_t dims = problem.space(leader).dims.size();
  Degrees degrees(dims, 1);
  const std::function<void(size_t, int64_t)> split = [&](size_t dim, int64_t cells) {
    if (dim == dims) return visit(degrees);
    const int64_t largest = may_split(problem, leader, dim, space) ? problem.max_degree(leader, dim) : 1;
    for (int64_t degree = 1; degree <= largest && cells * degree <= most; ++degree) {
      degrees[dim] = static_cast<int32_t>(degree);
      split(dim + 1, cells * degree);
    }
    degrees[dim] = 1;
  };
  split(0, 1);
}

}  // namespace

int64_t cells_of(const Degrees& degrees) {
  int64_t cells = 1;
  for (int32_t degree : degrees) cells *= degree;
  return cells;
}

std::vector<Degrees> degrees_within(const Problem& problem, OpId leader, Space space, int most_cells) {
  std::vector<Degrees> out;
  visit_degrees(problem, leader, space, most_cells, [&](const Degrees& degrees) { out.push_back(degrees); });
  return out;
}

std::vector<Degrees> degrees_dividing(const Problem& problem, OpId leader, Space space, int devices) {
  std::vector<Degrees> out;
  visit_degrees(problem, leader, space, devices, [&](const Degrees& degrees) {
    if (devices % cells_of(degrees) == 0) out.push_back(degrees);
  });
  return out;
}

ConfigStream::ConfigStream(const Problem& problem, OpId leader, Space space)
    : devices_(problem.num_devices()),
      degrees_(degrees_dividing(problem, leader, space, problem.num_devices())) {}

double ConfigStream::count() const {
  double configs = 0;
  for (const Degrees& degrees : degrees_) {
    double arrangements = 1;
    for (int64_t cell = 0; cell < cells_of(degrees); ++cell)
      arrangements *= static_cast<double>(devices_ - cell);
    configs += arrangements;
  }
  return configs;
}

bool ConfigStream::next(Config& config) {
  while (at_ < degrees_.size()) {
    if (next_arrangement()) {
      config = {degrees_[at_], 1, {}};
      for (int device : chosen_) config.devices.emplace_back(device);
      return true;
    }
    ++at_;
    chosen_.clear();
  }
  return false;
}

bool ConfigStream::next_arrangement() {
  const auto free_from = [&](int device, size_t cell) {
    while (std::find(chosen_.begin(), chosen_.begin() + static_cast<std::ptrdiff_t>(cell), device) !=
           chosen_.begin() + static_cast<std::ptrdiff_t>(cell))
      ++device;
    return device;
  };
  const auto cells = static_cast<size_t>(cells_of(degrees_[at_]));
  const auto fill = [&](size_t from) {
    for (size_t cell = from; cell < cells; ++cell) chosen_[cell] = free_from(0, cell);
  };
  if (chosen_.empty()) {
    chosen_.resize(cells);
    fill(0);
    return true;
  }
  // The last cell that can move to a later device does, and those behind it begin anew.
  for (size_t cell = cells; cell-- > 0;) {
    const int device = free_from(chosen_[cell] + 1, cell);
    if (device >= devices_) continue;
    chosen_[cell] = device;
    fill(cell + 1);
    return true;
  }
  return false;
}

bool is_streamed(const Problem& problem, OpId leader, Space space, const Config& config) {
  if (config.replicas != 1 || problem.num_devices() % cells_of(config.degrees) != 0) return false;
  for (size_t d = 0; d < config.degrees.size(); ++d) {
    if (config.degrees[d] > 1 && !may_split(problem, leader, d, space)) return false;
  }
  std::vector<DeviceId> devices = config.devices;
  std::sort(devices.begin(), devices.end());
  return std::adjacent_find(devices.begin(), devices.end()) == devices.end();
}

}  // namespace ff
