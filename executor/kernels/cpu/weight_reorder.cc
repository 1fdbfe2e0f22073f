#include "executor/kernels/cpu/weight_reorder.h"

namespace ff::cpu {
namespace {

constexpr int64_t kBlock = 16;

}  // namespace

std::optional<BlockedWeights> BlockedWeights::recognise(const DnnlDesc& blocked, const DnnlDesc& plain) {
  using Tag = dnnl::memory::format_tag;
  const DnnlDims dims = dims_of(plain);
  constexpr auto kType = dnnl::memory::data_type::f32;
  if (dims.size() != 4 || dims[0] % kBlock != 0 || dims[1] % kBlock != 0 ||
      plain != DnnlDesc(dims, kType, Tag::oihw) || blocked != DnnlDesc(dims, kType, Tag::OIhw16i16o))
    return {};
  BlockedWeights w;
  w.outputs_ = dims[0], w.inputs_ = dims[1], w.window_ = dims[2] * dims[3];
  return w;
}

void BlockedWeights::unpack(const float* blocked, float* plain) const {
  for (int64_t o_block = 0; o_block < outputs_; o_block += kBlock) {
    for (int64_t i_block = 0; i_block < inputs_; i_block += kBlock, blocked += window_ * kBlock * kBlock) {
      for (int64_t o = 0; o < kBlock; ++o) {
        float* row = plain + ((o_block + o) * inputs_ + i_block) * window_;
        for (int64_t i = 0; i < kBlock; ++i) {
          for (int64_t s = 0; s < window_; ++s) *row++ = blocked[(s * kBlock + i) * kBlock + o];
        }
      }
    }
  }
}

}  // namespace ff::cpu
