// Einsum, Attention and RotaryEmbedding beside what they are defined as, written out.
#include <cmath>
#include <functional>

#include "test/onnx/model_text.h"

using namespace ff;
using namespace ff::test;

namespace {

using Numbers = std::vector<double>;

/// Distinct numbers of both signs.
Numbers numbers(int64_t count, double start) {
  Numbers out;
  for (int64_t i = 0; i < count; ++i) out.push_back(std::sin(start + 1.7 * static_cast<double>(i)));
  return out;
}

/// The first output of a node of opset 24 on these inputs.
Numbers run(const std::string& signature, const Values& given) {
  onnx::ModelProto model = parse(signature);
  model.mutable_opset_import(0)->set_version(24);
  const Graph graph = import_written(model).graph;
  return values_of(graph, given).at(graph.tensor(graph.outputs.at(0)).name);
}

void check_close(const Numbers& got, const Numbers& expected) {
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(expected[i]).margin(1e-12));
}

}  // namespace

TEST_CASE("Einsum is the sum that its letters say") {
  const Numbers a = numbers(2 * 3 * 4, 0), b = numbers(2 * 4 * 5, 1);
  // bij,bjk->kbi: a batched product, its axes in another order.
  Numbers expected(5 * 2 * 3, 0);
  for (size_t n = 0; n < 2; ++n) {
    for (size_t i = 0; i < 3; ++i) {
      for (size_t j = 0; j < 4; ++j) {
        for (size_t k = 0; k < 5; ++k)
          expected[(k * 2 + n) * 3 + i] += a[(n * 3 + i) * 4 + j] * b[(n * 4 + j) * 5 + k];
      }
    }
  }
  check_close(run("(float[2, 3, 4] a, float[2, 4, 5] b) => (float[5, 2, 3] y) { y = Einsum <equation = "
                  "\"bij, bjk -> kbi\"> (a, b) }",
                  {{"a", a}, {"b", b}}),
              expected);
  // Without an arrow the letters that stand once are the result: i and k of ij,jk.
  Numbers product(3 * 5, 0);
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 4; ++j) {
      for (size_t k = 0; k < 5; ++k) product[i * 5 + k] += a[i * 4 + j] * b[j * 5 + k];
    }
  }
  check_close(
      run("(float[3, 4] a, float[4, 5] b) => (float[3, 5] y) { y = Einsum <equation = \"ij,jk\"> (a, b) }",
          {{"a", {a.begin(), a.begin() + 12}}, {"b", {b.begin(), b.begin() + 20}}}),
      product);
}

TEST_CASE("Einsum sums what one operand alone has and takes dots and three operands") {
  const Numbers a = numbers(2 * 3, 0), b = numbers(3, 1), c = numbers(4, 2);
  Numbers outer(2 * 4, 0);
  for (size_t i = 0; i < 2; ++i) {
    for (size_t k = 0; k < 4; ++k) {
      for (size_t j = 0; j < 3; ++j) outer[i * 4 + k] += a[i * 3 + j] * b[j] * c[k];
    }
  }
  check_close(run("(float[2, 3] a, float[3] b, float[4] c) => (float[2, 4] y) { y = Einsum <equation = "
                  "\"ij,j,k->ik\"> (a, b, c) }",
                  {{"a", a}, {"b", b}, {"c", c}}),
              outer);
  check_close(
      run("(float[2, 3] a) => (float[2] y) { y = Einsum <equation = \"...j->...\"> (a) }", {{"a", a}}),
      {a[0] + a[1] + a[2], a[3] + a[4] + a[5]});
}

TEST_CASE("Attention is softmax of scaled products times the values") {
  constexpr size_t kHeads = 2, kGroups = 1, kQueries = 3, kKeys = 3, kSize = 2;
  const Numbers q = numbers(static_cast<int64_t>(kQueries * kHeads * kSize), 0);
  const Numbers k = numbers(static_cast<int64_t>(kKeys * kGroups * kSize), 1);
  const Numbers v = numbers(static_cast<int64_t>(kKeys * kGroups * kSize), 2);
  // Causal, one head of keys for two of queries, scores capped at 0.8.
  Numbers expected(q.size(), 0);
  for (size_t h = 0; h < kHeads; ++h) {
    for (size_t i = 0; i < kQueries; ++i) {
      Numbers weights;
      double sum = 0;
      for (size_t j = 0; j <= i; ++j) {
        double score = 0;
        for (size_t d = 0; d < kSize; ++d)
          score += q[(i * kHeads + h) * kSize + d] * k[j * kSize + d] / std::sqrt(2.0);
        weights.push_back(std::exp(0.8 * std::tanh(score / 0.8)));
        sum += weights.back();
      }
      for (size_t j = 0; j <= i; ++j) {
        for (size_t d = 0; d < kSize; ++d)
          expected[(i * kHeads + h) * kSize + d] += weights[j] / sum * v[j * kSize + d];
      }
    }
  }
  const Numbers got =
      run("(float[1, 3, 4] q, float[1, 3, 2] k, float[1, 3, 2] v) => (float[1, 3, 4] y) { y = Attention "
          "<q_num_heads = 2, "
          "kv_num_heads = 1, is_causal = 1, softcap = 0.8> (q, k, v) }",
          {{"q", q}, {"k", k}, {"v", v}});
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    CHECK(got[i] == Approx(expected[i]).margin(1e-6));  // 0.8 in single precision
}

TEST_CASE("RotaryEmbedding turns pairs by the angle of their position") {
  const Numbers x = numbers(2 * 6, 0);  // two positions of one head of six, four of which turn
  Numbers cos, sin;
  for (int i = 0; i < 4; ++i) cos.push_back(std::cos(0.3 + i)), sin.push_back(std::sin(0.3 + i));
  for (bool interleaved : {false, true}) {
    Numbers expected = x;
    for (size_t position = 0; position < 2; ++position) {
      for (size_t pair = 0; pair < 2; ++pair) {
        const size_t a = position * 6 + (interleaved ? 2 * pair : pair), b = a + (interleaved ? 1 : 2);
        const double c = cos[position * 2 + pair], s = sin[position * 2 + pair];
        expected[a] = x[a] * c - x[b] * s;
        expected[b] = x[a] * s + x[b] * c;
      }
    }
    check_close(run("(float[1, 1, 2, 6] x, float[1, 2, 2] c, float[1, 2, 2] s) => (float[1, 1, 2, 6] y) { y "
                    "= RotaryEmbedding "
                    "<rotary_embedding_dim = 4, interleaved = " +
                        std::to_string(interleaved) + "> (x, c, s) }",
                    {{"x", x}, {"c", cos}, {"s", sin}}),
                expected);
  }
}
