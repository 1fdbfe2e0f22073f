// How long the simulator takes for a proposal of the search.
//
//     ff_simulator_speed MODEL.onnx MACHINE BATCH [--proposals N] [--rnn-chunk N] [--seed N]
//
// Prints the size of the data-parallel task graph, the time to build and to simulate it, and the mean time of
// a proposal while the search is hot (takes a third of its proposals or more) and cold; and the lower bound
// of all strategies, with the time to find it. Times are of one thread; `loop` is a fixed amount of work
// measured in the same run, so that figures of two machines can be compared by their ratio to it.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <queue>
#include <string>
#include <vector>

#include "compiler/base/check.h"
#include "compiler/cost/roofline.h"
#include "compiler/onnx/import.h"
#include "compiler/search/baselines.h"
#include "compiler/search/bound.h"
#include "compiler/search/mcmc.h"
#include "compiler/training/training.h"

namespace ff {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Mean milliseconds of `body`, run for half a second and three times at least.
template <typename F>
double mean_of(F body) {
  const auto start = Clock::now();
  int runs = 0;
  do {
    body();
    ++runs;
  } while (runs < 3 || milliseconds_since(start) < 500);
  return milliseconds_since(start) / runs;
}

/// A heap of 1,024 numbers, popped and pushed a million times.
double reference_loop() {
  const auto start = Clock::now();
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> heap;
  uint64_t x = 1;
  for (int i = 0; i < 1024; ++i) heap.push(x = x * 6364136223846793005ULL + 1);
  for (int i = 0; i < 1'000'000; ++i) {
    const uint64_t top = heap.top();
    heap.pop();
    x = x * 6364136223846793005ULL + 1;
    heap.push(top / 2 + x / 2);
  }
  FF_CHECK(!heap.empty());
  return milliseconds_since(start);
}

struct Arguments {
  std::string model, machine;
  int64_t batch = 0, proposals = 400, rnn_chunk = 0;
  uint64_t seed = 1;
};

Arguments parse(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(
        stderr,
        "usage: ff_simulator_speed MODEL.onnx MACHINE BATCH [--proposals N] [--rnn-chunk N] [--seed N]\n");
    std::exit(2);
  }
  Arguments a{argv[1], argv[2], std::atoll(argv[3])};
  for (int i = 4; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const int64_t value = std::atoll(argv[i + 1]);
    if (name == "--proposals") a.proposals = value;
    if (name == "--rnn-chunk") a.rnn_chunk = value;
    if (name == "--seed") a.seed = static_cast<uint64_t>(value);
  }
  return a;
}

void measure_bound(const Problem& problem, const Machine& machine) {
  for (const Space space : {Space::soap, Space::full}) {
    RooflineCost costs;  // its own: every kernel is priced anew
    const auto start = Clock::now();
    const Nanoseconds bound = LowerBound(problem, machine, costs, space).value();
    std::printf("lower bound (%s space): %.3f ms a step, found in %.0f ms\n",
                space == Space::soap ? "soap" : "full", static_cast<double>(bound) * 1e-6,
                milliseconds_since(start));
  }
}

void measure_walk(const char* name, const Problem& problem, const Machine& machine, CostModel& costs,
                  const Arguments& a, double beta) {
  SearchOptions options;
  options.space = Space::soap;
  Chain chain(problem, machine, costs, options, data_parallel(problem, machine), a.seed);
  const auto start = Clock::now();
  chain.run(a.proposals, beta, [] { return false; });
  const double ms = milliseconds_since(start);
  std::printf("%s: %.3f ms a proposal, %.1f %% of %ld taken, best %.3f ms\n", name,
              ms / static_cast<double>(a.proposals),
              100.0 * static_cast<double>(chain.accepted()) / static_cast<double>(a.proposals),
              static_cast<long>(a.proposals),
              static_cast<double>(chain.best() ? chain.best_cost() : 0) * 1e-6);
}

int run(const Arguments& a) {
  ImportOptions import;
  import.batch = a.batch;
  import.rnn_chunk = a.rnn_chunk;
  TrainingOptions training;
  training.losses.push_back(parse_loss("softmax-cross-entropy"));
  std::vector<std::string> notes;
  const Graph graph = make_training_graph(import_model(a.model, import).graph, training, notes);
  const Machine machine = load_machine(a.machine);
  const Problem problem(graph, machine.num_devices());
  RooflineCost costs;
  const Strategy start = data_parallel(problem, machine);
  TaskGraph tasks = Simulator(problem, machine, costs).build(start);
  std::printf("%s on %s: %zu ops, %zu leaders, %zu tasks, %zu edges\n", a.model.c_str(), a.machine.c_str(),
              graph.ops.size(), problem.leaders().size(), tasks.tasks.size(), tasks.successors.items.size());
  std::printf("loop: %.1f ms\n", reference_loop());
  std::printf("build: %.3f ms\n", mean_of([&] { tasks = Simulator(problem, machine, costs).build(start); }));
  const double full = mean_of([&] { FF_CHECK_GE(simulate(tasks).makespan, 1); });
  std::printf("full simulation: %.3f ms, %.1f ns a task\n", full,
              full * 1e6 / static_cast<double>(tasks.tasks.size()));
  measure_bound(problem, machine);
  measure_walk("hot", problem, machine, costs, a, 1);
  measure_walk("cold", problem, machine, costs, a, 1000);
  return 0;
}

}  // namespace
}  // namespace ff

int main(int argc, char** argv) {
  try {
    return ff::run(ff::parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ff_simulator_speed: %s\n", error.what());
    return 1;
  }
}
