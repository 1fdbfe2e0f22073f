// Any strategy computes the training step that one device computes. Replay one case: FF_SEED=N test_equality.
// Cases: FF_CASES=N.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#include "compiler/driver/compile.h"
#include "compiler/training/training.h"
#include "test/catch.h"
#include "test/e2e/equality.h"
#include "test/e2e/random_nets.h"

using namespace ff;
using namespace ff::test;

namespace {

/// How often each op, split dimension and communication occurred.
std::map<std::string, int> seen;

int64_t from_environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoll(text) : otherwise;
}

void count(const Problem& problem, const Strategy& strategy, const Plan& plan) {
  for (OpId leader : problem.leaders()) {
    const Op& op = problem.graph().op(leader);
    const Config& config = strategy.configs[leader.index()];
    ++seen["op " + op.type];
    for (size_t d = 0; d < config.degrees.size(); ++d) {
      if (config.degrees[d] > 1) ++seen["split " + op.type + "." + problem.space(leader).dims[d].name];
    }
  }
  constexpr const char* kNames[] = {"kernel",         "send",       "receive",  "all_reduce",
                                    "reduce_scatter", "all_gather", "broadcast"};
  for (const Program& program : plan.programs) {
    for (const Entry& entry : program.entries) {
      for (const Instruction& i : entry.instructions)
        ++seen[std::string("instruction ") + kNames[static_cast<int>(i.kind)]];
    }
  }
}

void check_case(uint64_t seed) {
  Rng rng(seed);
  RandomTraining drawn = random_training(rng, true);
  drawn.options.precision = DType::f64;
  const double rate = drawn.learning_rate;
  std::vector<std::string> notes;
  const Graph training = make_training_graph(std::move(drawn.net), drawn.options, notes);
  const int devices = static_cast<int>(1 + rng.below(5));
  const Problem one(training, 1);
  const Problem many(training, devices);
  const Trained expected = train(one, single_device(one), {.learning_rate = rate});
  const Strategy strategy = random_strategy(many, rng);
  const Trained got = train(many, strategy, {.interleave_seed = seed + 1, .learning_rate = rate});
  count(many, strategy, got.plan);
  INFO("loss " << expected.loss);
  CHECK(largest_difference(training, got.values, expected.values) < 1e-10);
  CHECK(std::abs(got.loss - expected.loss) < 1e-10 * (1 + std::abs(expected.loss)));
  CHECK(got.differing_replicas.empty());
}

}  // namespace

TEST_CASE("training under a random strategy equals training on one device") {
  const int64_t only = from_environment("FF_SEED", -1);
  const int64_t cases = from_environment("FF_CASES", 300);
  const int64_t first = only >= 0 ? only : from_environment("FF_FIRST_SEED", 0);
  const int64_t last = only >= 0 ? only + 1 : first + cases;
  for (int64_t seed = first; seed < last; ++seed) {
    INFO("replay with FF_SEED=" << seed);
    try {
      check_case(static_cast<uint64_t>(seed));
    } catch (const std::exception& e) {
      FAIL("seed " << seed << ": " << e.what());
    }
  }
  if (only >= 0 || cases < 100) return;
  for (const auto& [what, times] : seen) std::printf("%6d %s\n", times, what.c_str());
  for (const char* what : {"op Conv",
                           "op MaxPool",
                           "op AveragePool",
                           "op GlobalAveragePool",
                           "op ConvTranspose",
                           "op Resize",
                           "op LpPool",
                           "op BatchNorm",
                           "op LRN",
                           "op Add",
                           "op Mul",
                           "op Concat",
                           "op Pad",
                           "op Gather",
                           "op Slice",
                           "op CumSum",
                           "op Trilu",
                           "op Expand",
                           "op TopK",
                           "op GatherElements",
                           "op ScatterElements",
                           "op ArgMax",
                           "op Reshape",
                           "op MatMul",
                           "op Dropout",
                           "op Softmax",
                           "op LogSoftmax",
                           "op SoftmaxCrossEntropy",
                           "op MeanSquaredError",
                           "op Momentum",
                           "op Adam",
                           "op AdamW",
                           "op Sgd",
                           "split Conv.n",
                           "split Conv.co",
                           "split Conv.h",
                           "split Conv.w",
                           "split Conv.ci",
                           "split ConvTranspose.ci",
                           "split ConvTranspose.co",
                           "split ConvTranspose.h",
                           "split Resize.h",
                           "split Gather.v",
                           "split Gather.i0",
                           "split GatherElements.v",
                           "split ScatterElements.v",
                           "split MatMul.m",
                           "split MatMul.n",
                           "split MatMul.k",
                           "split BatchNorm.n",
                           "split BatchNorm.h",
                           "split BatchNorm.g",
                           "split SoftmaxCrossEntropy.class",
                           "split MaxPool.h",
                           "instruction send",
                           "instruction all_reduce",
                           "instruction reduce_scatter",
                           "instruction all_gather",
                           "instruction broadcast"}) {
    INFO(what << " never occurred");
    CHECK(seen[what] > 0);
  }
}
