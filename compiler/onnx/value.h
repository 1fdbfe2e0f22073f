// What a name of the model stands for while it is imported: a tensor of the graph, a constant that is known
// now (folded shapes, axes, scalars), or a weight: an initializer, perhaps seen through views, that is no
// tensor until an op reads it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"

namespace ff::onnx_import {

struct Constant {
  DType dtype = DType::i64;
  Shape shape;
  std::vector<int64_t> ints;  // of integer and boolean types
  std::vector<double> reals;  // of float types

  static Constant of_ints(Shape shape, std::vector<int64_t> values);
  static Constant of_real(double value, DType dtype);
  /// From little-endian, row-major bytes.
  static Constant of_bytes(Shape shape, DType dtype, std::string_view bytes);
  int64_t size() const { return volume(shape); }
  double real(int64_t i) const;
  int64_t integer(int64_t i) const;
  std::string bytes(DType as) const;
};

struct Weight {
  ParameterSource source;
  std::string name;
  Shape shape;
  DType dtype = DType::f32;
  TensorId tensor;       // once an op has read it
  bool aliased = false;  // it has several names: readers of one of them are not all of its readers
};

struct Value {
  enum class Kind : uint8_t { unknown, tensor, constant, weight } kind = Kind::unknown;
  TensorId tensor;
  std::shared_ptr<Constant> constant;
  std::shared_ptr<Weight> weight;
  std::string name;  // of a constant: the model's name for it

  static Value of(TensorId id) {
    return {.kind = Kind::tensor, .tensor = id, .constant = {}, .weight = {}, .name = {}};
  }
  static Value of(Constant c, std::string name) {
    return {.kind = Kind::constant,
            .tensor = {},
            .constant = std::make_shared<Constant>(std::move(c)),
            .weight = {},
            .name = std::move(name)};
  }
  static Value of(std::shared_ptr<Weight> w) {
    return {.kind = Kind::weight, .tensor = {}, .constant = {}, .weight = std::move(w), .name = {}};
  }
};

}  // namespace ff::onnx_import
