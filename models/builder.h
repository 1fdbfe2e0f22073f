// Builds a network as an ONNX model, layer by layer: what the files of this folder are written with.
//
//   Builder net({.name = "tiny"});
//   Value x = net.input({1, 28, 28});                     // "image", [batch, 1, 28, 28]
//   x = net.relu(net.conv("conv1", x, {.out = 8, .kernel = {5, 5}}));
//   net.output(net.linear("fc", net.flatten(x), 10));     // "logits", [batch, 10]
//   net.save("tiny.onnx");
//
// Layers have the names of their publication in PyTorch, and so have their weights ("conv1.weight",
// "conv1.bias"). Weights come from a counter-based generator keyed by (seed, name, element): the same model
// and seed give the same file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ff {

/// A tensor of one sample: the extents behind the batch dimension, which is axis 0 of every value. Axes below
/// are a sample's: axis 0 of {40, 1024} is the 40 steps.
struct Value {
  std::string name;
  std::vector<int64_t> shape;  // {channels, height, width}, {steps, features} or {features}
};

struct Pair {
  int64_t h = 1;
  int64_t w = 1;
};

struct ConvOptions {
  int64_t out = 0;
  Pair kernel;
  Pair stride{1, 1};
  Pair pad{0, 0};
  int64_t groups = 1;
  bool bias = true;
};

struct PoolOptions {
  int64_t kernel = 2;
  int64_t stride = 2;
  int64_t pad = 0;
};

/// How weights begin. `torch`: uniform within 1/sqrt(fan_in), PyTorch's default for its layers, embeddings of
/// variance 1. `he`: uniform within sqrt(6/fan_in), which keeps the variance through a ReLU (He et al. 2015):
/// for deep networks without normalisation. `small`: uniform of standard deviation 0.02, biases 0, as
/// transformers begin (Devlin et al. 2018).
enum class Init { torch, he, small };

struct BuilderOptions {
  std::string name = {};
  int64_t batch = 0;  // 0: the symbolic dimension "batch"
  uint64_t seed = 0;
  Init init = Init::torch;
  // Weights are ConstantOfShape nodes: a small file, for planning only. What is added (biases behind a
  // MatMul, positions) is in the file all the same.
  bool light = false;
};

/// What one LSTM layer leaves behind: the names of its last hidden and cell state, [1, batch, hidden].
struct LstmState {
  std::string hidden;
  std::string cell;
};

/// A stack of LSTM layers: what the builder reads its results from.
struct LstmResult {
  std::string name;
  std::string top;                // every step of the top layer, as ONNX has it: [steps, 1, batch, hidden]
  std::vector<LstmState> states;  // one a layer
  std::vector<int64_t> shape;     // {steps, hidden}
};

class Builder {
 public:
  explicit Builder(BuilderOptions options);
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;
  ~Builder();

  Value input(std::vector<int64_t> sample_shape, const std::string& name = "image");
  /// Integers: tokens, indices.
  Value integer_input(const std::string& name, std::vector<int64_t> sample_shape);
  /// The last layer's result, under the output's name; may be called again for a further output.
  void output(const Value& x, const std::string& name = "logits");

  Value conv(const std::string& name, const Value& x, const ConvOptions& options);
  /// Transposed: (extent - 1) * stride - 2 * pad + kernel. Without groups.
  Value conv_transpose(const std::string& name, const Value& x, const ConvOptions& options);
  /// In training mode; running statistics are kept as ONNX has it: old * 0.9 + new * 0.1.
  Value batch_norm(const std::string& name, const Value& x, double epsilon = 1e-5);
  /// Fully connected over the last axis: a Gemm with x W^T + b where there is no other axis, else a MatMul
  /// with a weight [in, features] and an Add, as PyTorch exports it.
  Value linear(const std::string& name, const Value& x, int64_t features, bool bias = true);
  /// Over the last axis, with scale and bias.
  Value layer_norm(const std::string& name, const Value& x, double epsilon);
  Value relu(const Value& x);
  /// min(max(x, 0), 6).
  Value relu6(const Value& x);
  Value tanh(const Value& x);
  Value sigmoid(const Value& x);
  /// x/2 (1 + erf(x/sqrt 2)), as five nodes.
  Value gelu(const Value& x);
  /// Over the last axis.
  Value softmax(const Value& x);
  Value scale(const Value& x, double factor, const std::string& what);
  Value add(const Value& a, const Value& b);
  Value concat(const std::vector<Value>& parts, size_t axis = 0);
  Value max_pool(const Value& x, const PoolOptions& options);
  /// Zeros of the padding count.
  Value average_pool(const Value& x, const PoolOptions& options);
  Value global_average_pool(const Value& x);
  Value flatten(const Value& x);
  Value mean(const Value& x, size_t axis);
  Value reshape(const Value& x, std::vector<int64_t> shape);
  Value transpose(const Value& x, const std::vector<size_t>& axes);
  /// The last axis in equal parts.
  std::vector<Value> split(const Value& x, int64_t parts);
  /// One entry of an axis, without the axis.
  Value entry(const Value& x, size_t axis, int64_t index);
  /// These entries of an axis.
  Value entries(const Value& x, size_t axis, const std::vector<int64_t>& indices, const std::string& what);
  Value matmul(const Value& a, const Value& b);
  /// The value itself where the ratio is 0.
  Value dropout(const Value& x, double ratio);

  /// The rows of a table that `x`, integers, names: {..., width}.
  Value embedding(const std::string& name, const Value& x, int64_t rows, int64_t width);
  /// x times the transpose of that embedding's table, a weight of both: {..., rows}.
  Value tied_linear(const std::string& embedding, const Value& x, int64_t rows);
  /// x and a trained tensor of these last axes.
  Value add_weight(const std::string& name, const Value& x, const std::vector<int64_t>& shape,
                   bool zero = false);
  /// A trained entry ahead of the others of axis 0.
  Value prepend_weight(const std::string& name, const Value& x);
  /// -1e9 added above the diagonal of the last two axes, 0 elsewhere.
  Value mask_future(const Value& x);
  /// A stack of LSTM layers over the steps of {steps, features}; each begins with its state of `initial`, or
  /// with zeros.
  LstmResult lstm(const std::string& name, const Value& x, int64_t hidden, int64_t layers,
                  const std::vector<LstmState>& initial = {});
  /// Every step of the top layer, {steps, hidden}.
  Value steps(const LstmResult& stack);
  /// The top layer's last step, {hidden}.
  Value last_step(const LstmResult& stack);

  /// Trained elements so far: weights, biases, scales; running statistics are not among them.
  int64_t parameters() const;
  /// Writes the model; weights of 64 MiB and more in all go into PATH.data beside it. RunError if it cannot
  /// be written.
  void save(const std::string& path) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ff
