// --verify: whether the ranks together computed what one device does, and whether replicas hold the same
// bits.
//
//   Comparison c = compare(plan.parameters, before, got, want);
//   c.worst      // 3.1e-7: the largest |got - want| / |want - before| of a parameter, norms over all its
//   elements
//
// Step by step: one device starts each step from the weights that the ranks had, so that a difference in one
// step is not what earlier ones made of rounding. Differences are measured against what the step changed, not
// against the weights: a wrong gradient shows at any learning rate. In single precision the tolerance is 5 %:
// the order of summation can turn one ReLU of a network on or off (one of 100,000 in a ResNet-18 at batch 4
// moved its weights' updates by 1 %), while a lost message or a wrong mean changes updates by tens of
// percent.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/plan/plan.h"
#include "executor/comm/thread_communicator.h"
#include "executor/runtime/interpreter.h"
#include "executor/runtime/parameters.h"

namespace ff {

struct Comparison {
  double worst = 0;
  std::string parameter;  // whose difference that is
  double tolerance = 0;   // of that parameter's type
  bool within = true;     // every parameter is within its tolerance, and no value is missing
};

/// 0.05 in f32 and less, 1e-6 in f64; whole numbers must be equal.
double tolerance_of(DType type);

/// `before`: the values that both began with. What is nearly unchanged is measured against a thousandth of
/// the mean change of its kind (the bias before a batch normalisation, whose gradient is zero but for
/// rounding) or a hundred units in the last place of the values.
Comparison compare(const std::vector<Parameter>& parameters, const ParameterValues& before,
                   const ParameterValues& got, const ParameterValues& want);

/// The plan's reference, running beside the ranks; on rank 0.
class Verifier {
 public:
  /// `plan`, which has a reference, must outlive this. `loader`: as the ranks'.
  Verifier(const Plan& plan, const KernelFactory& make_kernel, const ParameterLoader& loader);
  /// Whose inputs are to be filled for the next step, entry "reference".
  Interpreter& reference() { return *reference_; }
  /// Runs the step that took the ranks to `got`, compares, and goes on from `got`.
  void check(GatheredParameters got, const RunContext& context);
  /// The worst of all steps, and the parameters whose replicas differed after one.
  const Comparison& found() const { return found_; }
  const std::vector<std::string>& differing_replicas() const { return differing_; }
  bool passed() const { return found_.within && differing_.empty(); }

 private:
  const Plan& plan_;
  ThreadWorld alone_{1};
  std::unique_ptr<Interpreter> reference_;
  ParameterValues before_;
  Comparison found_;
  std::vector<std::string> differing_;
};

}  // namespace ff
