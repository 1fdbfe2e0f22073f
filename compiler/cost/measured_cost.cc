#include "compiler/cost/measured_cost.h"

#include <algorithm>

#include "compiler/base/check.h"

namespace ff {

MeasuredCost::MeasuredCost(ProfileStore& store, KernelQuery& query, int ranks, Progress progress,
                           std::chrono::milliseconds save_every)
    : store_(store), query_(query), ranks_(ranks), progress_(std::move(progress)), save_every_(save_every) {}

MeasuredCost::~MeasuredCost() {
  try {
    save();
  } catch (const RunError&) {
    // The measurements of this run are lost, its results are not.
  }
}

void MeasuredCost::save() {
  if (!dirty_) return;
  store_.save();
  dirty_ = false;
  saved_ = std::chrono::steady_clock::now();
}

KernelCost MeasuredCost::price(const KernelCall& call, const std::string& text, const Work& work,
                               std::string_view, const DeviceKind&) {
  const ProfileEntry* entry = store_.find(ranks_, text);
  if (entry == nullptr) {
    store_.add(ranks_, text, {query_.measure(call), work});
    entry = store_.find(ranks_, text);
    dirty_ = true;
    ++measured_;
    if (std::chrono::steady_clock::now() - saved_ >= save_every_) save();
    if (progress_) progress_(measured_, text);
  }
  return {std::max(Nanoseconds{1}, entry->measurement.median), entry->measurement.workspace_bytes,
          CostSource::measured};
}

}  // namespace ff
