// Builds a network as an ONNX model, layer by layer: what the files of this folder are written with.
//
//   Builder net({.name = "tiny"});
//   Value x = net.input({1, 28, 28});                     // "image", [batch, 1, 28, 28]
//   x = net.relu(net.conv("conv1", x, {.out = 8, .kernel = {5, 5}}));
//   net.output(net.linear("fc", net.flatten(x), 10));     // "logits", [batch, 10]
//   net.save("tiny.onnx");
//
// Layers have torchvision's names, and so have their weights ("conv1.weight", "conv1.bias"). Weights come
// from a counter-based generator keyed by (seed, name, element): the same model and seed give the same file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ff {

/// A tensor of one sample: the channel count and extents behind the batch dimension.
struct Value {
  std::string name;
  std::vector<int64_t> shape;  // {channels, height, width} or {features}
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

/// How weights begin. `torch`: uniform within 1/sqrt(fan_in), PyTorch's default for its layers. `he`: uniform
/// within sqrt(6/fan_in), which keeps the variance through a ReLU (He et al. 2015): for deep networks without
/// normalisation.
enum class Init { torch, he };

struct BuilderOptions {
  std::string name = {};
  int64_t batch = 0;  // 0: the symbolic dimension "batch"
  uint64_t seed = 0;
  Init init = Init::torch;
  bool light = false;  // weights are ConstantOfShape nodes: a file of kilobytes, for planning only
};

class Builder {
 public:
  explicit Builder(BuilderOptions options);
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;
  ~Builder();

  Value input(std::vector<int64_t> sample_shape);
  void output(const Value& x);

  Value conv(const std::string& name, const Value& x, const ConvOptions& options);
  /// In training mode; running statistics are kept as ONNX has it: old * 0.9 + new * 0.1.
  Value batch_norm(const std::string& name, const Value& x, double epsilon = 1e-5);
  /// Fully connected: x W^T + b.
  Value linear(const std::string& name, const Value& x, int64_t features);
  Value relu(const Value& x);
  /// min(max(x, 0), 6).
  Value relu6(const Value& x);
  Value tanh(const Value& x);
  Value add(const Value& a, const Value& b);
  Value concat(const std::vector<Value>& parts);
  Value max_pool(const Value& x, const PoolOptions& options);
  /// Zeros of the padding count.
  Value average_pool(const Value& x, const PoolOptions& options);
  Value global_average_pool(const Value& x);
  Value flatten(const Value& x);
  /// The value itself where the ratio is 0.
  Value dropout(const Value& x, double ratio);

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
