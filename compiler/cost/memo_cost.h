// A cost model that prices every distinct call once. The models of this room derive from it and say `price`;
// what they keep is guarded by its lock, so that search threads may share one.
#pragma once

#include <mutex>
#include <unordered_map>

#include "compiler/cost/cost_model.h"

namespace ff {

class MemoCost : public CostModel {
 public:
  KernelCost kernel(const KernelCall& call, const Work& work, std::string_view family,
                    const DeviceKind& kind) final {
    const std::string text = to_string(call);
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] = memo_.try_emplace(kind.name + '\n' + text);
    if (!is_new) return at->second;
    try {
      at->second = price(call, text, work, family, kind);
    } catch (...) {
      memo_.erase(at);
      throw;
    }
    switch (at->second.source) {
      case CostSource::measured:
        ++counts_.measured;
        break;
      case CostSource::interpolated:
        ++counts_.interpolated;
        break;
      case CostSource::estimated:
        ++counts_.estimated;
        break;
    }
    return at->second;
  }
  CostCounts counts() const final {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 protected:
  /// `text` is to_string(call). Called once a distinct call and kind, under the lock.
  virtual KernelCost price(const KernelCall& call, const std::string& text, const Work& work,
                           std::string_view family, const DeviceKind& kind) = 0;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, KernelCost> memo_;
  CostCounts counts_;
};

}  // namespace ff
