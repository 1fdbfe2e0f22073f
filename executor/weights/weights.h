// Initial weights out of an ONNX file, trained ones back into one. The only room of the executor that knows
// ONNX's protos.
//
//   WeightReader reader("net.onnx");
//   reader.read(parameter, Box({0, 0}, {16, 64}), out);       // rows 0..15, through the parameter's views
//   write_trained("net.onnx", parameters, values, "trained.onnx");
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/base/box.h"
#include "compiler/plan/plan.h"

namespace ff {

class WeightReader {
 public:
  /// Maps the model. UserError if it is none.
  explicit WeightReader(const std::string& model);
  ~WeightReader();

  /// The model's file, and those of its external data in the order of their names.
  std::vector<std::string> files() const;

  /// Writes the elements of `box` of a parameter's initial value, dense and row-major, as the parameter's
  /// type. UserError naming file and initializer if the model does not have it.
  void read(const Parameter& parameter, const Box& box, void* out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Writes a copy of `model_in` with these whole values (dense, row-major, of the parameters' types, by
/// parameter name) in its initializers, through the views backwards; what the compiler made up is left out.
/// The file is whole or not there.
void write_trained(const std::string& model_in, const std::vector<Parameter>& parameters,
                   const std::map<std::string, std::string>& values, const std::string& model_out);

}  // namespace ff
