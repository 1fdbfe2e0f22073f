// The rules of the translation table, by family.
#pragma once

#include <algorithm>

#include "compiler/base/check.h"
#include "compiler/onnx/importer.h"

namespace ff::onnx_import {

void import_average_pool(Node& node);
void import_batch_normalization(Node& node);
void import_conv(Node& node);
void import_global_average_pool(Node& node);
void import_lrn(Node& node);
void import_max_pool(Node& node);
void import_reduce_mean(Node& node);

void import_concat(Node& node);
void import_flatten(Node& node);
void import_pad(Node& node);
void import_reshape(Node& node);
void import_slice(Node& node);
void import_squeeze(Node& node);
void import_transpose(Node& node);
void import_unsqueeze(Node& node);

}  // namespace ff::onnx_import
