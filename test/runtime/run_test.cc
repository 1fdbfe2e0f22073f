// Whole runs of hand-written plans on threads, with the model's weights given by the test, and the parts of a
// run.
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "compiler/base/check.h"
#include "compiler/plan/container.h"
#include "executor/comm/thread_communicator.h"
#include "executor/runtime/checkpoint.h"
#include "executor/runtime/evaluation.h"
#include "executor/runtime/schedule.h"
#include "executor/runtime/trainer.h"
#include "executor/runtime/verification.h"
#include "test/catch.h"
#include "test/support/plan_builder.h"

namespace ff {
namespace {

namespace fs = std::filesystem;
using test::plan_of;
using test::ProgramBuilder;

class Folder {
 public:
  Folder()
      : path_(fs::temp_directory_path() / ("ff-run-" + std::to_string(::getpid()))),
        old_(fs::current_path()) {
    fs::create_directories(path_);
    fs::current_path(path_);
  }
  ~Folder() {
    fs::current_path(old_);
    fs::remove_all(path_);
  }

 private:
  fs::path path_, old_;
};

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// A .npy file of version 1.
template <typename T>
void write_npy(const std::string& path, const std::string& descr, const std::string& shape,
               const std::vector<T>& v) {
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize((10 + header.size()) / 64 * 64 + 64 - 10 - 1, ' ');
  header += '\n';
  std::ofstream out(path, std::ios::binary);
  out << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(header.size() & 255)
      << static_cast<char>(header.size() >> 8) << header;
  out.write(reinterpret_cast<const char*>(v.data()), static_cast<std::streamsize>(v.size() * sizeof(T)));
}

class Step : public Kernel {
 public:
  explicit Step(KernelCall call) : call_(std::move(call)) {}
  void run(std::span<void* const> p, void*, const RunContext& context) override {
    const auto f = [&](size_t i) { return static_cast<float*>(p[i]); };
    const int64_t n = volume(call_.operands[0].shape);
    if (call_.kernel == "Total") {  // out = the sum of in
      float sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += f(0)[i];
      f(1)[0] = sum;
    } else if (call_.kernel == "Descend") {  // w -= lr * g
      f(0)[0] -= static_cast<float>(context.learning_rate) * f(1)[0];
    } else if (call_.kernel == "Wrong") {
      f(0)[0] -= 2 * static_cast<float>(context.learning_rate) * f(1)[0];
    } else if (call_.kernel == "Scores") {  // [n, 3]: class x of sample x gets w, the others 0
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t c = 0; c < 3; ++c) f(1)[3 * i + c] = static_cast<float>(c) == f(0)[i] ? 1.0F : 0.0F;
      }
    }
  }

 private:
  KernelCall call_;
};

Buffer& shaped(ProgramBuilder& p, int32_t b, const Box& box) {
  p.at(b).box = box;
  return p.at(b);
}

/// g = the sum over the batch of 4 of x, w -= lr * g, and the "loss" is g. On two ranks each sums two
/// samples. eval_step: the scores of 4 samples, on rank 0. `update`: the kernel of the plan's ranks.
Plan summing_plan(const std::string& update = "Descend") {
  const auto body = [&](ProgramBuilder& p, Range samples, int32_t rank, bool distributed) {
    const int32_t x = p.input("x", samples, 0), part = p.scratch("part", {0, 1}, 64);
    const int32_t g = p.scratch("g", {0, 1}, 128), w = p.parameter("w", {0, 1}, 0);
    p.at(part).box = p.at(g).box = p.at(w).box = Box();
    p.entry(distributed ? "train_step" : "reference");
    p.kernel("Total", {{x, Access::in}, {distributed ? part : g, Access::out}});
    std::vector<int32_t> waits;
    if (distributed) waits = {p.collective(InstructionKind::all_reduce, 0, {part, g})};
    p.kernel(distributed ? update : "Descend", {{w, Access::inout}, {g, Access::in}}, waits, "update");
    if (rank == 0) p.output(g);
  };
  std::vector<Program> programs;
  for (int32_t rank = 0; rank < 2; ++rank) {
    ProgramBuilder p;
    body(p, {2 * rank, 2 * rank + 2}, rank, true);
    p.entry("eval_step");
    if (rank == 0) {
      const int32_t all = p.input("x", {0, 4}, 0), scores = p.scratch("scores", {0, 12}, 64);
      shaped(p, scores, Box({0, 0}, {4, 3}));
      p.kernel("Scores", {{all, Access::in}, {scores, Access::out}});
      p.output(scores);
    }
    programs.push_back(p.program());
  }
  Plan plan = plan_of(programs, {{0, 1}});
  ProgramBuilder reference;
  body(reference, {0, 4}, 0, false);
  plan.reference = reference.program();
  plan.model_path = "net.onnx";
  plan.model_hash = "original";
  plan.batch = 4;
  plan.optimizer = "sgd";
  plan.parameters = {test::parameter_of("w", {})};
  plan.inputs = {{.name = "x", .shape = {4}},
                 {.name = "labels", .shape = {4}, .dtype = DType::i64, .batch_axis = 0, .classes = 3}};
  plan.outputs = {"scores"};
  plan.step_ns = 1000;
  return plan;
}

struct Outcome {
  int status = 0;
  std::map<std::string, std::string> saved;
};

Backend backend(Outcome& outcome, const std::string& hash = "original") {
  return {.make_kernel = [](const KernelCall& call) { return std::make_unique<Step>(call); },
          .open_model =
              [&outcome, hash](const std::string&, bool) {
                return ModelFile{
                    .hash = hash,
                    .load = [](const Parameter&, const Box&, void* out) { *static_cast<float*>(out) = 100; },
                    .save = [&outcome](const auto&, const ParameterValues& values,
                                       const std::string&) { outcome.saved = values; }};
              },
          .set_threads = [](int64_t) {},
          .launcher_size = std::nullopt};
}

Outcome run(RunOptions options, int ranks = 2, const std::string& hash = "original") {
  Outcome outcome;
  options.plan_path = "plan.soap";
  options.quiet = true;
  const Backend with = backend(outcome, hash);
  run_threads(ranks, [&](Communicator& comm) {
    const int status = run_plan(options, with, comm);
    if (comm.rank() == 0) outcome.status = status;
  });
  return outcome;
}

/// Eight samples 0..7 in x, and labels of which the classes of x mod 3 are right except for sample 7.
void write_data() {
  write_npy<float>("x.npy", "<f4", "(8,)", {0, 1, 2, 0, 1, 2, 0, 1});
  write_npy<int64_t>("labels.npy", "<i8", "(8,)", {0, 1, 2, 0, 1, 2, 0, 2});
}

RunOptions with_data() {
  RunOptions options;
  options.data = {"x=x.npy", "labels=labels.npy"};
  options.learning_rate = 0.5;
  return options;
}

float value(const std::string& bytes) {
  float out = 0;
  std::memcpy(&out, bytes.data(), sizeof out);
  return out;
}

}  // namespace

TEST_CASE("a run trains reports and saves what can be worked out by hand") {
  const Folder folder;
  write_data();
  write_plan("plan.soap", summing_plan());
  std::ofstream("net.onnx") << "here";
  RunOptions options = with_data();
  options.steps = 3;
  options.log = "log.jsonl";
  options.report = "report.json";
  options.trace = "trace.json";
  options.save = "trained.onnx";
  options.eval_data = {"x=x.npy", "labels=labels.npy"};
  options.verify = true;
  const Outcome outcome = run(options);
  CHECK(outcome.status == 0);
  // Batches sum to 0+1+2+0 = 3 and 1+2+0+1 = 4; three steps: 100 - 0.5 * (3 + 4 + 3) = 95.
  REQUIRE(outcome.saved.contains("w"));
  CHECK(value(outcome.saved.at("w")) == 95);
  const auto report = nlohmann::json::parse(text_of("report.json"));
  CHECK(report["steps"] == 3);
  CHECK(report["loss_first"] == 3);
  CHECK(report["loss_last"] == 3);
  CHECK(report["accuracy"] == 0.875);  // 7 of 8
  CHECK(report["predicted_step_seconds"] == 1e-6);
  CHECK(report["devices"].size() == 2);
  CHECK(report["devices"][1]["arena_bytes"] == 64 + 192);
  CHECK(report["verify"]["passed"] == true);
  CHECK(report["verify"]["max_relative_difference"] == 0);
  std::istringstream log(text_of("log.jsonl"));
  std::vector<double> losses;
  for (std::string line; std::getline(log, line);) {
    const auto entry = nlohmann::json::parse(line);
    if (entry.contains("loss")) losses.push_back(entry["loss"]);
  }
  CHECK(losses == std::vector<double>{3, 4, 3});
  // A measured and a predicted event for each of the three instructions of two ranks.
  int events = 0;
  const auto trace = nlohmann::json::parse(text_of("trace.json"));
  for (const auto& event : trace["traceEvents"]) events += event["ph"] == "X" ? 1 : 0;
  CHECK(events == 12);
}

TEST_CASE("verify finds a step that is not the reference's and says 4") {
  const Folder folder;
  write_data();
  write_plan("plan.soap", summing_plan("Wrong"));
  std::ofstream("net.onnx") << "here";
  RunOptions options = with_data();
  options.steps = 1;
  options.verify = true;
  options.report = "report.json";
  CHECK(run(options).status == 4);
  // 100 - 2 * 0.5 * 3 = 97 against 98.5: twice the change of 1.5.
  const auto report = nlohmann::json::parse(text_of("report.json"));
  CHECK(report["verify"]["max_relative_difference"].get<double>() == Approx(1.0));
  CHECK(report["verify"]["parameter"] == "w");
}

TEST_CASE("a run that is resumed ends where an unbroken one does") {
  const Folder folder;
  write_data();
  write_plan("plan.soap", summing_plan());
  std::ofstream("net.onnx") << "here";
  RunOptions options = with_data();
  options.checkpoint = "ckpt";
  options.steps = 3;
  CHECK(run(options).status == 0);
  CHECK(CheckpointReader("ckpt").position().step == 3);
  options.resume = true;
  options.steps = 5;
  options.save = "trained.onnx";
  // 100 - 0.5 * (3 + 4 + 3 + 4 + 3).
  CHECK(value(run(options).saved.at("w")) == 91.5F);
  options.seed = 7;
  CHECK(run(options).status == 2);  // another order of samples
  std::string bytes = text_of("ckpt/checkpoint.ff");
  bytes[bytes.size() - 9] ^= 1;  // the last byte of w
  std::ofstream("ckpt/checkpoint.ff", std::ios::binary) << bytes;
  CHECK_THROWS_WITH(CheckpointReader("ckpt"),
                    "ckpt/checkpoint.ff: the checkpoint is damaged: its checksum does not match");
  CHECK_THROWS_WITH(CheckpointReader("none"), "none/checkpoint.ff: no checkpoint to resume from");
}

TEST_CASE("what is wrong at start-up is said with status 2 and nothing hangs") {
  const Folder folder;
  write_data();
  write_plan("plan.soap", summing_plan());
  RunOptions options = with_data();
  CHECK(run(options).status == 2);  // no net.onnx beside the plan
  std::ofstream("net.onnx") << "here";
  CHECK(run(options, 2, "another").status == 2);  // the model has changed
  CHECK(run(options, 3).status == 2);             // three ranks for two devices
  options.data.pop_back();
  CHECK(run(options).status == 2);  // no labels
  options.synthetic = true;
  options.steps = 2;
  CHECK(run(options).status == 0);
  options.epochs = 1;
  CHECK(run(options).status == 2);  // both
  options.epochs.reset();
  options.dry_run = true;
  CHECK(run(options).status == 0);
}

TEST_CASE("a schedule counts steps by epochs and drops what is no whole batch") {
  RunOptions options;
  options.epochs = 2;
  Schedule s = make_schedule(options, 10, 4, 0);
  CHECK(s.steps() == 4);
  CHECK(s.cut().dropped == 2);
  CHECK(s.epoch_of(2) == 1);
  CHECK(s.ends_epoch(1));
  CHECK(s.batch(3).samples == std::vector<int64_t>{4, 5, 6, 7});
  CHECK_THROWS_WITH(make_schedule(options, std::nullopt, 4, 0), "--epochs: made-up numbers have no end");
  options.epochs = 0;
  CHECK_THROWS_WITH(make_schedule(options, 10, 4, 0), "--epochs 0: must be at least 1");
}

TEST_CASE("accuracy takes the largest class and skips padding and ignored labels") {
  // Scores [4, 3, 2]: samples, classes, positions. All zero but one class a sample and position.
  std::vector<float> scores(24);
  const auto set = [&](int n, int c, int l) { scores[static_cast<size_t>(n * 6 + c * 2 + l)] = 1; };
  const int best[4][2] = {{0, 1}, {2, 0}, {1, 1}, {0, 0}};
  for (int n = 0; n < 4; ++n) {
    for (int l = 0; l < 2; ++l) set(n, best[n][l], l);
  }
  const std::vector<int32_t> labels = {0, 1, 2, 2, -1, 1, 0, 0};
  const Input input{.name = "labels", .shape = {4, 2}, .dtype = DType::i32, .batch_axis = 0};
  const auto bytes = [](const auto& v) {
    return std::string(reinterpret_cast<const char*>(v.data()), v.size() * 4);
  };
  const Accuracy a = count_correct(bytes(scores), DType::f32, {4, 3, 2}, bytes(labels), input, /*real=*/3);
  // Sample 0: both right; sample 1: the first; sample 2: one ignored, one right; sample 3 is padding.
  CHECK(a.counted == 5);
  CHECK(a.correct == 4);
}

TEST_CASE("a comparison is relative to the change of a whole parameter and refuses NaN") {
  const auto bytes = [](std::vector<float> v) {
    return std::string(reinterpret_cast<const char*>(v.data()), v.size() * 4);
  };
  const std::vector<Parameter> parameters = {test::parameter_of("a", {2}), test::parameter_of("b", {2})};
  const ParameterValues before = {{"a", bytes({100, 100})}, {"b", bytes({7, 7})}};
  const ParameterValues want = {{"a", bytes({103, 104})}, {"b", bytes({7, 7})}};
  const auto with_a = [&](float x, float y) {
    return ParameterValues{{"a", bytes({x, y})}, {"b", bytes({7, 7})}};
  };
  const Comparison c = compare(parameters, before, with_a(103, 104.5F), want);
  CHECK(c.worst == Approx(0.1));  // 0.5 of 5
  CHECK(c.parameter == "a");
  CHECK(c.tolerance == 0.05);
  CHECK_FALSE(c.within);
  CHECK(compare(parameters, before, with_a(103, 104.125F), want).within);  // 0.025
  CHECK_FALSE(compare(parameters, before, with_a(103, NAN), want).within);
  CHECK_FALSE(compare(parameters, before, {{"a", bytes({103, 104})}}, want).within);
  // b does not change: it is measured against a thousandth of the mean change, sqrt(25 / 4) * sqrt(2) / 1000.
  ParameterValues noise = want;
  noise["b"] = bytes({7, 7.0001F});
  CHECK(compare(parameters, before, noise, want).worst ==
        Approx(1e-4 / (2.5 * std::sqrt(2.0) / 1000)).epsilon(0.01));
  CHECK(compare(parameters, before, noise, want).within);
  // Nothing changes at all: nothing may differ.
  CHECK(compare(parameters, before, before, before).within);
  CHECK_FALSE(compare(parameters, before, noise, before).within);
}

}  // namespace ff
