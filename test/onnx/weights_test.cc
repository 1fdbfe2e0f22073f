// Weights that reach an op through chains of moves: they stay trained, one parameter an initializer, and come
// back through the chain when the trained model is written.
#include <onnx/onnx_pb.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "compiler/base/check.h"
#include "compiler/base/model_data.h"
#include "compiler/driver/compile.h"
#include "compiler/onnx/import.h"
#include "compiler/training/training.h"
#include "executor/weights/weights.h"
#include "test/catch.h"
#include "test/support/evaluate.h"

using namespace ff;
using namespace ff::test;

namespace {

/// A model built node by node and written to a file that goes with this.
class Model {
 public:
  explicit Model(int64_t opset = 17) {
    static int count = 0;
    path_ = (std::filesystem::temp_directory_path() /
             ("ff_indexing_" + std::to_string(::getpid()) + "_" + std::to_string(count++) + ".onnx"))
                .string();
    proto_.set_ir_version(8);
    proto_.add_opset_import()->set_version(opset);
    proto_.mutable_graph()->set_name("net");
  }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  ~Model() { std::filesystem::remove(path_); }

  Model& input(const std::string& name, const Shape& shape, int type = onnx::TensorProto::FLOAT) {
    auto& info = *proto_.mutable_graph()->add_input();
    info.set_name(name);
    auto& tensor = *info.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    for (int64_t d : shape) {
      auto& dim = *tensor.mutable_shape()->add_dim();
      if (d > 0) {
        dim.set_dim_value(d);
      } else {
        dim.set_dim_param("batch");
      }
    }
    return *this;
  }
  /// A weight whose element i is first + i.
  Model& weight(const std::string& name, const Shape& shape, float first = 0) {
    auto& tensor = initializer(name, shape, onnx::TensorProto::FLOAT);
    for (int64_t i = 0; i < volume(shape); ++i) tensor.add_float_data(first + static_cast<float>(i));
    return *this;
  }
  Model& integers(const std::string& name, const std::vector<int64_t>& values, bool scalar = false) {
    auto& tensor = initializer(name, scalar ? Shape{} : Shape{static_cast<int64_t>(values.size())},
                               onnx::TensorProto::INT64);
    for (int64_t v : values) tensor.add_int64_data(v);
    return *this;
  }
  Model& node(const std::string& type, const std::vector<std::string>& inputs,
              const std::vector<std::string>& outputs,
              const std::vector<std::pair<std::string, std::vector<int64_t>>>& attributes = {}) {
    auto& node = *proto_.mutable_graph()->add_node();
    node.set_op_type(type);
    for (const auto& name : inputs) node.add_input(name);
    for (const auto& name : outputs) node.add_output(name);
    for (const auto& [name, values] : attributes) {
      auto& a = *node.add_attribute();
      a.set_name(name);
      const bool list = name == "perm" || name == "split" || name == "axes";
      a.set_type(list ? onnx::AttributeProto::INTS : onnx::AttributeProto::INT);
      if (list) {
        for (int64_t v : values) a.add_ints(v);
      } else {
        a.set_i(values[0]);
      }
    }
    return *this;
  }
  Model& output(const std::string& name) {
    proto_.mutable_graph()->add_output()->set_name(name);
    return *this;
  }

  ImportedModel import(const ImportOptions& options = {}) {
    std::ofstream out(path_, std::ios::binary);
    REQUIRE(proto_.SerializeToOstream(&out));
    out.close();
    return import_model(path_, options);
  }
  const std::string& path() const { return path_; }

 private:
  onnx::TensorProto& initializer(const std::string& name, const Shape& shape, int type) {
    auto& tensor = *proto_.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(type);
    for (int64_t d : shape) tensor.add_dims(d);
    return tensor;
  }

  onnx::ModelProto proto_;
  std::string path_;
};

std::vector<std::string> trained(const ImportedModel& model) {
  std::vector<std::string> out;
  for (const Tensor& t : model.graph.tensors) {
    if (t.kind == TensorKind::parameter && t.source.role == ParameterRole::trained)
      out.push_back(t.source.model_name + " " + to_string(t.shape));
  }
  return out;
}

/// The parameters as a plan has them.
std::vector<Parameter> parameters_of(const ImportedModel& model) {
  std::vector<Parameter> out;
  for (const Tensor& t : model.graph.tensors) {
    if (t.kind != TensorKind::parameter) continue;
    Parameter p;
    p.name = t.name;
    p.kind = static_cast<ParameterKind>(t.source.role);
    p.shape = t.shape;
    p.dtype = t.dtype;
    p.source = static_cast<Parameter::Source>(t.source.kind);
    p.model_name = t.source.model_name;
    p.views = t.source.views;
    out.push_back(std::move(p));
  }
  return out;
}

std::vector<float> read(const std::string& path, const Parameter& p) {
  std::vector<float> out(static_cast<size_t>(volume(p.shape)));
  WeightReader(path).read(p, Box::whole(p.shape), out.data());
  return out;
}

/// An initializer of a model, as it stands in the file.
std::vector<float> initializer_of(const std::string& path, const std::string& name, const Shape& shape) {
  Parameter p;
  p.name = p.model_name = name;
  p.shape = shape;
  return read(path, p);
}

}  // namespace

TEST_CASE("a weight behind a chain of moves is trained and read and written through it") {
  // Rows 1 and 3 of a 5x4 matrix, transposed and reshaped: the matrix of a product.
  Model m;
  m.input("x", {2, 2})
      .weight("w", {5, 4})
      .integers("starts", {1})
      .integers("ends", {5})
      .integers("axes", {0})
      .integers("steps", {2});
  m.integers("shape", {2, 1, 4}).integers("one", {1});
  m.node("Slice", {"w", "starts", "ends", "axes", "steps"}, {"rows"})
      .node("Reshape", {"rows", "shape"}, {"cube"});
  m.node("Squeeze", {"cube", "one"}, {"flat"}).node("MatMul", {"x", "flat"}, {"y"}).output("y");
  const ImportedModel model = m.import();
  CHECK(trained(model) == std::vector<std::string>{"w 2x4"});
  REQUIRE(model.graph.ops.size() == 1);  // the moves are views
  const auto parameters = parameters_of(model);
  CHECK(read(m.path(), parameters.at(0)) == std::vector<float>{4, 5, 6, 7, 12, 13, 14, 15});
  const std::vector<float> values{-1, -2, -3, -4, -5, -6, -7, -8};
  const std::string out = m.path() + ".trained";
  write_trained(m.path(), parameters,
                {{parameters[0].name,
                  std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float))}},
                out);
  CHECK(initializer_of(out, "w", {5, 4}) ==
        std::vector<float>{0, 1, 2, 3, -1, -2, -3, -4, 8, 9, 10, 11, -5, -6, -7, -8, 16, 17, 18, 19});
  std::filesystem::remove(out);
}

TEST_CASE("parts of one weight that several nodes read are one trained parameter") {
  // Packed projections: the columns of one matrix, each part the matrix of a product of its own.
  Model m;
  m.input("x", {2, 3}).weight("w", {3, 6}).integers("parts", {2, 4});
  m.node("Split", {"w", "parts"}, {"a", "b"}, {{"axis", {1}}});
  m.node("MatMul", {"x", "a"}, {"p"}).node("MatMul", {"x", "b"}, {"q"});
  m.node("Concat", {"p", "q"}, {"y"}, {{"axis", {1}}}).output("y");
  const ImportedModel model = m.import();
  CHECK(trained(model) == std::vector<std::string>{"w 3x6"});
  // The whole computes x w.
  const std::vector<double> x{1, 0, 0, 0, 1, 1};
  std::vector<double> w(18);
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<double>(i);
  CHECK(evaluate(model.graph, {{"x", x}, {"w", w}}).at("y") ==
        std::vector<double>{0, 1, 2, 3, 4, 5, 18, 20, 22, 24, 26, 28});
}

TEST_CASE("gates of one weight reordered by slices and a concatenation stay one trained parameter") {
  Model m;
  m.input("x", {2, 4})
      .weight("w", {6, 4})
      .integers("0", {0})
      .integers("2", {2})
      .integers("4", {4})
      .integers("6", {6});
  m.node("Slice", {"w", "0", "2", "0"}, {"i"})
      .node("Slice", {"w", "2", "4", "0"}, {"f"})
      .node("Slice", {"w", "4", "6", "0"}, {"g"});
  m.node("Concat", {"i", "g", "f"}, {"reordered"}, {{"axis", {0}}})
      .node("Unsqueeze", {"reordered", "0"}, {"cube"});
  m.node("Transpose", {"cube"}, {"t"}, {{"perm", {0, 2, 1}}}).node("Squeeze", {"t", "0"}, {"flat"});
  m.node("MatMul", {"x", "flat"}, {"y"}).output("y");
  CHECK(trained(m.import()) == std::vector<std::string>{"w 6x4"});
}

TEST_CASE("one initializer under several names is one parameter") {
  // An embedding that is the output's matrix too, by an Identity node as exporters write it.
  for (const bool transposed_first : {true, false}) {
    Model m;
    m.input("tokens", {2, 3}, onnx::TensorProto::INT64).weight("w", {5, 4});
    m.node("Identity", {"w"}, {"again"});
    if (transposed_first) m.node("Transpose", {"again"}, {"t"}, {{"perm", {1, 0}}});
    m.node("Gather", {"w", "tokens"}, {"e"});
    if (!transposed_first) m.node("Transpose", {"again"}, {"t"}, {{"perm", {1, 0}}});
    m.node("MatMul", {"e", "t"}, {"y"}).output("y");
    CHECK(trained(m.import()) == std::vector<std::string>{"w 5x4"});
  }
}

TEST_CASE("the gradient of a tied weight is the sum over its uses") {
  Model m;
  m.input("tokens", {2}, onnx::TensorProto::INT64).weight("w", {3, 2});
  m.node("Gather", {"w", "tokens"}, {"e"}).node("Transpose", {"w"}, {"t"}, {{"perm", {1, 0}}});
  m.node("MatMul", {"e", "t"}, {"y"}).output("y");
  TrainingOptions options;
  options.losses = {parse_loss("mse")};
  options.precision = DType::f64;
  std::vector<std::string> notes;
  Graph graph = make_training_graph(m.import().graph, options, notes);
  std::erase_if(graph.ops, [](const Op& op) { return op.phase == Phase::update; });
  const std::vector<double> w{0.1, -0.2, 0.3, 0.5, -0.7, 0.4}, labels{1, 0, 2, 0, 1, 1};
  const auto loss = [&](std::vector<double> at) {
    return evaluate(graph, {{"tokens", {2, 0}}, {"w", std::move(at)}, {"labels", labels}}).at("loss")[0];
  };
  const std::vector<double> gradient =
      evaluate(graph, {{"tokens", {2, 0}}, {"w", w}, {"labels", labels}}).at("grad:w");
  for (size_t i = 0; i < w.size(); ++i) {
    std::vector<double> up = w, down = w;
    up[i] += 1e-5, down[i] -= 1e-5;
    CHECK(std::abs((loss(up) - loss(down)) / 2e-5 - gradient[i]) < 1e-9);
  }
}

TEST_CASE("a split follows the rules of its opset") {
  const auto parts = [](int64_t opset, std::vector<std::pair<std::string, std::vector<int64_t>>> attributes) {
    Model m(opset);
    m.input("x", {1, 7}).weight("w", {1}).node("Mul", {"x", "w"}, {"z"});
    attributes.push_back({"axis", {1}});
    m.node("Split", {"z"}, {"a", "b", "c"}, attributes).output("a").output("b").output("c");
    std::vector<int64_t> out;
    const ImportedModel model = m.import();
    for (TensorId id : model.graph.outputs) out.push_back(model.graph.tensor(id).shape[1]);
    return out;
  };
  CHECK(parts(11, {{"split", {1, 2, 4}}}) == std::vector<int64_t>{1, 2, 4});
  CHECK(parts(18, {{"num_outputs", {3}}}) == std::vector<int64_t>{3, 3, 1});
  CHECK_THROWS_AS(parts(13, {}), UserError);  // 7 into 3 equal parts
  CHECK_THROWS_AS(parts(11, {{"split", {1, 2, 3}}}), UserError);
}

TEST_CASE("a reshape whose target is computed from the batch follows it") {
  // x.view(x.size(0), -1) as PyTorch writes it.
  Model m;
  m.input("x", {0, 3, 4})
      .weight("w", {12, 2})
      .integers("zero", {0}, true)
      .integers("axes", {0})
      .integers("rest", {-1});
  m.node("Shape", {"x"}, {"s"}).node("Gather", {"s", "zero"}, {"n"}).node("Unsqueeze", {"n", "axes"}, {"n1"});
  m.node("Concat", {"n1", "rest"}, {"target"}, {{"axis", {0}}}).node("Reshape", {"x", "target"}, {"flat"});
  m.node("MatMul", {"flat", "w"}, {"y"}).output("y");
  for (int64_t batch : {5, 8}) {
    ImportOptions options;
    options.batch = batch;
    const ImportedModel model = m.import(options);
    CHECK(model.graph.tensor(model.graph.outputs.at(0)).shape == Shape{batch, 2});
    CHECK(model.graph.ops.size() == 2);
  }
}

TEST_CASE("a token that is expanded beside activations is trained") {
  Model m;
  m.input("x", {2, 3, 4}).weight("token", {1, 1, 4}).weight("w", {4, 2}).integers("shape", {2, 1, 4});
  m.node("Expand", {"token", "shape"}, {"tokens"}).node("Concat", {"tokens", "x"}, {"z"}, {{"axis", {1}}});
  m.node("MatMul", {"z", "w"}, {"y"}).output("y");
  CHECK(trained(m.import()) == std::vector<std::string>{"token 1x1x4", "w 4x2"});
}

TEST_CASE("a mask compared out of a part of an initializer is a constant") {
  // The first two rows and columns of 3x3 numbers.
  Model m;
  m.input("x", {2, 2})
      .weight("all", {3, 3})
      .integers("0", {0, 0})
      .integers("2", {2, 2})
      .integers("zero", {4}, true);
  m.node("Cast", {"zero"}, {"four"}, {{"to", {onnx::TensorProto::FLOAT}}});
  m.node("Slice", {"all", "0", "2"}, {"part"}).node("Less", {"part", "four"}, {"below"});
  m.node("Cast", {"below"}, {"mask"}, {{"to", {onnx::TensorProto::FLOAT}}})
      .node("Mul", {"x", "mask"}, {"y"})
      .output("y");
  const ImportedModel model = m.import();
  CHECK(trained(model).empty());
  REQUIRE(model.graph.ops.size() == 1);
  // 0 1 / 3 4 of 0 ... 8: all below 4 but the last.
  const Tensor& mask = model.graph.tensor(model.graph.ops[0].inputs[1]);
  std::vector<double> values;
  for (int64_t i = 0; i < 4; ++i) values.push_back(element_as_double(mask.source.bytes, mask.dtype, i));
  CHECK(values == std::vector<double>{1, 1, 1, 0});
}

TEST_CASE("sizes that only data would tell are refused with the node") {
  Model m;
  m.input("x", {2, 3}).node("NonZero", {"x"}, {"places"}).output("places");
  try {
    m.import();
    FAIL("no error");
  } catch (const UserError& e) {
    CHECK(std::string(e.what()).find(
              "node 'places' (NonZero): of values that are known only when the model runs") !=
          std::string::npos);
  }
}
