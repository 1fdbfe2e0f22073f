// Vector functions beside the C library's in double precision.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "executor/kernels/cpu/vector_math.h"
#include "test/catch.h"

using namespace ff::cpu;

namespace {

/// The largest error over [-limit, limit], in units of the result's last place (of the smallest normal number
/// below that).
double worst_error(float (*function)(float), double (*exact)(double), float limit) {
  double worst = 0;
  for (int i = -200000; i <= 200000; ++i) {
    const float x = limit * static_cast<float>(i) / 200000.0F;
    const double wanted = exact(static_cast<double>(x));
    const double unit = std::max(std::abs(wanted), double{std::numeric_limits<float>::min()}) * 0x1p-24;
    worst = std::max(worst, std::abs(static_cast<double>(function(x)) - wanted) / unit);
  }
  return worst;
}

double exact_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

TEST_CASE("vector functions are within 8 half units of the last place") {
  CHECK(worst_error(vector_math::exp, std::exp, 87) < 4);
  CHECK(worst_error(vector_math::sigmoid, exact_sigmoid, 80) < 8);
  CHECK(worst_error(vector_math::tanh, std::tanh, 12) < 8);
  CHECK(worst_error(vector_math::erf, std::erf, 6) < 8);
}

TEST_CASE("vector functions keep to the ends of the numbers") {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  CHECK(vector_math::exp(-1e9F) == 0);
  CHECK(vector_math::exp(-kInfinite) == 0);
  CHECK(vector_math::exp(89.0F) == kInfinite);
  CHECK(vector_math::exp(kInfinite) == kInfinite);
  CHECK(std::isfinite(vector_math::exp(88.7F)));
  CHECK(vector_math::exp(0.0F) == 1);
  CHECK(std::isnan(vector_math::exp(std::nanf(""))));
  CHECK(vector_math::sigmoid(-1000.0F) == 0);
  CHECK(vector_math::sigmoid(1000.0F) == 1);
  CHECK(vector_math::tanh(-kInfinite) == -1);
  CHECK(vector_math::tanh(kInfinite) == 1);
  CHECK(vector_math::erf(kInfinite) == Approx(1));
  CHECK(std::isnan(vector_math::tanh(std::nanf(""))));
}

TEST_CASE("rows of exponentials are those of their elements") {
  std::vector<float> x, y(37);
  for (int i = 0; i < 37; ++i) x.push_back(std::sin(static_cast<float>(i)) * 3);
  CHECK(vector_math::max_row(x.data(), 37) == *std::max_element(x.begin(), x.end()));
  vector_math::exp_row(x.data(), 1.5F, 0.25F, 37, y.data());
  double sum = 0;
  for (size_t i = 0; i < 37; ++i) {
    sum += std::exp(double{x[i]} - 1.5);
    CHECK(y[i] == Approx(0.25 * std::exp(double{x[i]} - 1.5)));
  }
  CHECK(vector_math::sum_exp_row(x.data(), 1.5F, 37) == Approx(sum));
}
