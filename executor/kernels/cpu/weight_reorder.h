// Weights of a convolution between the plan's order and the blocks of oneDNN's AVX-512 kernels: what oneDNN's
// own reorders take several times as long for. Internal to this room.
//
//   if (const auto blocks = BlockedWeights::recognise(w, pd.weights_desc())) blocks->pack(dense, packed);
#pragma once

#include <cstdint>
#include <optional>

#include "executor/kernels/cpu/onednn.h"

namespace ff::cpu {

/// Output and input channels in blocks, the output channels of a block innermost.
class BlockedWeights {
 public:
  /// `plain`: [outputs][inputs][window], not grouped, f32. Nothing if `blocked` is none of the orders known
  /// here.
  static std::optional<BlockedWeights> recognise(const DnnlDesc& plain, const DnnlDesc& blocked);

  void pack(const float* plain, float* blocked) const;
  void unpack(const float* blocked, float* plain) const;

 private:
  int64_t outputs_ = 0, inputs_ = 0, window_ = 0, block_ = 0;
  // Elements of the blocked order between neighbours: blocks of outputs, 16 inputs, places of the window,
  // inputs.
  int64_t output_block_step_ = 0, input_block_step_ = 0, window_step_ = 0, input_step_ = 0;
};

}  // namespace ff::cpu
