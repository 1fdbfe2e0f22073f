// The recommendation model DLRM (Naumov et al. 2019) at the sizes of its paper's measurements: 512 dense
// features, 8 categories of a million rows each, vectors of 64, 2 layers below and 4 above; the
// probability of a click.
#include "models/zoo.h"

namespace ff {
namespace {

constexpr int64_t kDense = 512;
constexpr int64_t kTables = 8;
constexpr int64_t kRows = 1000000;
constexpr int64_t kWidth = 64;

// Dot products of every pair of vectors, {pairs}: the places below the diagonal of X X^T.
Value interaction(Builder& net, const Value& vectors) {
  const int64_t count = vectors.shape[0];
  std::vector<int64_t> pairs;
  for (int64_t row = 1; row < count; ++row) {
    for (int64_t column = 0; column < row; ++column) pairs.push_back(row * count + column);
  }
  const Value products = net.matmul(vectors, net.transpose(vectors, {1, 0}));
  return net.entries(net.reshape(products, {count * count}), 0, pairs, "interaction.pairs");
}

}  // namespace

void build_dlrm(Builder& net, const ModelOptions& o) {
  const int64_t tables = size_or(o.tables, kTables), rows = size_or(o.vocabulary, kRows);
  const Value dense = net.input({kDense}, "dense");
  const Value categories = net.integer_input("categories", {tables});
  Value x = net.relu(net.linear("bottom.0", dense, 512));
  x = net.relu(net.linear("bottom.1", x, kWidth));
  std::vector<Value> vectors{net.reshape(x, {1, kWidth})};
  for (int64_t t = 0; t < tables; ++t) {
    const Value y =
        net.embedding("embeddings." + std::to_string(t), net.entry(categories, 0, t), rows, kWidth);
    vectors.push_back(net.reshape(y, {1, kWidth}));
  }
  x = net.concat({x, interaction(net, net.concat(vectors))});
  for (int layer = 0; layer < 3; ++layer) x = net.relu(net.linear("top." + std::to_string(layer), x, 1024));
  net.output(net.sigmoid(net.linear("top.3", x, 1)), "probability");
}

}  // namespace ff
