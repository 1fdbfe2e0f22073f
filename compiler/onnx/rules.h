// The rules of the translation table, by family.
#pragma once

#include <algorithm>

#include "compiler/base/check.h"
#include "compiler/onnx/importer.h"

namespace ff::onnx_import {

void import_average_pool(Node& node);
void import_batch_normalization(Node& node);
void import_conv(Node& node);
void import_conv_transpose(Node& node);
void import_global_average_pool(Node& node);
void import_global_lp_pool(Node& node);
void import_global_max_pool(Node& node);
void import_lp_pool(Node& node);
void import_lrn(Node& node);
void import_max_pool(Node& node);

void import_binary(Node& node);
void import_cast(Node& node);
void import_cast_like(Node& node);
void import_clip(Node& node);
void import_extremum(Node& node);
void import_function(Node& node);
void import_gelu(Node& node);
void import_is_infinite(Node& node);
void import_mean(Node& node);
void import_mod(Node& node);
void import_parametrised(Node& node);
void import_pow(Node& node);
void import_shrink(Node& node);
void import_sum(Node& node);
void import_where(Node& node);

void import_group_normalization(Node& node);
void import_instance_normalization(Node& node);
void import_layer_normalization(Node& node);
void import_lp_normalization(Node& node);
void import_mean_variance_normalization(Node& node);
void import_reduce_l1(Node& node);
void import_reduce_l2(Node& node);
void import_reduce_log_sum(Node& node);
void import_reduce_log_sum_exp(Node& node);
void import_reduce_max(Node& node);
void import_reduce_mean(Node& node);
void import_resize(Node& node);
void import_reduce_min(Node& node);
void import_reduce_prod(Node& node);
void import_reduce_sum(Node& node);
void import_reduce_sum_square(Node& node);
void import_upsample(Node& node);

void import_attention(Node& node);
void import_einsum(Node& node);
void import_rotary_embedding(Node& node);

void import_nll(Node& node);
void import_softmax_cross_entropy(Node& node);

void import_recurrent(Node& node);

void import_concat(Node& node);
void import_depth_to_space(Node& node);
void import_flatten(Node& node);
void import_pad(Node& node);
void import_reshape(Node& node);
void import_slice(Node& node);
void import_space_to_depth(Node& node);
void import_squeeze(Node& node);
void import_transpose(Node& node);
void import_unsqueeze(Node& node);

void import_arg_max(Node& node);
void import_arg_min(Node& node);
void import_cumsum(Node& node);
void import_expand(Node& node);
/// Nodes that are folded or refused.
void import_folded_only(Node& node);
void import_gather(Node& node);
void import_gather_elements(Node& node);
void import_gather_nd(Node& node);
void import_one_hot(Node& node);
void import_reverse_sequence(Node& node);
void import_scatter_elements(Node& node);
void import_scatter_nd(Node& node);
void import_if(Node& node);
void import_loop(Node& node);
void import_split(Node& node);
void import_tile(Node& node);
void import_top_k(Node& node);
void import_trilu(Node& node);

/// An axis counted from the end if it is negative. UserError if there is none.
int64_t positive_axis(int64_t axis, size_t rank);

/// What a Slice node takes of each axis: elements starts, starts + steps, ... before ends (after them for a
/// negative step), clamped as ONNX says.
struct SliceRanges {
  Ints starts, ends, steps;
  int64_t count(size_t axis) const;
};
SliceRanges slice_ranges(const Node& node, const Shape& x);
/// The sizes of the parts that a Split node makes of an axis of this extent.
Ints split_sizes(const Node& node, int64_t extent);
/// The shapes that Unsqueeze, Squeeze and Flatten give.
Shape unsqueezed_shape(const Node& node, const Shape& x);
Shape squeezed_shape(const Node& node, const Shape& x);
Shape flattened_shape(const Node& node, const Shape& x);

}  // namespace ff::onnx_import
