// The gradient of a convolution's weights from the blocks that oneDNN's AVX-512 kernels leave it in to the
// plan's order: what oneDNN's own reorder takes several times as long for. Internal to this room.
//
//   if (const auto blocks = BlockedWeights::recognise(pd.diff_weights_desc(), w)) blocks->unpack(blocked,
//   plain);
#pragma once

#include <cstdint>
#include <optional>

#include "executor/kernels/cpu/onednn.h"

namespace ff::cpu {

/// Blocks of 16 output by 16 input channels, the output channels innermost (OIhw16i16o).
class BlockedWeights {
 public:
  /// `plain`: [outputs][inputs][height][width] in f32. Nothing if `blocked` is another order.
  static std::optional<BlockedWeights> recognise(const DnnlDesc& blocked, const DnnlDesc& plain);

  void unpack(const float* blocked, float* plain) const;

 private:
  int64_t outputs_ = 0, inputs_ = 0, window_ = 0;
};

}  // namespace ff::cpu
