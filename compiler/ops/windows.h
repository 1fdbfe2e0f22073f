// Windows over spatial axes, shared by convolution and pooling: attributes, sizes, access maps, and a cell's
// own padding.
//
// Kernel 3, stride 2, padding 1 on 56 rows gives 28. The map of output rows h is 2h-1+3. The cell of rows
// [14, 28) reads [27, 56) and has pads 0 and 0; that of rows [0, 14) reads [0, 28) and has pads 1 and 0.
//
// Kernel 1, stride 2 on 56 rows: no window reads row 55. The map is 2h+2, not 2h+1, so that the op reads its
// input whole (without a copy of 55 rows), and two halves read two halves.
#pragma once

#include <string>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/ops/op_space.h"
#include "compiler/ops/op_table.h"

namespace ff {

/// Windows over `kernel.size()` spatial axes; `pads` in ONNX order, begins before ends.
struct Windows {
  Ints kernel, strides, dilations, pads;

  size_t axes() const { return kernel.size(); }
  int64_t pad_begin(size_t axis) const { return pads[axis]; }
  int64_t pad_end(size_t axis) const { return pads[axes() + axis]; }
  /// Rows from the first to the last element of a window.
  int64_t reach(size_t axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
};

/// The windows of an op's attributes, with ONNX's defaults. Throws UserError on sizes that do not fit
/// together.
Windows windows_of(const Attributes& attributes, const Ints& kernel);

/// Output extents of windows over the spatial axes of `shape` (from axis 2). With `ceil_mode` a window may
/// begin inside the input or its begin padding and end outside; windows that begin past that are dropped.
/// Throws UserError if one is 0.
Ints output_extents(const Windows& windows, const Shape& shape, bool ceil_mode = false);

/// "h", "w" for two axes, "w" for one, "d", "h", "w" for three.
std::string spatial_name(size_t axes, size_t axis);

/// The map from output dimension `dim` to the input's spatial axis `axis`.
AxisMap window_map(int dim, const Windows& windows, size_t axis, int64_t input_extent, int64_t output_extent);

/// The padding that the cell's windows see at the ends of its clipped `box` of the input: one-sided at
/// borders. `map` is the input's access map.
Ints local_pads(const AccessMap& map, const Cell& cell, const Box& box);

/// Sets strides, dilations and local pads: what a kernel over windows is told.
void set_windows(Attributes& attributes, const Windows& windows, Ints pads);

/// The kernel call named `kernel` with the cell's boxes as operands and no attributes yet. A tensor that is
/// an input and an output is passed once, inout, at the input's place; at the output's place stands an absent
/// operand.
KernelCall call_of(const Graph& graph, const Op& op, const Cell& cell, std::string_view kernel);

/// Bytes of all boxes of a cell.
double bytes_of(const Graph& graph, const Op& op, const Cell& cell);

/// Elements of a cell's iteration space.
double cells_volume(const Cell& cell);

/// The shape of the op's input or output, which must be there.
const Shape& input_shape(const Graph& graph, const Op& op, size_t i);
const Shape& output_shape(const Graph& graph, const Op& op, size_t i);
inline bool has_input(const Op& op, size_t i) { return i < op.inputs.size() && op.inputs[i].valid(); }
inline bool has_output(const Op& op, size_t i) { return i < op.outputs.size() && op.outputs[i].valid(); }

/// The dimensions n, c and the spatial ones of an image tensor, all on their own axes; `names[1]` is the
/// channel's.
OpSpace image_dims(const Shape& shape, std::string_view channel = "c");
/// A map of each axis to the dimension of the same number.
AccessMap identity_map(size_t rank);
/// A vector along dimension `dim`.
inline AccessMap vector_map(int dim) { return {.axes = {AxisMap::identity(dim)}}; }

/// UserError unless the tensor is an image: rank 3 to 5.
void require_image(const Shape& shape, std::string_view what);

}  // namespace ff
