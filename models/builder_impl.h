// What a Builder holds: the ONNX graph, and the weights that are drawn when it is saved. For the Builder's
// own files.
#pragma once

#include <onnx/onnx_pb.h>

#include <map>

#include "models/builder.h"

namespace ff {

int64_t volume_of(const std::vector<int64_t>& extents);

/// Uniform within `bound`, or all `fill` where the bound is 0.
struct Weight {
  std::string name;
  std::vector<int64_t> shape;
  double bound = 0;
  float fill = 0;
};

struct Builder::Impl {
  explicit Impl(BuilderOptions o);

  onnx::GraphProto& graph() { return *model.mutable_graph(); }

  onnx::NodeProto& node(const std::string& op, const std::string& name,
                        const std::vector<std::string>& inputs, const std::string& output);
  /// A layer without weights: named by its kind and a count, as "relu_3".
  onnx::NodeProto& plain(const std::string& op, const std::string& kind,
                         const std::vector<std::string>& inputs);

  static void ints(onnx::NodeProto& n, const std::string& name, const std::vector<int64_t>& values);
  static void integer(onnx::NodeProto& n, const std::string& name, int64_t value);
  static void number(onnx::NodeProto& n, const std::string& name, double value);

  /// Trained: counted among the parameters.
  std::string weight(Weight w, bool trained = true);
  /// A trained weight that is added or concatenated: in the file of a light model too, as a filled constant
  /// there is no weight to who reads the model.
  std::string added_weight(Weight w);

  /// An initializer that is no weight; the second of the same name is the first.
  std::string scalar(const std::string& name, float value);
  std::string flag(const std::string& name, bool value);
  std::string integers(const std::string& name, const std::vector<int64_t>& values);
  std::string integer_scalar(const std::string& name, int64_t value);
  std::string floats(const std::string& name, const std::vector<int64_t>& shape,
                     const std::vector<float>& values);

  /// Bounds of a layer's weight and bias with this many inputs to each output.
  double bound(int64_t fan_in) const;
  double bias_bound(int64_t fan_in) const;
  double embedding_bound() const;

  Value input(const std::string& name, std::vector<int64_t> sample_shape, int type);
  void declare(onnx::ValueInfoProto& info, const Value& v, int type) const;

  BuilderOptions options;
  onnx::ModelProto model;
  std::vector<Weight> weights;
  std::map<std::string, int> counts;
  std::map<std::string, bool> constants;
  int64_t parameters = 0;
  int64_t bytes = 0;

 private:
  void constant_of_shape(const Weight& w);
  std::string constant(const std::string& name, int type, const std::vector<int64_t>& shape, const void* data,
                       size_t size);
};

}  // namespace ff
