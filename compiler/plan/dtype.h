// The element types that a plan's buffers have.
#pragma once

#include "compiler/base/dtype.h"  // IWYU pragma: export
