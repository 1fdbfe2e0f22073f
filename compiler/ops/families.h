// The rows of each family of ops; op_table.cc puts them together.
#pragma once

#include <span>

#include "compiler/ops/op_table.h"

namespace ff {

std::span<const OpDef> conv_ops();
std::span<const OpDef> normalization_ops();
std::span<const OpDef> pool_ops();

}  // namespace ff
