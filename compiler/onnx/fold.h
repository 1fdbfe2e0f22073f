// Constant folding: what exporters compute in the graph of shapes, axes, places and masks, from shapes that
// are all known once the batch is bound. Folds by family; each returns false for a node that is none of its
// own.
//
//   Reshape's target: Concat(Unsqueeze(Gather(Shape(x), 0)), [-1])   ->   [32, -1], for a batch of 32
#pragma once

#include <functional>
#include <vector>

#include "compiler/onnx/rules.h"

namespace ff::onnx_import {

using Constants = std::vector<Constant>;

/// Arithmetic, comparisons, Where, Cast, reductions: elementwise, with broadcasting.
bool fold_values(Node& node, const Constants& inputs);
/// Gather, Slice, Concat, Reshape and the like: elements moved about. Absent optional inputs are left to
/// Node.
bool fold_moves(Node& node, const Constants& inputs);

/// A constant of this type and shape whose element i is value(i).
Constant generate(DType dtype, Shape shape, const std::function<double(int64_t)>& value);
Constant generate_integers(DType dtype, Shape shape, const std::function<int64_t(int64_t)>& value);
/// Element i of the result is element from(i) of `x`.
Constant select(const Constant& x, Shape shape, const std::function<int64_t(int64_t)>& from);

/// A constant seen through the views of a weight.
Constant viewed(Constant c, const std::vector<View>& views);

/// The index of element `linear` of a tensor of `shape`, and back.
Shape index_of(int64_t linear, const Shape& shape);
int64_t linear_of(const Shape& index, const Shape& shape);
/// NumPy's broadcast of shapes. UserError if they do not fit.
Shape broadcast_shapes(const Shape& a, const Shape& b);
/// The element of a tensor of `shape` that broadcasting puts at `index` of a larger one.
int64_t broadcast_place(const Shape& index, const Shape& shape);

}  // namespace ff::onnx_import
