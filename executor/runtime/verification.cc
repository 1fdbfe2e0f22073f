#include "executor/runtime/verification.h"

#include <cmath>
#include <limits>

#include "compiler/base/model_data.h"

namespace ff {
namespace {

/// |got - want| / |want|; the difference itself where `want` is all zero.
double relative_difference(const std::string& got, const std::string& want, DType type) {
  const int64_t count = static_cast<int64_t>(want.size()) / size_of(type);
  double difference = 0;
  double norm = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double a = element_as_double(got, type, i);
    const double b = element_as_double(want, type, i);
    difference += (a - b) * (a - b);
    norm += b * b;
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

}  // namespace

double tolerance_of(DType type) {
  if (type == DType::f64) return 1e-9;
  return is_float(type) ? 1e-3 : 0;
}

Comparison compare(const std::vector<Parameter>& parameters, const ParameterValues& got,
                   const ParameterValues& want) {
  Comparison out;
  for (const Parameter& p : parameters) {
    const auto b = want.find(p.name);
    if (b == want.end()) continue;  // of evaluation alone
    const auto a = got.find(p.name);
    const bool there = a != got.end() && a->second.size() == b->second.size();
    const double difference =
        there ? relative_difference(a->second, b->second, p.dtype) : std::numeric_limits<double>::infinity();
    const double tolerance = tolerance_of(p.dtype);
    if (!(difference <= tolerance)) out.within = false;  // a NaN is no agreement
    if (out.parameter.empty() || difference > out.worst || std::isnan(difference)) {
      out.worst = difference;
      out.parameter = p.name;
      out.tolerance = tolerance;
      if (std::isnan(difference)) break;
    }
  }
  return out;
}

}  // namespace ff
