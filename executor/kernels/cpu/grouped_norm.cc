#include "executor/kernels/cpu/grouped_norm.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

#include "compiler/base/check.h"

namespace ff::cpu {
namespace {

class GroupedNorm : public Kernel {
 public:
  GroupedNorm(const KernelCall& call, KernelFactory one)
      : groups_(call.attributes.integer("groups")), operands_(call.operands) {
    KernelCall inner = call;
    inner.attributes.erase("groups");
    for (size_t i = 0; i < inner.operands.size(); ++i) {
      Operand& operand = inner.operands[i];
      const bool cut = operand.shape.size() > 1;
      strides_.push_back(cut ? operand.bytes() / groups_ : 0);
      sums_.emplace_back();
      if (cut) {
        FF_CHECK_EQ(operand.shape[0] % groups_, 0) << call.kernel;
        operand.shape[0] /= groups_;
        if (i == 4 || i == 5) operand.shape = {operand.shape[1]};
      } else if (!is_absent(operand) && operand.access == Access::out) {
        sums_.back().resize(static_cast<size_t>(operand.bytes()));
      }
    }
    one_ = one(inner);
  }

  int64_t workspace_bytes() const override { return one_->workspace_bytes(); }

  void run(std::span<void* const> operands, void* workspace, const RunContext& context) override {
    std::vector<void*> here(operands.size(), nullptr);
    for (int64_t g = 0; g < groups_; ++g) {
      for (size_t i = 0; i < operands.size(); ++i) {
        if (operands[i] == nullptr) continue;
        here[i] = g > 0 && !sums_[i].empty() ? sums_[i].data()
                                             : static_cast<std::byte*>(operands[i]) + g * strides_[i];
      }
      one_->run(here, workspace, context);
      for (size_t i = 0; g > 0 && i < operands.size(); ++i) {
        if (operands[i] != nullptr && !sums_[i].empty()) add(i, operands[i]);
      }
    }
  }

 private:
  template <typename T>
  static void add(const std::byte* from, int64_t count, void* to) {
    const T* values = reinterpret_cast<const T*>(from);
    std::transform(values, values + count, static_cast<T*>(to), static_cast<T*>(to), std::plus<T>());
  }
  void add(size_t i, void* to) const {
    const int64_t count = volume(operands_[i].shape);
    if (operands_[i].dtype == DType::f64) {
      add<double>(sums_[i].data(), count, to);
    } else {
      add<float>(sums_[i].data(), count, to);
    }
  }

  int64_t groups_;
  std::vector<Operand> operands_;
  std::vector<int64_t> strides_;              // bytes from a group to the next; 0: the same for all
  std::vector<std::vector<std::byte>> sums_;  // what a group after the first gives, to be added
  std::unique_ptr<Kernel> one_;
};

}  // namespace

std::unique_ptr<Kernel> make_grouped_norm(const KernelCall& call, KernelFactory one) {
  return std::make_unique<GroupedNorm>(call, one);
}

}  // namespace ff::cpu
