// Identity, Reshape, Transpose and Concat: element moves, for every type and layout.

#include "executor/kernels/cpu/image.h"
#include "executor/kernels/cpu/moves.h"
#include "executor/kernels/cpu/registry.h"
#include "executor/kernels/cpu/strides.h"

namespace ff::cpu {
namespace {

/// Elements in the logical order of both shapes. Where one side is row-major, the other's shape does for
/// both.
void reshape(const KernelCall& call, std::span<void* const> operands) {
  const Operand& x = call.operands[0];
  const Operand& y = call.operands[1];
  const Shape xs = dense_strides(x.shape, x.layout);
  const Shape ys = dense_strides(y.shape, y.layout);
  const int64_t bytes = size_of(x.dtype);
  if (y.layout == Layout::row_major || y.shape.size() < 3) {
    move(operands[0], xs, operands[1], dense_strides(x.shape, Layout::row_major), x.shape, bytes);
  } else if (x.layout == Layout::row_major || x.shape.size() < 3) {
    move(operands[0], dense_strides(y.shape, Layout::row_major), operands[1], ys, y.shape, bytes);
  } else {
    // Both are images: element by element.
    const auto* in = static_cast<const char*>(operands[0]);
    auto* out = static_cast<char*>(operands[1]);
    const auto place = [](int64_t n, const Shape& shape, const Shape& strides) {
      int64_t at = 0;
      for (size_t axis = shape.size(); axis-- > 0;) {
        at += n % shape[axis] * strides[axis];
        n /= shape[axis];
      }
      return at;
    };
    for (int64_t n = 0; n < volume(x.shape); ++n) {
      std::copy_n(in + place(n, x.shape, xs) * bytes, bytes, out + place(n, y.shape, ys) * bytes);
    }
  }
}

void identity(const KernelCall& call, std::span<void* const> operands) {
  const Operand& x = call.operands[0];
  const Operand& y = call.operands[1];
  move(operands[0], dense_strides(x.shape, x.layout), operands[1], dense_strides(y.shape, y.layout), x.shape,
       size_of(x.dtype));
}

void transpose(const KernelCall& call, std::span<void* const> operands) {
  const Operand& x = call.operands[0];
  const Operand& y = call.operands[1];
  const Ints& perm = call.attributes.ints("perm");
  const Shape strides = dense_strides(x.shape, x.layout);
  Shape moved;
  for (int64_t p : perm) moved.push_back(strides[static_cast<size_t>(p)]);
  move(operands[0], moved, operands[1], dense_strides(y.shape, y.layout), y.shape, size_of(x.dtype));
}

void concat(const KernelCall& call, std::span<void* const> operands) {
  const Operand& y = call.operands.back();
  const auto axis = static_cast<size_t>(call.attributes.integer("axis"));
  const Ints& offsets = call.attributes.ints("offsets");
  const Shape strides = dense_strides(y.shape, y.layout);
  auto* out = static_cast<char*>(operands.back());
  for (size_t i = 0; i + 1 < call.operands.size(); ++i) {
    const Operand& x = call.operands[i];
    if (is_absent(x)) continue;
    move(operands[i], dense_strides(x.shape, x.layout), out + offsets[i] * strides[axis] * size_of(y.dtype),
         strides, x.shape, size_of(y.dtype));
  }
}

}  // namespace

void register_reference_shape(Registry& registry) {
  registry.add_any("Identity", make_loop_kernel<identity>);
  registry.add_any("Reshape", make_loop_kernel<reshape>);
  registry.add_any("Transpose", make_loop_kernel<transpose>);
  registry.add_any("Concat", make_loop_kernel<concat>);
}

}  // namespace ff::cpu
