// --verify: whether the ranks together computed what one device does, and whether replicas hold the same
// bits.
//
//   Comparison c = compare(plan.parameters, got.values, want.values);
//   c.worst      // 3.1e-7: the largest |got - want| / |want| of a parameter, norms over all its elements
#pragma once

#include <string>
#include <vector>

#include "compiler/plan/plan.h"
#include "executor/runtime/parameters.h"

namespace ff {

struct Comparison {
  double worst = 0;
  std::string parameter;  // whose difference that is
  double tolerance = 0;   // of that parameter's type
  bool within = true;     // every parameter is within its tolerance, and no value is missing
};

/// Largest relative difference that is taken for rounding: 1e-3 in f32 and less, 1e-9 in f64; whole numbers
/// must be equal.
double tolerance_of(DType type);

Comparison compare(const std::vector<Parameter>& parameters, const ParameterValues& got,
                   const ParameterValues& want);

}  // namespace ff
