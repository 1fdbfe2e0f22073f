// Functions of one element: activations and elementary functions. A row a function, and one for its gradient,
// which is a function of the result or of the input and of dy.
//
//   Gelu(d0:S, d1:A) x [d0, d1] -> y [d0, d1];   GeluGrad x, dy -> dx
#include "compiler/ops/elementwise.h"
#include "compiler/ops/families.h"

namespace ff {
namespace {

using namespace elementwise;

/// The derivative is zero where there is one.
void zero_gradient(const Op&, GradientBuilder&) {}

constexpr std::string_view kOfResult[][2] = {
    {"Relu", "ReluGrad"}, {"Sigmoid", "SigmoidGrad"}, {"Tanh", "TanhGrad"},
    {"Exp", "ExpGrad"},   {"Sqrt", "SqrtGrad"},       {"Reciprocal", "ReciprocalGrad"},
};

constexpr std::string_view kOfInput[][2] = {
    {"Abs", "AbsGrad"},
    {"Acos", "AcosGrad"},
    {"Acosh", "AcoshGrad"},
    {"Asin", "AsinGrad"},
    {"Asinh", "AsinhGrad"},
    {"Atan", "AtanGrad"},
    {"Atanh", "AtanhGrad"},
    {"Celu", "CeluGrad"},
    {"Clip", "ClipGrad"},
    {"Cos", "CosGrad"},
    {"Cosh", "CoshGrad"},
    {"Elu", "EluGrad"},
    {"Erf", "ErfGrad"},
    {"Gelu", "GeluGrad"},
    {"HardSigmoid", "HardSigmoidGrad"},
    {"HardSwish", "HardSwishGrad"},
    {"LeakyRelu", "LeakyReluGrad"},
    {"Log", "LogGrad"},
    {"Mish", "MishGrad"},
    {"Selu", "SeluGrad"},
    {"Shrink", "ShrinkGrad"},
    {"Sin", "SinGrad"},
    {"Sinh", "SinhGrad"},
    {"Softplus", "SoftplusGrad"},
    {"Softsign", "SoftsignGrad"},
    {"Square", "SquareGrad"},
    {"Swish", "SwishGrad"},
    {"Tan", "TanGrad"},
    {"ThresholdedRelu", "ThresholdedReluGrad"},
};

/// Functions that integers have too.
bool of_integers(std::string_view type) { return type == "Abs" || type == "Clip" || type == "Relu"; }

}  // namespace

std::span<const OpDef> function_ops() {
  static const std::vector<OpDef> rows = [] {
    std::vector<OpDef> out;
    for (const auto& [type, grad] : kOfResult) {
      out.push_back(row(type, of_integers(type) ? infer_same : infer_function, unary_gradient<true>));
      out.push_back(made_row(grad));
    }
    for (const auto& [type, grad] : kOfInput) {
      out.push_back(row(type, of_integers(type) ? infer_same : infer_function, unary_gradient<false>));
      out.push_back(made_row(grad));
    }
    for (std::string_view type : {"Ceil", "Floor", "Round"})
      out.push_back(row(type, infer_function, zero_gradient));
    out.push_back(row("Sign", infer_same, zero_gradient));
    return out;
  }();
  return rows;
}

}  // namespace ff
