// Weights and state in the persistent regions of the ranks: loading them by region, and bringing them
// together.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "executor/runtime/interpreter.h"

namespace ff {

/// Writes the elements of `box` of a parameter's initial value, dense and row-major, as the parameter's type.
using ParameterLoader = std::function<void(const Parameter&, const Box&, void*)>;

/// A loader of what stands in the plan itself, values by which a parameter is filled and short ones given in
/// full; the others come from `model`.
ParameterLoader plan_loader(ParameterLoader model);

/// Fills every persistent buffer. UserError from the loader; InternalError for a buffer of no parameter.
void load_parameters(const std::vector<Parameter>& parameters, Interpreter& interpreter,
                     const ParameterLoader& loader);

/// Whole parameters by name: dense, row-major.
using ParameterValues = std::map<std::string, std::string>;

/// A loader of such values, which must outlive it. InternalError for a parameter that is not there.
ParameterLoader values_loader(const ParameterValues& values);

struct GatheredParameters {
  ParameterValues values;
  std::vector<std::string>
      differing_replicas;  // parameters of which two ranks hold different bits of one element
};

/// Brings every parameter of the given kinds to rank 0; the other ranks get nothing. Called by all ranks.
GatheredParameters gather_parameters(const std::vector<Parameter>& parameters, Interpreter& interpreter,
                                     Communicator& comm);

/// Copies a dense region between layouts: `box` of a row-major tensor of `shape` to or from a dense buffer
/// with `layout`.
void copy_region(char* whole, const Shape& shape, const Box& box, char* dense, Layout layout,
                 int64_t element_bytes, bool to_whole);

}  // namespace ff
