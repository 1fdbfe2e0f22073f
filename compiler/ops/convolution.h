// What the rows of convolution and of transposed convolution share: three tensors x, w and y of which two
// give the third, the dimensions n, co, h, w and ci over their products, and the map of each tensor.
//
//   x 32x3x224x224, w 64x3x7x7, stride 2, pads 3, y 32x64x112x112:
//   dims n=32 co=64 h=112 w=112 ci=3, x [n, ci, 2h-3+7, 2w-3+7], w [co, ci, :, :], y [n, co, h, w]
#pragma once

#include "compiler/ops/windows.h"

namespace ff {

/// The three tensors' shapes, and what follows from them.
struct Convolution {
  Shape x, w, y;
  int64_t group = 1;
  bool relu = false;
  Windows windows;

  OpSpace dims;  // without maps
  AccessMap x_map, w_map, y_map, b_map;
};

Convolution make_convolution(const Op& op, const Shape& x, const Shape& w, const Shape& y);

/// The products of a cell, twice; the bytes of its boxes.
Work conv_work_of(const Graph& g, const Op& op, const Cell& cell, const Convolution& c);

/// The call of `kernel` (Conv or one of its gradients). `x_operand`: where among the cell's boxes the image
/// stands whose windows are read or written.
KernelCall conv_call(const Graph& g, const Op& op, const Cell& cell, std::string_view kernel,
                     const Convolution& c, size_t x_operand);

}  // namespace ff
