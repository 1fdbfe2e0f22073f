// Gather and its gradient: blocks of a tensor along one axis, picked by indices. Where the blocks are
// contiguous, as rows of an embedding are, a block is one copy or one addition of a row.

#include <algorithm>
#include <cstring>

#include "executor/kernels/cpu/indices.h"
#include "executor/kernels/cpu/registry.h"
#include "executor/kernels/cpu/simd.h"

namespace ff::cpu {
namespace {

/// Places of [outer, index, inner] in the data and in what is picked from it.
struct Blocks {
  std::vector<int64_t> data_outer, data_inner, picked_outer, picked_index, picked_inner;
  int64_t axis_stride = 0, first = 0, count = 0;
  bool contiguous = false;

  /// `rank`: of the indices.
  Blocks(const KernelCall& call, const Operand& data, const Operand& picked, size_t rank) {
    const auto axis = static_cast<size_t>(call.attributes.integer("axis"));
    data_outer = axis_offsets(data, 0, axis);
    data_inner = axis_offsets(data, axis + 1, data.shape.size());
    picked_outer = axis_offsets(picked, 0, axis);
    picked_index = axis_offsets(picked, axis, axis + rank);
    picked_inner = axis_offsets(picked, axis + rank, picked.shape.size());
    axis_stride = dense_strides(data.shape, data.layout)[axis];
    first = call.attributes.integer("offset");
    count = data.shape[axis];
    contiguous = runs(data_inner) && runs(picked_inner);
  }

  bool has(int64_t index) const { return index >= first && index < first + count; }

 private:
  static bool runs(const std::vector<int64_t>& places) {
    return places.back() == static_cast<int64_t>(places.size()) - 1;
  }
};

/// Elements of any type, by their size.
template <typename T>
class Gather final : public Kernel {
 public:
  explicit Gather(const KernelCall& call)
      : indices_(call, 1), blocks_(call, call.operands[0], call.operands[2], call.operands[1].shape.size()) {}

  void run(std::span<void* const> operands, void*, const RunContext&) override {
    const T* data = static_cast<const T*>(operands[0]);
    T* out = static_cast<T*>(operands[2]);
    for (size_t i = 0; i < indices_.size(); ++i) {
      const int64_t index = indices_.get(operands[1], i);
      const T* entry = blocks_.has(index) ? data + (index - blocks_.first) * blocks_.axis_stride : nullptr;
      for (size_t o = 0; o < blocks_.data_outer.size(); ++o) {
        copy(entry == nullptr ? nullptr : entry + blocks_.data_outer[o],
             out + blocks_.picked_outer[o] + blocks_.picked_index[i]);
      }
    }
  }

 private:
  void copy(const T* from, T* to) const {
    const size_t n = blocks_.data_inner.size();
    if (blocks_.contiguous && from != nullptr) {
      std::memcpy(to, from, n * sizeof(T));
    } else {
      for (size_t e = 0; e < n; ++e)
        to[blocks_.picked_inner[e]] = from == nullptr ? T(0) : from[blocks_.data_inner[e]];
    }
  }

  Indices indices_;
  Blocks blocks_;
};

FF_TARGET_CLONES void add_row(const float* from, float* to, int64_t n) {
  for (int64_t e = 0; e < n; ++e) to[e] += from[e];
}
void add_row(const double* from, double* to, int64_t n) {
  for (int64_t e = 0; e < n; ++e) to[e] += from[e];
}

/// Operands: indices, dy, ddata. In the order of the indices, so that the sum is the same every time.
template <typename T>
class GatherGrad final : public Kernel {
 public:
  explicit GatherGrad(const KernelCall& call)
      : indices_(call, 0),
        blocks_(call, call.operands[2], call.operands[1], call.operands[0].shape.size()),
        elements_(volume(call.operands[2].shape)) {}

  void run(std::span<void* const> operands, void*, const RunContext&) override {
    const T* dy = static_cast<const T*>(operands[1]);
    T* out = static_cast<T*>(operands[2]);
    std::fill_n(out, elements_, T(0));
    const auto n = static_cast<int64_t>(blocks_.data_inner.size());
    for (size_t i = 0; i < indices_.size(); ++i) {
      const int64_t index = indices_.get(operands[0], i);
      if (!blocks_.has(index)) continue;
      T* entry = out + (index - blocks_.first) * blocks_.axis_stride;
      for (size_t o = 0; o < blocks_.data_outer.size(); ++o) {
        const T* from = dy + blocks_.picked_outer[o] + blocks_.picked_index[i];
        T* to = entry + blocks_.data_outer[o];
        if (blocks_.contiguous) {
          add_row(from, to, n);
        } else {
          for (size_t e = 0; e < static_cast<size_t>(n); ++e)
            to[blocks_.data_inner[e]] += from[blocks_.picked_inner[e]];
        }
      }
    }
  }

 private:
  Indices indices_;
  Blocks blocks_;
  int64_t elements_;
};

std::unique_ptr<Kernel> make_gather(const KernelCall& call) {
  switch (size_of(call.operands[0].dtype)) {
    case 1:
      return std::make_unique<Gather<uint8_t>>(call);
    case 2:
      return std::make_unique<Gather<uint16_t>>(call);
    case 4:
      return std::make_unique<Gather<uint32_t>>(call);
    default:
      return std::make_unique<Gather<uint64_t>>(call);
  }
}

template <typename T>
std::unique_ptr<Kernel> make_gather_grad(const KernelCall& call) {
  return std::make_unique<GatherGrad<T>>(call);
}

}  // namespace

void register_gather(Registry& registry) {
  registry.add_any("Gather", make_gather);
  registry.add_reference("GatherGrad", make_gather_grad<float>, make_gather_grad<double>);
}

}  // namespace ff::cpu
