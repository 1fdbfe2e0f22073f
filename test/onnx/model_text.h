// Models in ONNX's own text form, imported and evaluated.
//
//   value_of("(float[2] x) => (float[2] y) { y = Neg (x) }", {1, 2})        // {-1, -2}
#pragma once

#include <onnx/defs/parser.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "compiler/base/check.h"
#include "compiler/base/model_data.h"
#include "compiler/onnx/import.h"
#include "test/catch.h"
#include "test/support/evaluate.h"

namespace ff::test {

/// What stands before a graph; functions may follow it.
inline const std::string kHead = R"(<ir_version: 8, opset_import: ["" : 17, "own" : 1]> net )";

inline onnx::ModelProto parse(const std::string& text) {
  const std::string whole = kHead + text;  // the parser keeps pointers into it
  onnx::ModelProto model;
  onnx::OnnxParser parser(whole.c_str());
  const auto status = parser.Parse(model);
  INFO(status.ErrorMessage());
  REQUIRE(status.IsOK());
  return model;
}

inline ImportedModel import_written(const onnx::ModelProto& model, const ImportOptions& options = {}) {
  const auto path =
      std::filesystem::temp_directory_path() / ("ff_inline_" + std::to_string(::getpid()) + ".onnx");
  std::ofstream(path, std::ios::binary) << model.SerializeAsString();
  struct Remove {
    const std::filesystem::path& path;
    ~Remove() { std::filesystem::remove(path); }
  } remove{path};
  return import_model(path.string(), options);
}

inline ImportedModel import_text(const std::string& text, const ImportOptions& options = {}) {
  return import_written(parse(text), options);
}

/// The values of all tensors in f64, numbers of the model included; other parameters are given.
inline Values values_of(Graph graph, Values given) {
  for (Tensor& t : graph.tensors) {
    if (t.kind == TensorKind::parameter && !given.contains(t.name)) {
      FF_CHECK(t.source.kind == ParameterSource::Kind::inlined) << t.name;
      for (int64_t i = 0; i < volume(t.shape); ++i)
        given[t.name].push_back(element_as_double(t.source.bytes, t.dtype, i));
    }
    if (t.dtype == DType::f32) t.dtype = DType::f64;
  }
  return evaluate(graph, given);
}

/// The first output for an input `x`.
inline std::vector<double> value_of(const std::string& text, const std::vector<double>& x) {
  const ImportedModel model = import_text(text);
  return values_of(model.graph, {{"x", x}}).at(model.graph.tensor(model.graph.outputs.at(0)).name);
}

}  // namespace ff::test
