#include "executor/runtime/verification.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "compiler/base/model_data.h"

namespace ff {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kSmallestChange = 1e-3;  // of the mean of its kind
constexpr double kLastPlaces = 100;

double unit_of(DType type) {
  if (type == DType::f64) return std::numeric_limits<double>::epsilon();
  return type == DType::f32 ? std::numeric_limits<float>::epsilon() : 0x1p-8;
}

double norm(const std::string& values, DType type) {
  double sum = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(values.size()) / size_of(type); ++i) {
    const double v = element_as_double(values, type, i);
    sum += v * v;
  }
  return std::sqrt(sum);
}

double squared_distance(const std::string& a, const std::string& b, DType type) {
  const int64_t count = static_cast<int64_t>(a.size()) / size_of(type);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double d = element_as_double(a, type, i) - element_as_double(b, type, i);
    sum += d * d;
  }
  return sum;
}

const std::string* find(const ParameterValues& values, const Parameter& p) {
  const auto at = values.find(p.name);
  const auto bytes = static_cast<size_t>(volume(p.shape) * size_of(p.dtype));
  return at == values.end() || at->second.size() != bytes ? nullptr : &at->second;
}

/// The root mean square of what the steps changed, by kind of parameter.
using Changes = std::array<double, 3>;

Changes mean_changes(const std::vector<Parameter>& parameters, const ParameterValues& before,
                     const ParameterValues& want) {
  Changes sums{};
  Changes counts{};
  for (const Parameter& p : parameters) {
    const std::string* const a = find(before, p);
    const std::string* const b = find(want, p);
    if (a == nullptr || b == nullptr || !is_float(p.dtype)) continue;
    sums[static_cast<size_t>(p.kind)] += squared_distance(*a, *b, p.dtype);
    counts[static_cast<size_t>(p.kind)] += static_cast<double>(volume(p.shape));
  }
  for (size_t kind = 0; kind < sums.size(); ++kind)
    sums[kind] = counts[kind] > 0 ? std::sqrt(sums[kind] / counts[kind]) : 0;
  return sums;
}

double relative_difference(const Parameter& p, const std::string* before, const std::string* got,
                           const std::string& want, const Changes& changes) {
  if (before == nullptr || got == nullptr) return kInfinite;
  const double difference = std::sqrt(squared_distance(*got, want, p.dtype));
  if (difference == 0) return 0;
  double least = kSmallestChange * changes[static_cast<size_t>(p.kind)] *
                 std::sqrt(static_cast<double>(volume(p.shape)));
  if (is_float(p.dtype) && p.kind != ParameterKind::frozen)
    least = std::max(least, kLastPlaces * unit_of(p.dtype) * norm(want, p.dtype));
  const double change = std::max(least, std::sqrt(squared_distance(want, *before, p.dtype)));
  return change > 0 ? difference / change : kInfinite;
}

}  // namespace

double tolerance_of(DType type) {
  if (type == DType::f64) return 1e-6;
  return is_float(type) ? 0.05 : 0;
}

namespace {

/// Whether `a` says more than `b`: a failure more than none, then the larger difference (a NaN is one).
bool is_worse(const Comparison& a, const Comparison& b) {
  if (a.within != b.within) return !a.within;
  return b.parameter.empty() || !(a.worst <= b.worst);
}

}  // namespace

Comparison compare(const std::vector<Parameter>& parameters, const ParameterValues& before,
                   const ParameterValues& got, const ParameterValues& want) {
  const Changes changes = mean_changes(parameters, before, want);
  Comparison out;
  for (const Parameter& p : parameters) {
    const std::string* const expected = find(want, p);
    if (expected == nullptr) continue;  // of evaluation alone
    Comparison one{.worst = relative_difference(p, find(before, p), find(got, p), *expected, changes),
                   .parameter = p.name,
                   .tolerance = tolerance_of(p.dtype)};
    one.within = one.worst <= one.tolerance;  // a NaN is no agreement
    if (is_worse(one, out)) out = one;
  }
  return out;
}

Verifier::Verifier(const Plan& plan, const KernelFactory& make_kernel, const ParameterLoader& loader)
    : plan_(plan),
      reference_(std::make_unique<Interpreter>(*plan.reference, std::vector<std::vector<int32_t>>{},
                                               alone_.rank(0), make_kernel)) {
  load_parameters(plan.parameters, *reference_, loader);
  before_ = gather_parameters(plan.parameters, *reference_, alone_.rank(0)).values;
}

void Verifier::check(GatheredParameters got, const RunContext& context) {
  reference_->execute("reference", context);
  const ParameterValues want = gather_parameters(plan_.parameters, *reference_, alone_.rank(0)).values;
  const Comparison now = compare(plan_.parameters, before_, got.values, want);
  if (is_worse(now, found_)) found_ = now;
  for (std::string& name : got.differing_replicas) {
    if (std::find(differing_.begin(), differing_.end(), name) == differing_.end())
      differing_.push_back(std::move(name));
  }
  before_ = std::move(got.values);
  load_parameters(plan_.parameters, *reference_, values_loader(before_));
}

}  // namespace ff
