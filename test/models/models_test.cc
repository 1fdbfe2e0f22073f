// Models: published sizes, files that ONNX's own shape inference accepts, flags that are refused as they
// should be.
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "compiler/base/check.h"
#include "models/zoo.h"
#include "test/catch.h"
#include "tools/cli/command_line.h"

namespace ff {
namespace {

onnx::ModelProto written(const std::string& name, BuilderOptions options,
                         const ModelOptions& model_options = {}) {
  const ModelEntry* entry = find_model(name);
  REQUIRE(entry != nullptr);
  options.name = name;
  options.init = entry->init;
  Builder net(options);
  entry->build(net, model_options);
  std::string folder = (std::filesystem::temp_directory_path() / "ff-models-XXXXXX").string();
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  net.save(folder + "/m.onnx");
  onnx::ModelProto model;
  std::ifstream in(folder + "/m.onnx", std::ios::binary);
  REQUIRE(model.ParseFromIstream(&in));
  std::filesystem::remove_all(folder);
  return model;
}

std::vector<float> values(const onnx::ModelProto& model, const std::string& name) {
  for (const auto& t : model.graph().initializer()) {
    if (t.name() != name) continue;
    std::vector<float> out(t.raw_data().size() / sizeof(float));
    std::memcpy(out.data(), t.raw_data().data(), t.raw_data().size());
    return out;
  }
  FAIL("no initializer " << name);
  return {};
}

TEST_CASE("every model has its published number of parameters") {
  // torchvision's documentation, num_params of each model's weights; Inception v3: 27161264 with its
  // auxiliary head, whose layers (768-128 1x1, 128-768 5x5, 768-1000, two norms) have 98304 + 2457600 +
  // 769000 + 256 + 1536.
  const std::map<std::string, int64_t> published = {
      {"alexnet", 61100840},
      {"vgg16", 138357544},
      {"resnet18", 11689512},
      {"resnet50", 25557032},
      {"resnet101", 44549160},
      {"mobilenet-v2", 3504872},
      {"inception-v3", 27161264 - 98304 - 2457600 - 769000 - 256 - 1536},
      // Sums over the layers, (inputs * kernel + 1) * outputs.
      {"lenet5", 26 * 6 + 151 * 16 + 401 * 120 + 121 * 84 + 85 * 10},
      {"mlp", 785 * 512 + 513 * 512 + 513 * 10},
      {"fashion-cnn", 26 * 16 + 401 * 32 + 513 * 128 + 129 * 10},
      // Convolutions without bias, two numbers a channel for each norm.
      {"residual-bn",
       27 * 16 + 144 * 16 * 2 + 144 * 32 + 288 * 32 + 16 * 32 + 2 * (3 * 16 + 3 * 32) + 33 * 10}};
  CHECK(models().size() == published.size());
  for (const ModelEntry& entry : models()) {
    Builder net({.name = entry.name, .light = true});
    entry.build(net, {});
    INFO(entry.name);
    CHECK(net.parameters() == published.at(entry.name));
    CHECK(entry.parameters == published.at(entry.name));
  }
}

TEST_CASE("models are listed smallest first") {
  for (size_t i = 1; i < models().size(); ++i) CHECK(models()[i - 1].parameters < models()[i].parameters);
}

TEST_CASE("light models pass strict shape inference and give logits of every class") {
  for (const ModelEntry& entry : models()) {
    INFO(entry.name);
    onnx::ModelProto model = written(entry.name, {.batch = 4, .light = true});
    CHECK(model.ByteSizeLong() < 200000);
    model.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
    onnx::ShapeInferenceOptions strict{true, 1, true};
    onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(), strict);
    CHECK(model.graph().input(0).name() == "image");
    CHECK(model.graph().output(0).name() == "logits");
    const auto& shape = model.graph().output(0).type().tensor_type().shape();
    REQUIRE(shape.dim_size() == 2);
    CHECK(shape.dim(0).dim_value() == 4);
    CHECK(shape.dim(1).dim_value() == (entry.parameters < 1000000 ? 10 : 1000));
  }
}

TEST_CASE("weights are uniform within the bound of their fan-in and depend on the seed") {
  const onnx::ModelProto model = written("mlp", {.seed = 1});
  const std::vector<float> w = values(model, "fc1.weight");
  REQUIRE(w.size() == 784 * 512);
  double largest = 0, squares = 0;
  for (float v : w)
    largest = std::max(largest, std::abs(static_cast<double>(v))), squares += static_cast<double>(v) * v;
  // PyTorch's Linear: uniform within 1/sqrt(784) = 1/28, so of variance 1/(3 * 784).
  CHECK(largest <= 1.0 / 28);
  CHECK(largest > 0.999 / 28);
  CHECK(squares / static_cast<double>(w.size()) * 3 * 784 == Approx(1).margin(0.01));
  CHECK(values(written("mlp", {.seed = 1}), "fc1.weight") == w);
  CHECK(values(written("mlp", {.seed = 2}), "fc1.weight") != w);
  CHECK(values(model, "fc2.weight")[0] != w[0]);
}

TEST_CASE("the batch is symbolic unless it is given") {
  const auto dim = [](const onnx::ModelProto& m) {
    return m.graph().input(0).type().tensor_type().shape().dim(0);
  };
  CHECK(dim(written("lenet5", {})).dim_param() == "batch");
  CHECK(dim(written("lenet5", {.batch = 7})).dim_value() == 7);
}

TEST_CASE("dropout layers are there when asked for") {
  const auto dropouts = [](double ratio) {
    int count = 0;
    const onnx::ModelProto model = written("alexnet", {.light = true}, {.dropout = ratio});
    for (const auto& node : model.graph().node()) count += node.op_type() == "Dropout" ? 1 : 0;
    return count;
  };
  CHECK(dropouts(0) == 0);
  CHECK(dropouts(0.5) == 2);
}

TEST_CASE("a model that cannot be written is an outside failure", "[error]") {
  Builder net({.name = "mlp", .light = true});
  find_model("mlp")->build(net, {});
  CHECK_THROWS_AS(net.save("/nonexistent-folder/m.onnx"), RunError);
}

// Parses words with one option of every kind; gives the message and hint of a refusal.
struct Parsed {
  std::string model;
  int64_t batch = 64;
  double lr = 0.1;
  bool shuffle = false;
  std::vector<std::string> data;
  std::optional<int64_t> steps;
  std::string search = "mcmc";
  bool run = false;
  std::string error;
};

Parsed parsed(std::vector<std::string> words) {
  Parsed p;
  CommandLine line("ffx", "Tests.");
  line.positional("MODEL", &p.model, "A model", true);
  line.option("--batch", &p.batch, "N", "Samples");
  line.option("--lr", &p.lr, "X", "Rate");
  line.flag("--shuffle", &p.shuffle, "Shuffles");
  line.option("--data", &p.data, "NAME=FILE", "Data");
  line.option("--steps", &p.steps, "N", "Steps");
  line.choice("--search", &p.search, {"mcmc", "data-parallel", "expert"}, "Search");
  words.insert(words.begin(), "ffx");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  try {
    p.run = line.parse(static_cast<int>(argv.size()), argv.data());
  } catch (const UserError& error) {
    p.error = std::string(error.what()) + " | " + error.hint();
  }
  return p;
}

TEST_CASE("flags set their variables and what is not given keeps its default") {
  const Parsed p =
      parsed({"--data", "a=1", "m.onnx", "--batch=32", "--data", "b=2", "--shuffle", "--search", "expert"});
  CHECK(p.error == "");
  CHECK(p.run);
  CHECK(p.model == "m.onnx");
  CHECK(p.batch == 32);
  CHECK(p.lr == 0.1);
  CHECK(p.shuffle);
  CHECK(p.data == std::vector<std::string>{"a=1", "b=2"});
  CHECK(!p.steps.has_value());
  CHECK(parsed({"m", "--steps", "9"}).steps == 9);
  CHECK(parsed({"m"}).search == "mcmc");
}

TEST_CASE("a wrong command line is refused with what may have been meant", "[error]") {
  CHECK(parsed({"m", "--bacth", "3"}).error == "unknown option '--bacth' | did you mean '--batch'?");
  CHECK(parsed({"--shufle"}).error == "unknown option '--shufle' | did you mean '--shuffle'?");
  CHECK(parsed({"m", "--sreach=mcmc"}).error == "unknown option '--sreach' | did you mean '--search'?");
  CHECK(parsed({"m", "n"}).error == "unexpected argument 'n' | ffx --help lists what is taken");
  CHECK(parsed({}).error == "MODEL is required | ffx --help lists what is taken");
  CHECK(parsed({"m", "--search", "mcm"}).error == "--search mcm: no such choice | did you mean 'mcmc'?");
  CHECK(parsed({"m", "--batch", "many"}).error.rfind("Could not convert: --batch = many", 0) == 0);
}

TEST_CASE("the nearest word counts edits and swaps of neighbours") {
  CHECK(nearest("resnet5", {"alexnet", "resnet50", "resnet101"}) == "resnet50");
  CHECK(nearest("ab", {"abcd", "ba"}) == "ba");
}

}  // namespace
}  // namespace ff
