// What becomes of one vector: run on one rank and on three, and compared with the reference.
#pragma once

#include "test/conformance/vectors.h"

namespace ff::conformance {

struct Outcome {
  enum class Kind : uint8_t { passed, refused, wrong } kind = Kind::passed;
  std::string text;  // the error, or what differs
};

/// Inputs that must be known when a model is compiled (axes, shapes) are made initializers where the compiler
/// says so. A value that is known altogether is seen through a sum with an input of zeros.
Outcome run_vector(const Vector& vector);

}  // namespace ff::conformance
