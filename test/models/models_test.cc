// Models: published sizes, files that ONNX's own shape inference accepts, flags that are refused as they
// should be.
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <cmath>
#include <cstring>
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

int64_t volume(const onnx::TensorProto& t) {
  int64_t n = 1;
  for (int64_t extent : t.dims()) n *= extent;
  return n;
}

bool is_mask(const onnx::TensorProto& t) {
  const auto* value = reinterpret_cast<const float*>(t.raw_data().data());
  return std::any_of(value, value + volume(t), [](float v) { return v <= -1e4F; });
}

// Elements of the weights in the file, initializers and filled constants, but for running statistics and
// masks.
int64_t trained_elements(const onnx::ModelProto& model) {
  std::map<std::string, const onnx::TensorProto*> initializers;
  std::set<std::string> state;
  for (const auto& t : model.graph().initializer()) initializers[t.name()] = &t;
  for (const auto& node : model.graph().node()) {
    if (node.op_type() == "BatchNormalization") state.insert({node.input(3), node.input(4)});
  }
  int64_t sum = 0;
  for (const auto& node : model.graph().node()) {
    if (node.op_type() != "ConstantOfShape" || state.contains(node.output(0))) continue;
    const std::string& shape = initializers.at(node.input(0))->raw_data();
    int64_t n = 1, extent = 0;
    for (size_t at = 0; at < shape.size(); at += sizeof extent) {
      std::memcpy(&extent, shape.data() + at, sizeof extent);
      n *= extent;
    }
    sum += n;
  }
  for (const auto& [name, t] : initializers) {
    if (t->data_type() == onnx::TensorProto::FLOAT && t->dims_size() > 0 && !state.contains(name) &&
        !is_mask(*t))
      sum += volume(*t);
  }
  return sum;
}

int64_t dense(int64_t in, int64_t out) { return in * out + out; }
int64_t lstm(int64_t in, int64_t hidden) { return 4 * hidden * (in + hidden + 2); }  // PyTorch's two biases

int64_t bert(int64_t layers, int64_t hidden, int64_t tokens, int64_t words) {
  const int64_t norm = 2 * hidden;
  const int64_t layer =
      4 * dense(hidden, hidden) + dense(hidden, 4 * hidden) + dense(4 * hidden, hidden) + 2 * norm;
  return (words + tokens + 2) * hidden + norm + layers * layer + dense(hidden, hidden) + norm + words;
}

int64_t gpt2(int64_t layers, int64_t hidden, int64_t tokens, int64_t words) {
  const int64_t layer = dense(hidden, 3 * hidden) + dense(hidden, hidden) + dense(hidden, 4 * hidden) +
                        dense(4 * hidden, hidden) + 4 * hidden;
  return (words + tokens) * hidden + layers * layer + 2 * hidden;
}

// Two 3x3 convolutions a level, down and up; 2x2 ones upwards; the last one 1x1.
int64_t unet() {
  const auto two = [](int64_t in, int64_t out) { return dense(9 * in, out) + dense(9 * out, out); };
  int64_t sum = two(1, 64) + dense(64, 2);
  for (int64_t width = 64; width < 1024; width *= 2)
    sum += two(width, 2 * width) + dense(4 * 2 * width, width) + two(2 * width, width);
  return sum;
}

// 196 patches of 16x16x3; 384 wide over patches and 3072 over channels (Tolstikhin et al. 2021, table 1:
// 59M).
int64_t mixer() {
  const int64_t block = 4 * 768 + dense(196, 384) + dense(384, 196) + dense(768, 3072) + dense(3072, 768);
  return dense(16 * 16 * 3, 768) + 12 * block + 2 * 768 + dense(768, 1000);
}

const std::map<std::string, int64_t>& published() {
  static const std::map<std::string, int64_t> counts = {
      // torchvision's documentation, num_params of each model's weights; Inception v3: 27161264 with its
      // auxiliary head, whose layers (768-128 1x1, 128-768 5x5, 768-1000, two norms) have 98304 + 2457600 +
      // 769000 + 256 + 1536.
      {"alexnet", 61100840},
      {"vgg16", 138357544},
      {"resnet18", 11689512},
      {"resnet50", 25557032},
      {"resnet101", 44549160},
      {"resnext50", 25028904},
      {"mobilenet-v2", 3504872},
      {"densenet121", 7978856},
      {"inception-v3-aux", 27161264},
      {"inception-v3", 27161264 - 98304 - 2457600 - 769000 - 256 - 1536},
      {"vit-b16", 86567656},
      // Hugging Face: BertModel has 109482240 (base) and 335141888 (large) with its pooler, which the head
      // for
      // masked words has not; that has a layer, a norm and a bias for each word instead.
      {"bert-base", 109482240 - (768 * 768 + 768) + (768 * 768 + 768 + 2 * 768) + 30522},
      {"bert-large", 335141888 - (1024 * 1024 + 1024) + (1024 * 1024 + 1024 + 2 * 1024) + 30522},
      {"gpt2-small", 124439808},
      {"gpt2-xl", 1557611200},
      // Sums over the layers, (inputs * kernel + 1) * outputs.
      {"lenet5", 26 * 6 + 151 * 16 + 401 * 120 + 121 * 84 + 85 * 10},
      {"mlp", 785 * 512 + 513 * 512 + 513 * 10},
      {"fashion-cnn", 26 * 16 + 401 * 32 + 513 * 128 + 129 * 10},
      // Convolutions without bias, two numbers a channel for each norm.
      {"residual-bn",
       27 * 16 + 144 * 16 * 2 + 144 * 32 + 288 * 32 + 16 * 32 + 2 * (3 * 16 + 3 * 32) + 33 * 10},
      {"unet", unet()},
      {"mixer-b16", mixer()},
      {"rnntc", 32000 * 1024 + 4 * lstm(1024, 1024) + dense(1024, 2)},
      {"rnnlm", 32000 * 1024 + lstm(1024, 2048) + lstm(2048, 2048) + dense(2048, 32000)},
      // Attention: a matrix between decoder and encoder, one from both to the output; no biases.
      {"nmt", 2 * 32000 * 1024 + 4 * lstm(1024, 1024) + 1024 * 1024 + 2048 * 1024 + dense(1024, 32000)},
      // 9 vectors of 64 have 36 dot products.
      {"dlrm", 8 * 1000000 * 64 + dense(512, 512) + dense(512, 64) + dense(64 + 36, 1024) +
                   2 * dense(1024, 1024) + dense(1024, 1)}};
  return counts;
}

TEST_CASE("every model has its published number of parameters") {
  CHECK(models().size() == published().size());
  for (const ModelEntry& entry : models()) {
    INFO(entry.name);
    CHECK(trained_elements(written(entry.name, {.light = true})) == published().at(entry.name));
    CHECK(entry.parameters == published().at(entry.name));
  }
}

TEST_CASE("a model with its weights has as many parameters as a light one") {
  for (const char* name : {"mlp", "residual-bn", "mobilenet-v2"}) {
    INFO(name);
    CHECK(trained_elements(written(name, {})) == published().at(name));
  }
}

TEST_CASE("sizes that are asked for replace a model's own") {
  const ModelOptions small{.layers = 3, .hidden = 48, .heads = 4, .sequence = 20, .vocabulary = 101};
  for (bool light : {false, true}) {
    CHECK(trained_elements(written("bert-base", {.light = light}, small)) == bert(3, 48, 20, 101));
    CHECK(trained_elements(written("gpt2-xl", {.light = light}, small)) == gpt2(3, 48, 20, 101));
    CHECK(trained_elements(written("rnntc", {.light = light}, small)) ==
          101 * 1024 + lstm(1024, 48) + 2 * lstm(48, 48) + dense(48, 2));
    CHECK(trained_elements(written("dlrm", {.light = light}, {.vocabulary = 7, .tables = 3})) ==
          3 * 7 * 64 + dense(512, 512) + dense(512, 64) + dense(64 + 6, 1024) + 2 * dense(1024, 1024) +
              dense(1024, 1));
  }
  CHECK(bert(12, 768, 512, 30522) == published().at("bert-base"));
  CHECK(gpt2(12, 768, 1024, 50257) == published().at("gpt2-small"));
}

TEST_CASE("sizes that a model cannot have are refused", "[error]") {
  CHECK_THROWS_AS(written("gpt2-small", {.light = true}, {.heads = 7}), UserError);
  CHECK_THROWS_AS(written("unet", {.light = true}, {.image = 104}), UserError);
}

const onnx::NodeProto& node_named(const onnx::ModelProto& model, const std::string& name) {
  for (const auto& node : model.graph().node()) {
    if (node.name() == name) return node;
  }
  FAIL("no node " << name);
  return model.graph().node(0);
}

TEST_CASE("language transformers project onto their vocabulary with the embedding's table") {
  const ModelOptions small{.layers = 1, .hidden = 8, .heads = 2, .sequence = 3, .vocabulary = 5};
  const std::map<std::string, std::string> tables{{"gpt2-small", "transformer.wte"},
                                                  {"bert-base", "bert.embeddings.word_embeddings"}};
  for (const auto& [name, table] : tables) {
    const onnx::ModelProto model = written(name, {}, small);
    CHECK(node_named(model, table).input(0) == table + ".weight");
    CHECK(node_named(model, table + ".tied").input(0) == table + ".weight");
  }
  // No token attends to one behind it.
  const float m = -1e9F;
  CHECK(values(written("gpt2-small", {}, small), "causal_mask") ==
        std::vector<float>{0, m, m, 0, 0, m, 0, 0, 0});
}

TEST_CASE("a translator's decoder begins with the encoder's last state and attends to its steps") {
  const onnx::ModelProto model = written("nmt", {.light = true});
  for (const std::string layer : {"l0", "l1"}) {
    const onnx::NodeProto encoder = node_named(model, "encoder.lstm." + layer);
    const onnx::NodeProto decoder = node_named(model, "decoder.lstm." + layer);
    CHECK(encoder.input_size() == 4);
    REQUIRE(decoder.input_size() == 7);
    CHECK(decoder.input(5) == encoder.output(1));
    CHECK(decoder.input(6) == encoder.output(2));
  }
}

TEST_CASE("models are listed smallest first") {
  for (size_t i = 1; i < models().size(); ++i) CHECK(models()[i - 1].parameters < models()[i].parameters);
}

// What each model takes and gives, behind the batch.
struct Ends {
  std::vector<std::string> inputs{"image"};
  std::vector<std::vector<int64_t>> outputs{{1000}};
};

Ends ends_of(const std::string& name) {
  const std::map<std::string, Ends> others{{"residual-bn", {.outputs = {{10}}}},
                                           {"lenet5", {.outputs = {{10}}}},
                                           {"fashion-cnn", {.outputs = {{10}}}},
                                           {"mlp", {.outputs = {{10}}}},
                                           {"inception-v3-aux", {.outputs = {{1000}, {1000}}}},
                                           {"unet", {.outputs = {{2, 512, 512}}}},
                                           {"rnntc", {{"tokens"}, {{2}}}},
                                           {"rnnlm", {{"tokens"}, {{40, 32000}}}},
                                           {"nmt", {{"source", "target"}, {{40, 32000}}}},
                                           {"bert-base", {{"input_ids", "token_type_ids"}, {{512, 30522}}}},
                                           {"bert-large", {{"input_ids", "token_type_ids"}, {{512, 30522}}}},
                                           {"gpt2-small", {{"input_ids"}, {{1024, 50257}}}},
                                           {"gpt2-xl", {{"input_ids"}, {{1024, 50257}}}},
                                           {"dlrm", {{"dense", "categories"}, {{1}}}}};
  const auto at = others.find(name);
  return at == others.end() ? Ends{} : at->second;
}

TEST_CASE("light models are small and pass strict shape inference") {
  for (const ModelEntry& entry : models()) {
    INFO(entry.name);
    onnx::ModelProto model = written(entry.name, {.batch = 4, .light = true});
    const bool added_weights = entry.takes("heads");  // positions, biases, a mask
    CHECK(model.ByteSizeLong() < (added_weights ? 16000000u : 400000u));
    for (auto& out : *model.mutable_graph()->mutable_output())
      out.mutable_type()->mutable_tensor_type()->clear_shape();
    onnx::ShapeInferenceOptions strict{true, 1, true};
    onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(), strict);
    const Ends ends = ends_of(entry.name);
    std::vector<std::string> inputs;
    for (const auto& in : model.graph().input()) inputs.push_back(in.name());
    CHECK(inputs == ends.inputs);
    CHECK(model.graph().output(0).name() == (entry.name == "dlrm" ? "probability" : "logits"));
    REQUIRE(static_cast<size_t>(model.graph().output_size()) == ends.outputs.size());
    for (size_t i = 0; i < ends.outputs.size(); ++i) {
      std::vector<int64_t> wanted = ends.outputs[i], shape;
      wanted.insert(wanted.begin(), 4);
      for (const auto& d : model.graph().output(static_cast<int>(i)).type().tensor_type().shape().dim())
        shape.push_back(d.dim_value());
      CHECK(shape == wanted);
    }
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
