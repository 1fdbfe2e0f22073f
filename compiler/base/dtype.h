// Element types and memory layouts of tensors.
#pragma once

#include <cstdint>
#include <string_view>

namespace ff {

enum class DType : uint8_t { f64, f32, bf16, f16, i64, i32, u8, boolean };

/// Bytes of one element.
constexpr int64_t size_of(DType type) {
  switch (type) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::u8:
    case DType::boolean:
      return 1;
  }
  return 0;
}

constexpr std::string_view name(DType type) {
  constexpr std::string_view kNames[] = {"f64", "f32", "bf16", "f16", "i64", "i32", "u8", "bool"};
  return kNames[static_cast<int>(type)];
}

constexpr bool is_float(DType type) { return type <= DType::f16; }

/// The order of a tensor's dimensions in memory; the logical order is always ONNX's. Channels-last moves
/// dimension 1 (the channel) behind the others, so that [N, C, H, W] lies as NHWC; a tensor of rank 2 or less
/// has one order only.
enum class Layout : uint8_t { row_major, channels_last };

constexpr std::string_view name(Layout layout) { return layout == Layout::row_major ? "row" : "last"; }

}  // namespace ff
