// Kernels that are one template for every element type.
//
//   with_element(operand.dtype, [&](auto zero) { run_as<decltype(zero)>(call, operands); });
#pragma once

#include <cstdint>

#include "compiler/base/check.h"
#include "compiler/base/dtype.h"

namespace ff::cpu {

/// Calls body with a zero of the type.
template <typename Body>
void with_element(DType type, Body&& body) {
  switch (type) {
    case DType::f64:
      return body(double{0});
    case DType::f32:
      return body(float{0});
    case DType::i64:
      return body(int64_t{0});
    case DType::i32:
      return body(int32_t{0});
    case DType::u8:
    case DType::boolean:
      return body(uint8_t{0});
    default:
      FF_CHECK(false) << "elements of type " << name(type);
  }
}

}  // namespace ff::cpu
