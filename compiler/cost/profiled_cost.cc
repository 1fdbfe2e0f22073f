#include "compiler/cost/profiled_cost.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "compiler/cost/roofline.h"

namespace ff {
namespace {

/// What shapes are compared by: flops where there are any, else bytes.
double amount(const Work& work) { return work.flops > 0 ? work.flops : work.bytes; }

const ProfileEntry* nearest_in_work(const std::vector<const ProfileEntry*>& entries, const Work& work) {
  const ProfileEntry* best = nullptr;
  double best_distance = 0;
  for (const ProfileEntry* entry : entries) {
    if (amount(entry->work) <= 0 || (entry->work.flops > 0) != (work.flops > 0)) continue;
    const double distance = std::abs(std::log(amount(work) / amount(entry->work)));
    if (best == nullptr || distance < best_distance) {
      best = entry;
      best_distance = distance;
    }
  }
  return best;
}

Nanoseconds scaled(Nanoseconds time, double by) {
  return std::max(Nanoseconds{1}, static_cast<Nanoseconds>(std::llround(static_cast<double>(time) * by)));
}

}  // namespace

ProfiledCost::ProfiledCost(const ProfileStore& store, int ranks) : store_(store), ranks_(ranks) {
  int best = ranks;
  bool found = false;
  for (int measured : store.ranks()) {
    if (!found || std::abs(measured - ranks) < std::abs(best - ranks)) best = measured;
    found = true;
  }
  ranks_ = best;
}

KernelCost ProfiledCost::price(const KernelCall& call, const std::string& text, const Work& work,
                               std::string_view family, const DeviceKind& kind) {
  if (const ProfileEntry* hit = store_.find(ranks_, text)) {
    return {hit->measurement.median, hit->measurement.workspace_bytes, CostSource::measured};
  }
  if (amount(work) > 0) {
    if (const ProfileEntry* near = nearest_in_work(store_.similar(ranks_, signature_of(text)), work)) {
      const double ratio = amount(work) / amount(near->work);
      return {std::max(kind.kernel_launch, scaled(near->measurement.median, ratio)),
              static_cast<int64_t>(
                  std::ceil(static_cast<double>(near->measurement.workspace_bytes) * std::max(1.0, ratio))),
              CostSource::interpolated};
    }
    if (const ProfileEntry* near = nearest_in_work(store_.of_kernel(ranks_, call.kernel), work)) {
      const double slowness = static_cast<double>(near->measurement.median) /
                              static_cast<double>(roofline_time(call, near->work, family, kind));
      return {scaled(roofline_time(call, work, family, kind), slowness), near->measurement.workspace_bytes,
              CostSource::interpolated};
    }
  }
  return {roofline_time(call, work, family, kind), 0, CostSource::estimated};
}

}  // namespace ff
