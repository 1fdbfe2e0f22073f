// The rows of each family of ops; op_table.cc puts them together.
#pragma once

#include <span>

#include "compiler/ops/op_table.h"

namespace ff {

std::span<const OpDef> along_axis_ops();
std::span<const OpDef> conv_ops();
std::span<const OpDef> conv_transpose_ops();
std::span<const OpDef> element_ops();
std::span<const OpDef> elementwise_ops();
std::span<const OpDef> expand_ops();
std::span<const OpDef> function_ops();
std::span<const OpDef> gather_nd_ops();
std::span<const OpDef> gather_ops();
std::span<const OpDef> layer_norm_ops();
std::span<const OpDef> logic_ops();
std::span<const OpDef> loss_ops();
std::span<const OpDef> matmul_ops();
std::span<const OpDef> normalization_ops();
std::span<const OpDef> pool_ops();
std::span<const OpDef> recurrent_ops();
std::span<const OpDef> reduce_ops();
std::span<const OpDef> resize_ops();
std::span<const OpDef> shape_ops();
std::span<const OpDef> softmax_ops();
std::span<const OpDef> update_ops();

}  // namespace ff
