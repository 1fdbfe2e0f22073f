#include "executor/kernels/cpu/weight_reorder.h"

namespace ff::cpu {
namespace {

constexpr int64_t kInputs = 16;  // a tile: a block of outputs by as many inputs by the window, which fits L1

}  // namespace

std::optional<BlockedWeights> BlockedWeights::recognise(const DnnlDesc& plain, const DnnlDesc& blocked) {
  using Tag = dnnl::memory::format_tag;
  const DnnlDims dims = dims_of(plain);
  if (dims.size() != 4 || dims[1] % kInputs != 0 || plain != DnnlDesc(dims, type_of(plain), Tag::abcd) ||
      type_of(plain) != dnnl::memory::data_type::f32)
    return {};
  const auto is = [&](Tag tag) { return blocked == DnnlDesc(dims, type_of(plain), tag); };
  BlockedWeights w;
  w.outputs_ = dims[0], w.inputs_ = dims[1], w.window_ = dims[2] * dims[3];
  if (is(Tag::ABcd16b16a)) {
    w.block_ = 16;
    w.input_step_ = 16, w.window_step_ = 256;
    w.input_block_step_ = w.window_ * 256;
    w.output_block_step_ = w.inputs_ / 16 * w.input_block_step_;
    return w;
  }
  w.block_ = is(Tag::Acdb16a)   ? 16
             : is(Tag::Acdb32a) ? 32
             : is(Tag::Acdb48a) ? 48
             : is(Tag::Acdb64a) ? 64
                                : 0;
  if (w.block_ == 0) return {};
  w.input_step_ = w.block_, w.input_block_step_ = kInputs * w.block_;
  w.window_step_ = w.inputs_ * w.block_;
  w.output_block_step_ = w.window_ * w.window_step_;
  return w;
}

void BlockedWeights::pack(const float* plain, float* blocked) const {
  for (int64_t first = 0; first < outputs_; first += block_, blocked += output_block_step_) {
    for (int64_t at = 0; at < inputs_; at += kInputs) {
      float* tile = blocked + at / kInputs * input_block_step_;
      for (int64_t o = 0; o < block_; ++o) {
        const float* row = plain + ((first + o) * inputs_ + at) * window_;
        const bool padding = first + o >= outputs_;
        for (int64_t i = 0; i < kInputs; ++i) {
          for (int64_t s = 0; s < window_; ++s)
            tile[s * window_step_ + i * input_step_ + o] = padding ? 0.0F : row[i * window_ + s];
        }
      }
    }
  }
}

void BlockedWeights::unpack(const float* blocked, float* plain) const {
  for (int64_t first = 0; first < outputs_; first += block_, blocked += output_block_step_) {
    for (int64_t at = 0; at < inputs_; at += kInputs) {
      const float* tile = blocked + at / kInputs * input_block_step_;
      for (int64_t o = 0; o < std::min(block_, outputs_ - first); ++o) {
        float* row = plain + ((first + o) * inputs_ + at) * window_;
        for (int64_t i = 0; i < kInputs; ++i) {
          for (int64_t s = 0; s < window_; ++s)
            row[i * window_ + s] = tile[s * window_step_ + i * input_step_ + o];
        }
      }
    }
  }
}

}  // namespace ff::cpu
