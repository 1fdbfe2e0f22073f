// What an importer needs of windows: ONNX's auto_pad, which the op table's rows do not know.
//
//   resolve_auto_pad("SAME_UPPER", {1, 3, 5, 5}, {2, 2}, {1, 1}, {1, 1})     // {0, 0, 1, 1}
#pragma once

#include <string_view>

#include "compiler/base/attributes.h"
#include "compiler/base/box.h"

namespace ff {

/// ONNX's auto_pad as explicit pads. `mode`: SAME_UPPER, SAME_LOWER or VALID; others are a UserError.
Ints resolve_auto_pad(std::string_view mode, const Shape& x, const Ints& kernel, const Ints& strides,
                      const Ints& dilations);

}  // namespace ff
