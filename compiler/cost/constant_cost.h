// Every kernel takes the same time, or what a test says: hand-computed timelines need round numbers.
//
//   ConstantCost costs(100);
//   costs.set("conv", 1'000);      // kernels of this name take 1 us, all others 100 ns
#pragma once

#include <map>

#include "compiler/cost/cost_model.h"

namespace ff {

class ConstantCost : public CostModel {
 public:
  explicit ConstantCost(Nanoseconds time, int64_t workspace_bytes = 0)
      : time_(time), workspace_bytes_(workspace_bytes) {}
  void set(const std::string& kernel, Nanoseconds time) { times_[kernel] = time; }
  KernelCost kernel(const KernelCall& call, const Work&, std::string_view, const DeviceKind&) override {
    const auto at = times_.find(call.kernel);
    return {.time = at == times_.end() ? time_ : at->second, .workspace_bytes = workspace_bytes_};
  }

 private:
  Nanoseconds time_;
  int64_t workspace_bytes_;
  std::map<std::string, Nanoseconds> times_;
};

}  // namespace ff
