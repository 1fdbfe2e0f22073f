#include "test/conformance/vectors.h"

#include <algorithm>
#include <fstream>

#include "compiler/base/check.h"
#include "compiler/base/model_data.h"

namespace ff::conformance {
namespace {

namespace fs = std::filesystem;

std::string read_bytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw RunError("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

Values read_values(const fs::path& path, const onnx::ValueInfoProto& info) {
  Values out;
  out.name = info.name();
  onnx::TensorProto proto;
  if (!info.type().has_tensor_type()) {
    out.refusal = "sequences and optional values are no tensors";
    return out;
  }
  if (!proto.ParseFromString(read_bytes(path))) throw RunError(path.string() + " is no tensor");
  const auto type = dtype_of_onnx(proto.data_type());
  if (!type) {
    out.refusal = "type " + onnx_type_name(proto.data_type());
    return out;
  }
  Initializer data;
  out.shape.assign(proto.dims().begin(), proto.dims().end());
  out.type = *type;
  if (volume(Shape(out.shape)) == 0) return out;
  read_initializer(proto, path.string(), data);
  for (int64_t i = 0; i < volume(data.shape); ++i)
    out.numbers.push_back(element_as_double(data.bytes, data.dtype, i));
  return out;
}

}  // namespace

std::vector<fs::path> find_vectors(const fs::path& data) {
  std::vector<fs::path> out;
  for (const char* group : {"node", "simple", "pytorch-operator", "pytorch-converted"}) {
    if (!fs::is_directory(data / group)) continue;
    for (const auto& entry : fs::directory_iterator(data / group)) {
      if (fs::exists(entry.path() / "model.onnx") && fs::exists(entry.path() / "test_data_set_0"))
        out.push_back(entry.path());
    }
  }
  if (out.empty()) throw RunError("no vectors under " + data.string());
  std::sort(out.begin(), out.end());
  return out;
}

Vector read_vector(const fs::path& folder) {
  Vector v;
  v.name = folder.parent_path().filename().string() + "/" + folder.filename().string();
  if (!v.model.ParseFromString(read_bytes(folder / "model.onnx"))) throw RunError(v.name + ": no model");
  const auto& graph = v.model.graph();
  int next = 0;
  for (const auto& input : graph.input()) {
    const fs::path path = folder / "test_data_set_0" / ("input_" + std::to_string(next) + ".pb");
    const bool has_default = std::any_of(graph.initializer().begin(), graph.initializer().end(),
                                         [&](const auto& i) { return i.name() == input.name(); });
    if (has_default || !fs::exists(path)) continue;
    v.inputs.push_back(read_values(path, input));
    ++next;
  }
  for (int i = 0; i < graph.output_size(); ++i)
    v.outputs.push_back(
        read_values(folder / "test_data_set_0" / ("output_" + std::to_string(i) + ".pb"), graph.output(i)));
  return v;
}

}  // namespace ff::conformance
