#include "test/ops/touched.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/base/check.h"

namespace ff::test {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

/// The smallest box around some elements.
Box hull_of(const std::vector<bool>& touched, const std::vector<size_t>& at, const Shape& shape) {
  std::vector<Range> ranges(shape.size(), {std::numeric_limits<int64_t>::max(), 0});
  bool any = false;
  for (size_t i = 0; i < at.size(); ++i) {
    if (!touched[i]) continue;
    any = true;
    auto rest = static_cast<int64_t>(at[i]);
    for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis]) {
      const int64_t index = rest % shape[axis];
      ranges[axis] = {std::min(ranges[axis].lo, index), std::max(ranges[axis].hi, index + 1)};
    }
  }
  return any ? Box::of_ranges(ranges) : Box({0}, {0});
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

Touched::Touched(const ValuedOp& op) : op_(op) {
  for (const Tensor& t : op.graph->tensors) {
    first_.push_back(elements_);
    elements_ += static_cast<size_t>(volume(t.shape));
  }
  pairs_.resize(elements_ * elements_);
  for (TensorId id : op.op().outputs) {
    if (id.valid())
      result_[id] = std::vector<double>(static_cast<size_t>(volume(op.tensor(id).shape)), kNothing);
  }
}

/// Values that make an element show: larger, smaller and nearer to 0, or every class.
std::vector<double> Touched::alternatives(TensorId id, double value) const {
  if (is_float(op_.tensor(id).dtype)) return {value + 10, value - 10, value / 4};
  std::vector<double> out;
  for (int64_t c = 0; c < op_.classes; ++c) {
    if (static_cast<double>(c) != value) out.push_back(static_cast<double>(c));
  }
  return out;
}

void Touched::combine(TensorId id, Combiner combiner, const Elements& at,
                      const std::vector<double>& written) {
  std::vector<double>& values = result_.at(id);
  for (size_t i = 0; i < at.size(); ++i) {
    double& value = values[at[i]];
    if (std::isnan(value)) {
      value = written[i];
    } else {
      value = combiner == Combiner::max ? std::max(value, written[i]) : value + written[i];
    }
  }
}

struct Touched::Trial {
  CellKernel kernel;
  std::vector<Elements> at;
  std::vector<std::vector<double>> given, plain;
};

Touched::Trial Touched::try_cell(const Cell& cell, cpu::Flavor flavor) {
  Trial trial{CellKernel(*op_.graph, op_.id, cell, flavor), {}, {}, {}};
  CellKernel& kernel = trial.kernel;
  const OpSpace space = space_of(*op_.graph, op_.id);
  const size_t inputs = op_.op().inputs.size();
  trial.at.resize(kernel.operands());
  trial.given.resize(kernel.operands());
  for (size_t i = 0; i < kernel.operands(); ++i) {
    if (!kernel.reads(i) && !kernel.writes(i)) continue;
    const Tensor& t = op_.tensor(kernel.tensor(i));
    trial.at[i] = elements_of(kernel.box(i), t.shape);
    for (size_t e : trial.at[i]) trial.given[i].push_back(kernel.reads(i) ? op_.values.at(t.name)[e] : 0);
  }
  trial.plain = kernel.run(trial.given, op_.context);
  for (size_t w = 0; w < kernel.operands(); ++w) {
    const Combiner combiner = w < inputs ? Combiner::sum : space.outputs[w - inputs].combiner;
    if (kernel.writes(w)) combine(kernel.tensor(w), combiner, trial.at[w], trial.plain[w]);
  }
  return trial;
}

void Touched::run(const Cell& cell, cpu::Flavor flavor) { try_cell(cell, flavor); }

std::vector<Box> Touched::add(const Cell& cell) {
  Trial trial = try_cell(cell, cpu::Flavor::reference);
  auto& [kernel, at, given, plain] = trial;
  const size_t n = kernel.operands();
  std::vector<std::vector<bool>> touched(n);
  for (size_t i = 0; i < n; ++i) touched[i].resize(at[i].size());
  for (size_t r = 0; r < n; ++r) {
    for (size_t e = 0; kernel.reads(r) && e < at[r].size(); ++e) {
      const double value = given[r][e];
      const size_t row = (first_[kernel.tensor(r).index()] + at[r][e]) * elements_;
      for (double other : alternatives(kernel.tensor(r), value)) {
        given[r][e] = other;
        const auto changed = kernel.run(given, op_.context);
        for (size_t w = 0; w < n; ++w) {
          for (size_t f = 0; f < changed[w].size(); ++f) {
            if (same(changed[w][f], plain[w][f])) continue;
            touched[r][e] = touched[w][f] = true;
            pairs_[row + first_[kernel.tensor(w).index()] + at[w][f]] = true;
          }
        }
      }
      given[r][e] = value;
    }
  }
  std::vector<Box> hulls;
  for (size_t i = 0; i < n; ++i) {
    const bool there = !at[i].empty();
    hulls.push_back(there ? hull_of(touched[i], at[i], op_.tensor(kernel.tensor(i)).shape) : Box({0}, {0}));
  }
  return hulls;
}

std::string Touched::element_name(size_t element) const {
  size_t t = first_.size();
  while (first_[--t] > element) continue;
  return op_.graph->tensors[t].name + "[" + std::to_string(element - first_[t]) + "]";
}

std::string Touched::missing(const Touched& whole) const {
  for (size_t i = 0; i < pairs_.size(); ++i) {
    if (whole.pairs_[i] && !pairs_[i])
      return element_name(i / elements_) + " with " + element_name(i % elements_);
  }
  return {};
}

}  // namespace ff::test
