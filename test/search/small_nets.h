// Training graphs of a few ops, small enough to try every strategy.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compiler/graph/graph.h"

namespace ff::test {

/// Convolutions of 1x1 over `batch` images of `size` x `size`, each with a gradient and an update of its
/// weight; pools of 1x1 windows stand in for the elementwise ops.
struct SmallNet {
  Graph graph;
  std::vector<OpId> ops;  // forward

  TensorId tensor(const std::string& name, Shape shape, TensorKind kind) {
    Tensor t;
    t.name = name;
    t.shape = std::move(shape);
    t.kind = kind;
    t.batch_axis = kind == TensorKind::parameter || name[0] == 'g' ? -1 : 0;
    return graph.add_tensor(std::move(t));
  }
  OpId op(const std::string& name, const std::string& type, std::vector<TensorId> inputs, TensorId output,
          Phase phase = Phase::forward, OpId config_of = {}) {
    Op op;
    op.name = name;
    op.type = type;
    op.inputs = std::move(inputs);
    op.outputs = {output};
    op.phase = phase;
    op.config_of = config_of;
    if (type == "AveragePool") op.attributes.set("kernel_shape", Ints{1, 1});
    const OpId id = graph.add_op(std::move(op));
    if (phase == Phase::forward) ops.push_back(id);
    return id;
  }
};

/// conv1 -> pool -> conv2.
inline SmallNet chain_net(int64_t batch, int64_t size) {
  SmallNet n;
  n.graph.batch = batch;
  const Shape image{batch, 4, size, size};
  const auto x = n.tensor("x", image, TensorKind::input);
  const auto w1 = n.tensor("w1", {4, 4, 1, 1}, TensorKind::parameter);
  const auto w2 = n.tensor("w2", {4, 4, 1, 1}, TensorKind::parameter);
  const auto y1 = n.tensor("y1", image, TensorKind::activation);
  const auto z1 = n.tensor("z1", image, TensorKind::activation);
  const auto y2 = n.tensor("y2", image, TensorKind::activation);
  const auto dz1 = n.tensor("dz1", image, TensorKind::gradient);
  const auto gw1 = n.tensor("gw1", {4, 4, 1, 1}, TensorKind::gradient);
  const auto gw2 = n.tensor("gw2", {4, 4, 1, 1}, TensorKind::gradient);
  const OpId conv1 = n.op("conv1", "Conv", {x, w1}, y1);
  n.op("pool", "AveragePool", {y1}, z1);
  const OpId conv2 = n.op("conv2", "Conv", {z1, w2}, y2);
  n.op("conv2/weight", "ConvGradWeight", {z1, y2}, gw2, Phase::backward, conv2);
  n.op("conv2/data", "ConvGradData", {y2, w2}, dz1, Phase::backward, conv2);
  n.op("conv1/weight", "ConvGradWeight", {x, dz1}, gw1, Phase::backward, conv1);
  n.op("w1/update", "AveragePool", {gw1}, w1, Phase::update);
  n.op("w2/update", "AveragePool", {gw2}, w2, Phase::update);
  verify(n.graph);
  return n;
}

/// pool -> conv1, pool -> conv2, both -> a concatenation of theirs.
inline SmallNet diamond_net(int64_t batch, int64_t size) {
  SmallNet n;
  n.graph.batch = batch;
  const Shape image{batch, 4, size, size};
  const auto x = n.tensor("x", image, TensorKind::input);
  const auto w1 = n.tensor("w1", {4, 4, 1, 1}, TensorKind::parameter);
  const auto w2 = n.tensor("w2", {4, 4, 1, 1}, TensorKind::parameter);
  const auto z = n.tensor("z", image, TensorKind::activation);
  const auto y1 = n.tensor("y1", image, TensorKind::activation);
  const auto y2 = n.tensor("y2", image, TensorKind::activation);
  const auto out = n.tensor("out", {batch, 8, size, size}, TensorKind::activation);
  const auto dz = n.tensor("dz", image, TensorKind::gradient);
  const auto gw1 = n.tensor("gw1", {4, 4, 1, 1}, TensorKind::gradient);
  const auto gw2 = n.tensor("gw2", {4, 4, 1, 1}, TensorKind::gradient);
  n.op("pool", "AveragePool", {x}, z);
  const OpId conv1 = n.op("conv1", "Conv", {z, w1}, y1);
  const OpId conv2 = n.op("conv2", "Conv", {z, w2}, y2);
  const OpId join = n.op("join", "Concat", {y1, y2}, out);
  n.graph.op(join).attributes.set("axis", int64_t{1});
  n.op("conv1/weight", "ConvGradWeight", {z, y1}, gw1, Phase::backward, conv1);
  n.op("conv2/weight", "ConvGradWeight", {z, y2}, gw2, Phase::backward, conv2);
  n.op("conv1/data", "ConvGradData", {y1, w1}, dz, Phase::backward, conv1);
  n.op("conv2/data", "ConvGradData", {y2, w2}, dz, Phase::backward, conv2);
  n.op("w1/update", "AveragePool", {gw1}, w1, Phase::update);
  n.op("w2/update", "AveragePool", {gw2}, w2, Phase::update);
  verify(n.graph);
  return n;
}

}  // namespace ff::test
