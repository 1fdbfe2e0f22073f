// How a tensor of the graph is made of an initializer of the model.
#pragma once

#include <string>

#include "compiler/base/attributes.h"

namespace ff {

/// One step of a chain, applied in order to the initializer: "transpose" (perm), "reshape" (shape), "slice"
/// (axis, begin, end, step).
struct View {
  std::string kind;
  Attributes attributes;
  friend bool operator==(const View&, const View&) = default;
};

}  // namespace ff
