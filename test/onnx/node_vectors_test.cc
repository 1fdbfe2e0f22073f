// ONNX's own test vectors of the ops that index and move, and of those on images: forward values of the
// imported node, and of the same node folded. A folded result is no tensor: it is seen through an Add to an
// input that is zero.
#include <onnx/onnx_pb.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "compiler/base/check.h"
#include "compiler/base/model_data.h"
#include "compiler/onnx/import.h"
#include "test/catch.h"
#include "test/support/evaluate.h"

using namespace ff;
using namespace ff::test;
namespace fs = std::filesystem;

namespace {

/// The inputs of each op that must be known when the model is compiled.
const std::map<std::string, std::set<int>> kKnown{
    {"ArgMax", {}},
    {"ArgMin", {}},
    {"CumSum", {1}},
    {"Expand", {1}},
    {"Gather", {}},
    {"GatherND", {}},
    {"GatherElements", {}},
    {"Hardmax", {}},
    {"OneHot", {1, 2}},
    {"ReverseSequence", {}},
    {"ScatterND", {}},
    {"Scatter", {}},
    {"ScatterElements", {}},
    {"Slice", {1, 2, 3, 4}},
    {"Split", {1}},
    {"Squeeze", {1}},
    {"Tile", {1}},
    {"TopK", {1}},
    {"Trilu", {1}},
    {"Reshape", {1}},
    {"Transpose", {}},
    {"Unsqueeze", {1}},
    {"Concat", {}},
    {"LSTM", {}},
    {"GRU", {}},
    {"RNN", {}},
};
/// The same of ops on images.
const std::map<std::string, std::set<int>> kKnownOfImages{
    {"AveragePool", {}},   {"ConvTranspose", {}}, {"DepthToSpace", {}}, {"GlobalAveragePool", {}},
    {"GlobalMaxPool", {}}, {"LpPool", {}},        {"MaxPool", {}},      {"Pad", {1, 2, 3}},
    {"Resize", {1, 2, 3}}, {"SpaceToDepth", {}},  {"Upsample", {1}},
};
/// What vectors of images that are refused have in their names, and what the refusal says.
const std::map<std::string, std::string> kRefused{
    {"antialias", "antialias"},
    {"maxpool_2d_uint8", "an input of type u8"},
    {"tf_crop_and_resize", "coordinate_transformation_mode 'tf_crop_and_resize'"},
    {"with_argmax", "its second output, the indices, is used"},
};
/// Nodes that are only folded: of shapes (the input stays a tensor), or of values.
const std::set<std::string> kOfShapes{"Shape", "Size", "EyeLike"};
const std::set<std::string> kOfValues{"ConstantOfShape", "Range", "NonZero", "Where"};
/// Moves and sums that are folded like any shape computation.
const std::set<std::string> kFolded{"CumSum", "Expand", "Gather",  "Slice",  "Split",     "Squeeze",
                                    "Tile",   "Trilu",  "Reshape", "Concat", "Transpose", "Unsqueeze"};

/// In ONNX 1.17 its averages are divided by taps past the padding too; later releases, as PyTorch and we do,
/// count those inside it.
const std::string kWrong = "test_averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_True";

struct Vector {
  std::string name;
  onnx::ModelProto model;
  std::vector<onnx::TensorProto> inputs, outputs;
  const onnx::NodeProto& node() const { return model.graph().node(0); }
};

template <typename Proto>
Proto read_proto(const fs::path& path) {
  Proto proto;
  std::ifstream in(path, std::ios::binary);
  REQUIRE(proto.ParseFromIstream(&in));
  return proto;
}

std::vector<onnx::TensorProto> read_tensors(const fs::path& folder, const std::string& kind) {
  std::vector<onnx::TensorProto> out;
  for (int i = 0;; ++i) {
    const fs::path path = folder / "test_data_set_0" / (kind + "_" + std::to_string(i) + ".pb");
    if (!fs::exists(path)) return out;
    out.push_back(read_proto<onnx::TensorProto>(path));
  }
}

/// The vectors of one node whose op is among these, in the order of their names.
std::vector<Vector> vectors_of(const std::set<std::string>& ops) {
  std::vector<Vector> out;
  std::set<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(fs::path(FF_ONNX_TESTDATA) / "node"))
    folders.insert(entry.path());
  for (const fs::path& folder : folders) {
    if (!fs::exists(folder / "model.onnx")) continue;
    Vector v{folder.filename(), read_proto<onnx::ModelProto>(folder / "model.onnx"), {}, {}};
    if (v.model.graph().node_size() != 1 || !ops.contains(v.node().op_type())) continue;
    v.inputs = read_tensors(folder, "input");
    v.outputs = read_tensors(folder, "output");
    out.push_back(std::move(v));
  }
  return out;
}

std::vector<double> values_of(const onnx::TensorProto& proto) {
  Initializer data;
  read_initializer(proto, "vector", data);
  std::vector<double> out;
  for (int64_t i = 0; i < volume(data.shape); ++i)
    out.push_back(element_as_double(data.bytes, data.dtype, i));
  return out;
}

bool has_elements(const onnx::TensorProto& proto) {
  return volume(Shape(proto.dims().begin(), proto.dims().end())) > 0;
}

/// A float tensor as thousandths, so that it can be folded.
onnx::TensorProto in_thousandths(const onnx::TensorProto& proto) {
  if (proto.data_type() != onnx::TensorProto::FLOAT && proto.data_type() != onnx::TensorProto::DOUBLE)
    return proto;
  onnx::TensorProto out;
  *out.mutable_dims() = proto.dims();
  out.set_data_type(onnx::TensorProto::INT64);
  out.set_name(proto.name());
  for (double v : values_of(proto)) out.add_int64_data(std::llround(v * 1000));
  return out;
}

void add_initializer(onnx::ModelProto& model, onnx::TensorProto tensor, const std::string& name) {
  tensor.set_name(name);
  *model.mutable_graph()->add_initializer() = std::move(tensor);
}

ImportedModel import_written(const onnx::ModelProto& model) {
  const fs::path path = fs::temp_directory_path() / ("ff_vector_" + std::to_string(::getpid()) + ".onnx");
  {
    std::ofstream out(path, std::ios::binary);
    REQUIRE(model.SerializeToOstream(&out));
  }
  struct Remove {
    const fs::path& path;
    ~Remove() { fs::remove(path); }
  } remove{path};
  return import_model(path.string(), {});
}

/// The values of all tensors: inputs by name, parameters from the model.
Values run(const ImportedModel& imported, const std::map<std::string, std::vector<double>>& inputs,
           const onnx::ModelProto& model) {
  Values given(inputs.begin(), inputs.end());
  for (const Tensor& t : imported.graph.tensors) {
    if (t.kind != TensorKind::parameter) continue;
    if (t.source.kind == ParameterSource::Kind::inlined) {
      std::vector<double>& values = given[t.name];
      for (int64_t i = 0; i < volume(t.shape); ++i)
        values.push_back(element_as_double(t.source.bytes, t.dtype, i));
    }
    for (const auto& proto : model.graph().initializer()) {
      if (proto.name() == t.source.model_name) given[t.name] = values_of(proto);
    }
  }
  return evaluate(imported.graph, given);
}

void check_close(const std::vector<double>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(got[i] - expected[i]) / (1 + std::abs(expected[i]));
    if (!(error <= worst)) worst = std::isnan(error) ? INFINITY : error;
  }
  CHECK(worst <= 1e-5);
}

void check_imported(const Vector& v, const std::set<int>& known) {
  onnx::ModelProto model = v.model;
  // A node that means the same since an opset that is too old to import.
  auto& opset = *model.mutable_opset_import(0);
  opset.set_version(std::max<int64_t>(7, opset.version()));
  std::map<std::string, std::vector<double>> inputs;
  size_t next = 0;
  for (int i = 0; i < v.node().input_size(); ++i) {
    if (v.node().input(i).empty()) continue;
    const onnx::TensorProto& data = v.inputs.at(next++);
    if (known.contains(i)) {
      add_initializer(model, data, v.node().input(i));
    } else {
      inputs[v.node().input(i)] = values_of(data);
    }
  }
  const ImportedModel imported = import_written(model);
  REQUIRE(imported.graph.outputs.size() == v.outputs.size());
  const Values values = run(imported, inputs, model);
  for (size_t o = 0; o < v.outputs.size(); ++o) {
    const Tensor& t = imported.graph.tensor(imported.graph.outputs[o]);
    CHECK(t.shape == Shape(v.outputs[o].dims().begin(), v.outputs[o].dims().end()));
    CHECK(onnx_type_of(t.dtype) == v.outputs[o].data_type());
    check_close(values.at(t.name), values_of(v.outputs[o]));
  }
}

std::string refusal_of(const Vector& v, const std::set<int>& known) {
  try {
    check_imported(v, known);
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

/// `of_values`: the inputs are known; else only their shapes.
void check_folded(const Vector& v, bool of_values) {
  onnx::ModelProto model = v.model;
  auto& graph = *model.mutable_graph();
  const bool floats = v.node().op_type() == "Range" || v.node().op_type() == "ConstantOfShape" ||
                      v.node().op_type() == "EyeLike";
  for (int i = 0; of_values && i < v.node().input_size(); ++i) {
    const auto& data = v.inputs.at(static_cast<size_t>(i));
    add_initializer(model, floats ? data : in_thousandths(data), v.node().input(i));
  }
  graph.clear_output();
  for (size_t o = 0; o < v.outputs.size(); ++o) {
    const std::string name = v.node().output(static_cast<int>(o)), number = std::to_string(o);
    onnx::NodeProto& cast = *graph.add_node();
    cast.set_op_type("Cast");
    cast.add_input(name);
    cast.add_output("cast" + number);
    auto& to = *cast.add_attribute();
    to.set_name("to");
    to.set_type(onnx::AttributeProto::INT);
    to.set_i(onnx::TensorProto::FLOAT);
    onnx::NodeProto& add = *graph.add_node();
    add.set_op_type("Add");
    add.add_input("zero" + number);
    add.add_input("cast" + number);
    add.add_output("sum" + number);
    auto& zero = *graph.add_input();
    zero.set_name("zero" + number);
    auto& type = *zero.mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    type.mutable_shape();
    for (int64_t d : v.outputs[o].dims()) type.mutable_shape()->add_dim()->set_dim_value(d);
    graph.add_output()->set_name("sum" + number);
  }
  const ImportedModel imported = import_written(model);
  CHECK(imported.graph.ops.size() == v.outputs.size());  // the Adds
  std::map<std::string, std::vector<double>> zeros;
  for (size_t o = 0; o < v.outputs.size(); ++o)
    zeros["zero" + std::to_string(o)].assign(values_of(v.outputs[o]).size(), 0);
  const Values values = run(imported, zeros, model);
  for (size_t o = 0; o < v.outputs.size(); ++o) {
    const Tensor& t = imported.graph.tensor(imported.graph.outputs.at(o));
    CHECK(t.shape == Shape(v.outputs[o].dims().begin(), v.outputs[o].dims().end()));
    check_close(values.at(t.name),
                values_of(of_values && !floats ? in_thousandths(v.outputs[o]) : v.outputs[o]));
  }
}

bool all_have_elements(const Vector& v) {
  return std::all_of(v.outputs.begin(), v.outputs.end(), has_elements) &&
         std::all_of(v.inputs.begin(), v.inputs.end(), has_elements);
}

}  // namespace

TEST_CASE("nodes that index or move give the values of the standard") {
  std::set<std::string> ops;
  for (const auto& [op, known] : kKnown) ops.insert(op);
  std::set<std::string> met;
  for (const Vector& v : vectors_of(ops)) {
    if (!all_have_elements(v)) continue;
    INFO(v.name);
    check_imported(v, kKnown.at(v.node().op_type()));
    met.insert(v.node().op_type());
  }
  CHECK(met == ops);
}

TEST_CASE("nodes on images give the values of the standard or say what is not built") {
  std::set<std::string> ops, given;
  for (const auto& [op, known] : kKnownOfImages) ops.insert(op);
  for (const Vector& v : vectors_of(ops)) {
    if (v.name == kWrong) continue;
    INFO(v.name);
    const auto& known = kKnownOfImages.at(v.node().op_type());
    const auto refusal = std::find_if(kRefused.begin(), kRefused.end(), [&](const auto& r) {
      return v.name.find(r.first) != std::string::npos;
    });
    if (refusal != kRefused.end()) {
      CHECK(refusal_of(v, known).find(refusal->second) != std::string::npos);
    } else {
      CHECK_NOTHROW(check_imported(v, known));
      given.insert(v.node().op_type());
    }
  }
  ops.erase("LpPool"), given.erase("LpPool");  // of which older standards have no vectors
  CHECK(given == ops);
}

TEST_CASE("folded nodes give the values of the standard") {
  std::set<std::string> met;
  for (const Vector& v : vectors_of(kFolded)) {
    if (!all_have_elements(v)) continue;
    INFO(v.name);
    check_folded(v, true);
    met.insert(v.node().op_type());
  }
  CHECK(met == kFolded);
}

TEST_CASE("nodes of known values and shapes are folded to the values of the standard") {
  std::set<std::string> met;
  for (const bool of_values : {true, false}) {
    for (const Vector& v : vectors_of(of_values ? kOfValues : kOfShapes)) {
      if (!std::all_of(v.outputs.begin(), v.outputs.end(), has_elements)) continue;
      INFO(v.name);
      check_folded(v, of_values);
      met.insert(v.node().op_type());
    }
  }
  CHECK(met.size() == kOfValues.size() + kOfShapes.size());
}
