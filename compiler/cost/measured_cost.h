// Costs by measuring: a store of measurements that asks the executor's own kernels for what it lacks. Every
// distinct call is measured once; what was measured is written out as it goes, so that an interrupted compile
// keeps it.
#pragma once

#include <chrono>
#include <functional>

#include "compiler/cost/memo_cost.h"
#include "compiler/cost/profile_store.h"

namespace ff {

class MeasuredCost : public MemoCost {
 public:
  /// Called after a measurement, with how many were made so far and of what.
  using Progress = std::function<void(int64_t measured, const std::string& call)>;

  /// `store` and `query` must outlive this. The store is saved every `save_every` and at the end.
  MeasuredCost(ProfileStore& store, KernelQuery& query, int ranks, Progress progress = {},
               std::chrono::milliseconds save_every = std::chrono::seconds(5));
  /// Saves; an error of the disk is not reported here: call `save` for that.
  ~MeasuredCost() override;
  /// Writes out what is not written yet. RunError if the disk does not take it.
  void save();

 protected:
  KernelCost price(const KernelCall& call, const std::string& text, const Work& work, std::string_view family,
                   const DeviceKind& kind) override;

 private:
  ProfileStore& store_;
  KernelQuery& query_;
  int ranks_;
  Progress progress_;
  std::chrono::milliseconds save_every_;
  std::chrono::steady_clock::time_point saved_ = std::chrono::steady_clock::now();
  int64_t measured_ = 0;
  bool dirty_ = false;
};

}  // namespace ff
