// Activations that exporters write as chains, as the ops that they are.
//
//   x -> Div 1.41421 -> Erf -> Add 1 -> Mul x -> Mul 0.5                  Gelu, as PyTorch exports it
//   x -> Mul 0.5 ----------------------> Mul (1 + Erf(x / 1.41421))       Gelu, as Keras exports it
//   x -> Sigmoid -> Mul x                                                 Swish with alpha 1
//
// Only what nothing else reads goes; constants are compared with a tolerance of f32's rounding.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "compiler/base/model_data.h"
#include "compiler/training/training.h"

namespace ff {
namespace {

class Fusion {
 public:
  explicit Fusion(Graph& graph) : graph_(graph), gone_(graph.ops.size(), false) {
    readers_.resize(graph.tensors.size());
    producer_.assign(graph.tensors.size(), -1);
    for (size_t i = 0; i < graph.ops.size(); ++i) {
      for (TensorId t : graph.ops[i].inputs) {
        if (t.valid()) readers_[t.index()].push_back(i);
      }
      for (TensorId t : graph.ops[i].outputs) {
        if (t.valid()) producer_[t.index()] = static_cast<int32_t>(i);
      }
    }
    for (TensorId t : graph.outputs) readers_[t.index()].push_back(graph.ops.size());
  }

  void run() {
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      if (graph_.ops[i].type == "Erf") fuse_gelu(i);
      if (graph_.ops[i].type == "Sigmoid") fuse_swish(i);
    }
    std::vector<Op> kept;
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      if (!gone_[i]) kept.push_back(std::move(graph_.ops[i]));
    }
    graph_.ops.clear();
    for (Op& op : kept) {
      op.config_of = OpId();
      graph_.add_op(std::move(op));
    }
  }

 private:
  /// The value of a parameter of one element that comes folded from the model.
  std::optional<double> number(TensorId id) const {
    const Tensor& t = graph_.tensor(id);
    if (t.kind != TensorKind::parameter || volume(t.shape) != 1 ||
        t.source.kind != ParameterSource::Kind::inlined)
      return std::nullopt;
    return element_as_double(t.source.bytes, t.dtype, 0);
  }

  bool is(TensorId id, double value) const {
    const auto x = number(id);
    return x && std::abs(*x - value) <= 1e-6 * std::abs(value);
  }

  /// The op that alone reads a tensor.
  std::optional<size_t> only_reader(TensorId id) const {
    const auto& all = readers_[id.index()];
    if (all.size() != 1 || all[0] == graph_.ops.size() || gone_[all[0]]) return std::nullopt;
    return all[0];
  }

  /// If op `i` is of this type with the operand and a number: the number's place.
  bool has_number(size_t i, std::string_view type, TensorId operand, double value) const {
    const Op& op = graph_.ops[i];
    if (op.type != type || op.inputs.size() != 2 || op.attributes.has("relu")) return false;
    if (op.inputs[0] == operand && is(op.inputs[1], value)) return true;
    return type != "Div" && op.inputs[1] == operand && is(op.inputs[0], value);
  }

  bool multiplies(size_t i, TensorId a, TensorId b) const {
    const Op& op = graph_.ops[i];
    return op.type == "Mul" &&
           ((op.inputs[0] == a && op.inputs[1] == b) || (op.inputs[0] == b && op.inputs[1] == a));
  }

  /// What the scaled argument of an Erf is made of, if it is x / sqrt(2) and only the Erf reads it.
  std::optional<size_t> scaling(TensorId argument) const {
    const int32_t p = producer_[argument.index()];
    if (p < 0 || gone_[static_cast<size_t>(p)] || !only_reader(argument)) return std::nullopt;
    const auto i = static_cast<size_t>(p);
    for (TensorId x : graph_.ops[i].inputs) {
      if (has_number(i, "Div", x, std::numbers::sqrt2) || has_number(i, "Mul", x, 1 / std::numbers::sqrt2))
        return i;
    }
    return std::nullopt;
  }

  void fuse_gelu(size_t erf) {
    const auto scaled = scaling(graph_.ops[erf].inputs[0]);
    if (!scaled) return;
    const Op& scale = graph_.ops[*scaled];
    const TensorId x = number(scale.inputs[0]) ? scale.inputs[1] : scale.inputs[0];
    const auto plus_one = only_reader(graph_.ops[erf].outputs[0]);
    if (!plus_one || !has_number(*plus_one, "Add", graph_.ops[erf].outputs[0], 1)) return;
    const TensorId sum = graph_.ops[*plus_one].outputs[0];
    const auto product = only_reader(sum);
    if (!product || graph_.ops[*product].type != "Mul") return;
    std::vector<size_t> chain{*scaled, erf, *plus_one};
    size_t last = *product;
    if (multiplies(*product, x, sum)) {  // x (1 + erf), and half of it
      const auto half = only_reader(graph_.ops[*product].outputs[0]);
      if (!half || !has_number(*half, "Mul", graph_.ops[*product].outputs[0], 0.5)) return;
      chain.push_back(*product);
      last = *half;
    } else {  // half of x or of the sum first
      const Op& mul = graph_.ops[*product];
      const TensorId other = mul.inputs[0] == sum ? mul.inputs[1] : mul.inputs[0];
      const int32_t half = producer_[other.index()];
      if (half < 0 || !only_reader(other) || !has_number(static_cast<size_t>(half), "Mul", x, 0.5)) return;
      chain.push_back(static_cast<size_t>(half));
    }
    replace(last, "Gelu", {}, x, chain);
  }

  void fuse_swish(size_t sigmoid) {
    const TensorId x = graph_.ops[sigmoid].inputs[0], y = graph_.ops[sigmoid].outputs[0];
    const auto product = only_reader(y);
    if (product && multiplies(*product, x, y)) replace(*product, "Swish", {{"alpha", 1.0}}, x, {sigmoid});
  }

  void replace(size_t last, std::string type, Attributes attributes, TensorId x,
               const std::vector<size_t>& chain) {
    Op& op = graph_.ops[last];
    op.type = std::move(type);
    op.attributes = std::move(attributes);
    op.inputs = {x};
    for (size_t i : chain) gone_[i] = true;
  }

  Graph& graph_;
  std::vector<bool> gone_;
  std::vector<std::vector<size_t>> readers_;  // ops; the number of ops stands for an output of the model
  std::vector<int32_t> producer_;
};

}  // namespace

void fuse_activations(Graph& graph) { Fusion(graph).run(); }

}  // namespace ff
