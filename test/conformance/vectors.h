// ONNX's test vectors as files: a model, the inputs, and the outputs that the standard's reference gives.
#pragma once

#include <onnx/onnx_pb.h>

#include <filesystem>
#include <string>
#include <vector>

#include "compiler/base/dtype.h"

namespace ff::conformance {

/// A tensor's values as doubles (integers above 2^53 lose bits), or why it has none.
struct Values {
  std::string name;
  std::string refusal;  // a sequence, a string, a type that no buffer has
  std::vector<int64_t> shape;
  DType type = DType::f32;
  std::vector<double> numbers;
};

struct Vector {
  std::string name;  // node/test_abs
  onnx::ModelProto model;
  std::vector<Values> inputs, outputs;  // named as the graph's
};

/// All vectors of the groups node, simple, pytorch-operator and pytorch-converted, in the order of their
/// names. RunError if there are none.
std::vector<std::filesystem::path> find_vectors(const std::filesystem::path& data);
Vector read_vector(const std::filesystem::path& folder);

}  // namespace ff::conformance
