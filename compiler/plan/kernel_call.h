// A kernel call: what one instruction of a program computes, without saying where its operands lie. The
// compiler asks for its cost, the profiler times it, the executor makes a kernel of it: one description, so
// that the three cannot disagree.
//
//   conv of 16 images, local: {"conv", pads=[1,0,1,1] strides=[1,1] ..., x f32 16x64x28x29 last, w ..., y
//   ...}
//
// Attributes are local and resolved (local pads, 1/N, offsets for random numbers). Operands are dense: a
// region of a larger buffer is copied into one of its own first.
#pragma once

#include <string>
#include <vector>

#include "compiler/base/attributes.h"
#include "compiler/base/box.h"
#include "compiler/base/dtype.h"

namespace ff {

enum class Access : uint8_t { in, out, inout };

struct Operand {
  DType dtype = DType::f32;
  Layout layout = Layout::row_major;
  Access access = Access::in;
  Shape shape;  // local

  int64_t bytes() const { return volume(shape) * size_of(dtype); }
  friend bool operator==(const Operand&, const Operand&) = default;
};

struct KernelCall {
  std::string kernel;
  Attributes attributes;
  std::vector<Operand> operands;  // inputs in the op's order, then outputs; an absent one has shape {0}

  friend bool operator==(const KernelCall&, const KernelCall&) = default;
};

/// The place of an operand that this call does not use.
inline Operand absent_operand() { return {.shape = {0}}; }
inline bool is_absent(const Operand& operand) { return operand.shape.size() == 1 && operand.shape[0] == 0; }

/// "conv pads=[0,0,1,1] strides=[1,1] in f32:last:16x64x28x28 in f32:row:64x64x3x3 out f32:last:16x64x28x28":
/// the key of a profile, and how a program is printed.
std::string to_string(const KernelCall& call);

}  // namespace ff
