// Agreement with PyTorch: from the same weights and data, 5 steps of SGD with momentum change each weight as
// double-precision PyTorch changes it, with at most twice the error of single-precision PyTorch.
// make_goldens.py makes the data.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "compiler/cost/roofline.h"
#include "compiler/driver/compile.h"
#include "compiler/machine/machine.h"
#include "compiler/onnx/import.h"
#include "compiler/plan/verify.h"
#include "compiler/training/training.h"
#include "executor/comm/thread_communicator.h"
#include "executor/kernels/cpu/registry.h"
#include "executor/runtime/parameters.h"
#include "executor/weights/weights.h"
#include "test/catch.h"

using namespace ff;

namespace {

struct Update {
  std::string name;
  std::vector<double> values;
  double single_error = 0;
};

struct Golden {
  int64_t steps = 0;
  double learning_rate = 0, momentum = 0;
  std::vector<float> images;
  std::vector<int64_t> labels;
  std::vector<Update> updates;
};

template <typename T>
T read_one(std::ifstream& in) {
  T value{};
  in.read(reinterpret_cast<char*>(&value), sizeof value);
  return value;
}

template <typename T>
std::vector<T> read_many(std::ifstream& in) {
  std::vector<T> values(static_cast<size_t>(read_one<int64_t>(in)));
  in.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
  return values;
}

Golden read_golden(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in.good());
  Golden g;
  g.steps = read_one<int64_t>(in);
  g.learning_rate = read_one<double>(in);
  g.momentum = read_one<double>(in);
  g.images = read_many<float>(in);
  g.labels = read_many<int64_t>(in);
  while (in.peek() != std::ifstream::traits_type::eof()) {
    Update u;
    const auto name = read_many<char>(in);
    u.name.assign(name.begin(), name.end());
    u.values = read_many<double>(in);
    u.single_error = read_one<double>(in);
    g.updates.push_back(std::move(u));
  }
  REQUIRE(!g.updates.empty());
  return g;
}

void fill_inputs(const Plan& plan, const Golden& golden, Interpreter& interpreter) {
  const Program& program = interpreter.program();
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& b = program.buffers[i];
    if (b.origin != Origin::input) continue;
    for (const Input& input : plan.inputs) {
      if (input.name != b.tensor) continue;
      const bool labels = input.name == "labels";
      const std::vector<int64_t> tokens(golden.images.begin(), golden.images.end());
      const void* whole = labels                      ? static_cast<const void*>(golden.labels.data())
                          : input.dtype == DType::i64 ? static_cast<const void*>(tokens.data())
                                                      : golden.images.data();
      copy_region(static_cast<char*>(const_cast<void*>(whole)), input.shape, b.box,
                  static_cast<char*>(interpreter.data(static_cast<int32_t>(i))), b.layout, size_of(b.dtype),
                  false);
    }
  }
}

/// Each weight's total update, after the golden's steps on this many ranks. `loss` graph: the model's own,
/// for the batch that the model has.
std::map<std::string, std::vector<double>> train(const std::string& model, const Golden& golden, int ranks,
                                                 const std::string& strategy, const std::string& loss) {
  ImportOptions import;
  if (loss != "graph") import.batch = static_cast<int64_t>(golden.labels.size());
  const ImportedModel imported = import_model(model, import);
  std::vector<std::string> notes;
  TrainingOptions options;
  options.losses = {parse_loss(loss)};
  const Graph graph = make_training_graph(imported.graph, options, notes);
  const Problem problem(graph, ranks);
  const Machine machine = load_machine("cpu-4:devices=" + std::to_string(ranks));
  RooflineCost costs;
  const auto make = [](const KernelCall& call) { return cpu::make_kernel(call); };
  const Plan plan = make_plan(
      {&problem, nullptr, &machine}, baseline_strategy(strategy, problem, machine), costs,
      [&](const KernelCall& call) { return make(call)->workspace_bytes(); }, false);
  verify(plan);
  std::map<std::string, std::vector<double>> out;
  run_threads(ranks, [&](Communicator& comm) {
    WeightReader reader(model);
    const auto load =
        plan_loader([&](const Parameter& p, const Box& box, void* to) { reader.read(p, box, to); });
    Interpreter interpreter(plan.programs[static_cast<size_t>(comm.rank())], plan.groups, comm, make,
                            {.fill_nan = true});
    load_parameters(plan.parameters, interpreter, load);
    const ParameterValues before = gather_parameters(plan.parameters, interpreter, comm).values;
    RunContext context;
    context.learning_rate = golden.learning_rate;
    context.momentum = golden.momentum;
    for (context.step = 0; context.step < golden.steps; ++context.step) {
      fill_inputs(plan, golden, interpreter);
      interpreter.execute("train_step", context);
    }
    const ParameterValues after = gather_parameters(plan.parameters, interpreter, comm).values;
    for (const auto& [name, value] : after) {
      const size_t n = value.size() / sizeof(float);
      for (size_t i = 0; i < n; ++i) {
        float a = 0;
        float b = 0;
        std::memcpy(&a, value.data() + i * sizeof a, sizeof a);
        std::memcpy(&b, before.at(name).data() + i * sizeof b, sizeof b);
        out[name].push_back(static_cast<double>(a) - static_cast<double>(b));
      }
    }
  });
  return out;
}

void check_agreement(const std::string& folder, const std::string& net,
                     const std::string& loss = "softmax-cross-entropy") {
  const std::string base = folder + "/" + net;
  const Golden golden = read_golden(base + ".bin");
  const std::pair<int, std::string> plans[] = {
      {1, "data-parallel"}, {2, "data-parallel"}, {2, "model-parallel"}};
  for (const auto& [ranks, strategy] : plans) {
    const auto got = train(base + ".onnx", golden, ranks, strategy, loss);
    double worst = 0;
    for (const Update& expected : golden.updates) {
      INFO(net << ", " << strategy << " on " << ranks << " ranks, " << expected.name);
      REQUIRE(got.contains(expected.name));
      const auto& values = got.at(expected.name);
      REQUIRE(values.size() == expected.values.size());
      double error = 0;
      double norm = 0;
      for (size_t i = 0; i < values.size(); ++i) {
        error += std::pow(values[i] - expected.values[i], 2);
        norm += std::pow(expected.values[i], 2);
      }
      // Storing a weight in f32 rounds it by up to 2^-24 of itself in every step, whoever computes it.
      const double allowed = 2 * expected.single_error + 1e-7 * std::sqrt(norm);
      CHECK(std::sqrt(error) <= allowed);
      worst = std::max(worst, std::sqrt(error) / allowed);
    }
    std::printf("%s, %s on %d ranks: at most %.3f of the error allowed\n", net.c_str(), strategy.c_str(),
                ranks, worst);
  }
}

}  // namespace

TEST_CASE("a LeNet-like network trains as in PyTorch") { check_agreement(FF_GOLDEN_DATA, "lenet"); }
TEST_CASE("a residual block with batch normalisation trains as in PyTorch") {
  check_agreement(FF_GOLDEN_DATA, "residual");
}
TEST_CASE("images that shrink and grow again train as in PyTorch") {
  check_agreement(FF_GOLDEN_DATA, "hourglass");
}
TEST_CASE("an embedding that is also the output's matrix trains as in PyTorch") {
  check_agreement(FF_GOLDEN_DATA, "words");
}
TEST_CASE("losses of the model's own train as in PyTorch") {
  check_agreement(FF_GOLDEN_DATA, "segments", "graph");
}
// Run by torchvision.sh, which makes what they read.
TEST_CASE("AlexNet trains as in PyTorch", "[.torchvision]") {
  check_agreement(std::getenv("FF_GOLDENS"), "alexnet");
}
TEST_CASE("ResNet-50's first step is that of PyTorch", "[.torchvision]") {
  check_agreement(std::getenv("FF_GOLDENS"), "resnet50-first-step");
}
TEST_CASE("ResNet-50 trains as in PyTorch", "[.torchvision]") {
  check_agreement(std::getenv("FF_GOLDENS"), "resnet50");
}
