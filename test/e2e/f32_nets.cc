// Random nets in f32, by the kernels that train, on ranks that are processes: they may be no farther from the
// f64 result than ten times what one device in f32 is.
//
//   mpirun -n 3 --oversubscribe test_f32_nets 100 20   # seeds 100 to 119, each net on three ranks
//   mpirun -n 3 --oversubscribe test_f32_nets 114      # replays one
//
// Of every net three runs of three steps, from the same numbers: a on one device in f64 by the plain loops, b
// on one device in f32, c in f32 on the ranks. For every weight and state, in the norm over its elements:
//
//   |c - a| <= 10 max(|b - a|, floor),   floor = 2^-24 (|a| + sqrt(elements) * typical change)
//
// The floor is what rounding alone may do, also where one device was lucky. 2^-24 |a|, half a unit in the
// last place: every step stores the weight once more. 2^-24 of the typical change (root mean square over the
// net's weights, or over the same state of its optimizer): a bias before a batch normalisation has a gradient
// of zero, as a sum of terms that are as large as other gradients; what is left of it is their rounding.
//
// b itself must be within a tenth of what the steps changed of a: else ten times would allow anything.
//
// Of many seeds one in a thousand or so is past it without a fault, and which one depends on the processor:
// one device was luckier than the floor (12 times), or the input of a ReLU lay so near zero (6e-8 in seed
// 1243) that it was on in one run and off in another. The test's 20 seeds are at 4 times at most with each of
// SSE4.1, AVX, AVX2 and AVX-512; gradients that one rank has wrong by 1e-4 of themselves put 57 of their 60
// runs past 10.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/base/check.h"
#include "compiler/base/hash.h"
#include "compiler/base/model_data.h"
#include "compiler/driver/compile.h"
#include "compiler/plan/codec.h"
#include "executor/comm/mpi_communicator.h"
#include "executor/runtime/gather.h"
#include "test/e2e/equality.h"
#include "test/e2e/random_nets.h"

using namespace ff;
using namespace ff::test;

namespace {

constexpr double kTimes = 10;
constexpr double kRounding = 0x1p-24;
constexpr double kOneDevice = 0.1;
// Changes small against the typical one are mostly rounding.
constexpr double kSmallChange = 0.1;
// The default one of sgd. The weights change enough to show in f32, those of squared errors too: three steps
// are too few to run away.
constexpr double kLearningRate = 0.01;
constexpr int64_t kNetsThatCoverAll = 20;

/// How often each op and kind of instruction occurred.
std::map<std::string, int> seen;

struct Runs {
  Trained before, exact, alone, ranks;
  int64_t exchanges = 0;
};

/// The larger is the worse.
struct Finding {
  double ratio = 0;
  std::string parameter;
  double ranks = 0, alone = 0, floor = 0;  // |c - a|, |b - a|
};

Graph graph_of(const RandomTraining& drawn, DType precision) {
  TrainingOptions options = drawn.options;
  options.precision = precision;
  std::vector<std::string> notes;
  return make_training_graph(drawn.net, options, notes);
}

void check_same_plan(const Plan& plan, Communicator& comm) {
  uint64_t hash = hash_bytes(encode_header(plan));
  for (const Program& program : plan.programs) hash = hash_bytes(encode(program), hash);
  for (int64_t other : all_gather(static_cast<int64_t>(hash), comm))
    FF_CHECK_EQ(other, static_cast<int64_t>(hash)) << "ranks made different plans";
}

/// Instructions by which ranks exchange data.
int64_t count(const Problem& problem, const Plan& plan) {
  for (OpId leader : problem.leaders()) ++seen["op " + problem.graph().op(leader).type];
  constexpr const char* kNames[] = {"kernel",         "send",       "receive",  "all_reduce",
                                    "reduce_scatter", "all_gather", "broadcast"};
  int64_t exchanges = 0;
  for (const Program& program : plan.programs) {
    for (const Entry& entry : program.entries) {
      for (const Instruction& i : entry.instructions) {
        ++seen[std::string("instruction ") + kNames[static_cast<int>(i.kind)]];
        if (i.kind != InstructionKind::kernel) ++exchanges;
      }
    }
  }
  return exchanges;
}

/// Everything but `ranks` is empty on ranks other than 0.
Runs run_net(const RandomTraining& drawn, Rng& rng, Communicator& comm) {
  const Graph f32 = graph_of(drawn, DType::f32);
  const Graph f64 = graph_of(drawn, DType::f64);
  const Problem many(f32, comm.size());
  const Problem one(f32, 1);
  const Problem exact(f64, 1);
  const TrainOptions fast{.flavor = cpu::Flavor::fast, .learning_rate = kLearningRate};
  const TrainOptions plain{.flavor = cpu::Flavor::reference, .learning_rate = kLearningRate};
  Runs out;
  Plan plan = compile(many, random_strategy(many, rng), cpu::Flavor::fast);
  check_same_plan(plan, comm);
  out.ranks = train(plan, comm, fast);
  if (comm.rank() != 0) return out;
  out.exchanges = count(many, plan);
  out.ranks.plan = std::move(plan);
  out.exact = train(exact, single_device(exact), plain);
  out.before = train(exact, single_device(exact), {.steps = 0});
  out.alone = train(one, single_device(one), fast);
  return out;
}

std::vector<double> numbers(const std::string& bytes, DType type) {
  std::vector<double> out(bytes.size() / static_cast<size_t>(size_of(type)));
  for (size_t i = 0; i < out.size(); ++i) out[i] = element_as_double(bytes, type, static_cast<int64_t>(i));
  return out;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  FF_CHECK_EQ(a.size(), b.size());
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

/// Weights, running statistics, and each state of the optimizer ("p3.velocity"): what is alike in scale.
std::string kind_of(const Parameter& p) {
  const size_t dot = p.name.find('.');
  return std::to_string(static_cast<int>(p.kind)) + (dot == std::string::npos ? "" : p.name.substr(dot));
}

/// The root mean square of what the steps changed, by kind.
std::map<std::string, double> typical_changes(const Runs& runs) {
  std::map<std::string, double> out, elements;
  for (const Parameter& p : runs.ranks.plan.parameters) {
    const double change = distance(numbers(runs.exact.values.at(p.name), DType::f64),
                                   numbers(runs.before.values.at(p.name), DType::f64));
    out[kind_of(p)] += change * change;
    elements[kind_of(p)] += static_cast<double>(volume(p.shape));
  }
  for (auto& [kind, squares] : out) squares = std::sqrt(squares / elements[kind]);
  return out;
}

/// The parameter that is worst, and in `alone` how far one device is from f64, against what changed.
Finding compare(const Runs& runs, double& alone) {
  const std::map<std::string, double> typical = typical_changes(runs);
  Finding worst;
  for (const Parameter& p : runs.ranks.plan.parameters) {
    FF_CHECK(p.dtype == DType::f32) << p.name;
    const auto a = numbers(runs.exact.values.at(p.name), DType::f64);
    const auto b = numbers(runs.alone.values.at(p.name), DType::f32);
    const auto c = numbers(runs.ranks.values.at(p.name), DType::f32);
    const auto before = numbers(runs.before.values.at(p.name), DType::f64);
    const double scale = std::sqrt(static_cast<double>(a.size())) * typical.at(kind_of(p));
    Finding found{.parameter = p.name, .ranks = distance(c, a), .alone = distance(b, a)};
    found.floor = kRounding * (distance(a, std::vector<double>(a.size())) + scale);
    found.ratio = found.ranks == 0 ? 0 : found.ranks / std::max(found.alone, found.floor);
    if (!(found.ratio <= worst.ratio)) worst = found;  // a NaN too, which then stays
    const double relative =
        found.alone == 0 ? 0 : found.alone / std::max(distance(a, before), kSmallChange * scale);
    if (!(relative <= alone)) alone = relative;
    if (std::isnan(worst.ratio)) break;
  }
  return worst;
}

/// Whether the net passed; true on ranks other than 0.
bool check_net(uint64_t seed, Communicator& comm) {
  Rng rng(seed);
  const RandomTraining drawn = random_training(rng);
  const Runs runs = run_net(drawn, rng, comm);
  if (comm.rank() != 0) return true;
  double alone = 0;
  const Finding worst = compare(runs, alone);
  const auto& differing = runs.ranks.differing_replicas;
  const bool passed = worst.ratio <= kTimes && alone <= kOneDevice && differing.empty();
  std::printf(
      "seed %llu: %.2f times (%s: %.2g from f64, one device %.2g, floor %.2g); one device %.1g; %lld "
      "exchanges%s\n",
      static_cast<unsigned long long>(seed), worst.ratio, worst.parameter.c_str(), worst.ranks, worst.alone,
      worst.floor, alone, static_cast<long long>(runs.exchanges), passed ? "" : "  FAILED");
  for (const std::string& name : differing) std::printf("  replicas of %s differ\n", name.c_str());
  if (!passed) {
    std::printf("  replay: mpirun -n %d --oversubscribe test_f32_nets %llu\n", comm.size(),
                static_cast<unsigned long long>(seed));
  }
  return passed;
}

/// Whether the nets had every kind of layer, loss and optimizer, and were split in every way.
bool covers_all(int ranks) {
  std::vector<std::string> wanted{"op Conv",
                                  "op MaxPool",
                                  "op AveragePool",
                                  "op GlobalAveragePool",
                                  "op BatchNorm",
                                  "op LRN",
                                  "op Add",
                                  "op Mul",
                                  "op Concat",
                                  "op Pad",
                                  "op MatMul",
                                  "op Dropout",
                                  "op Softmax",
                                  "op LogSoftmax",
                                  "op SoftmaxCrossEntropy",
                                  "op MeanSquaredError",
                                  "op Sgd",
                                  "op Momentum",
                                  "op Adam",
                                  "op AdamW",
                                  "instruction send",
                                  "instruction all_reduce",
                                  "instruction all_gather"};
  // Of two ranks one sends to the other.
  if (ranks > 2) wanted.insert(wanted.end(), {"instruction reduce_scatter", "instruction broadcast"});
  bool all = true;
  for (const std::string& what : wanted) {
    if (seen[what] > 0) continue;
    std::printf("FAILED: %s never occurred\n", what.c_str());
    all = false;
  }
  return all;
}

int64_t number(const char* text) {
  int64_t out = 0;
  const char* const end = text + std::strlen(text);
  if (std::from_chars(text, end, out).ptr != end || out < 0)
    throw UserError(std::string("'") + text + "' is no number",
                    "mpirun -n 2 test_f32_nets FIRST_SEED [NETS]");
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  MpiRuntime mpi(&argc, &argv);
  return mpi.run("test_f32_nets", [&](Communicator& comm) {
    const int64_t first = argc > 1 ? number(argv[1]) : 0;
    const int64_t nets = argc > 2 ? number(argv[2]) : 1;
    int failed = 0;
    for (int64_t seed = first; seed < first + nets; ++seed) {
      try {
        failed += check_net(static_cast<uint64_t>(seed), comm) ? 0 : 1;
      } catch (...) {
        std::fprintf(stderr, "test_f32_nets: rank %d: in seed %lld\n", comm.rank(),
                     static_cast<long long>(seed));
        throw;
      }
    }
    if (comm.rank() != 0) return 0;
    const bool covered = nets < kNetsThatCoverAll || covers_all(comm.size());
    std::printf("%lld nets on %d ranks, %d failed\n", static_cast<long long>(nets), comm.size(), failed);
    return failed > 0 || !covered ? 1 : 0;
  });
}
