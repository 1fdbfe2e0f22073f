// Costs from a store of measurements, without a device at hand. In this order:
//   measured      this very call is in the store;
//   interpolated  a call of the same kernel and attributes with other shapes is: the nearest in work, times
//   the
//                 ratio of the two works;
//   interpolated  another call of the kernel is: the roofline's time, scaled by what such calls took of
//   theirs; estimated     the roofline's time.
//
//   a store with a conv of 1e9 flops at 10 ms: the same conv of 2e9 flops is put at 20 ms
#pragma once

#include "compiler/cost/memo_cost.h"
#include "compiler/cost/profile_store.h"

namespace ff {

class ProfiledCost : public MemoCost {
 public:
  /// `store` must outlive this and stay as it is. `ranks`: how many ranks run at once on a node; a store that
  /// was not measured so is used with the nearest number of ranks that it has.
  ProfiledCost(const ProfileStore& store, int ranks);

 protected:
  KernelCost price(const KernelCall& call, const std::string& text, const Work& work, std::string_view family,
                   const DeviceKind& kind) override;

 private:
  const ProfileStore& store_;
  int ranks_;
};

}  // namespace ff
