// Delta simulation against full simulation: the same timeline, to the nanosecond, after every proposal of
// long random walks over random nets and machines, kept and rejected.
#include "compiler/simulator/delta.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "compiler/cost/roofline.h"
#include "compiler/machine/machine.h"
#include "compiler/search/baselines.h"
#include "compiler/search/candidate.h"
#include "compiler/simulator/memory.h"
#include "compiler/simulator/simulator.h"
#include "compiler/training/training.h"
#include "test/catch.h"
#include "test/e2e/random_nets.h"

using namespace ff;

namespace {

constexpr Nanoseconds kForever = std::numeric_limits<Nanoseconds>::max();

struct Event {
  int kind;
  int32_t owner, index;
  Nanoseconds duration, ready, end;
  friend auto operator<=>(const Event&, const Event&) = default;
};

/// What full simulation says of a strategy.
struct Whole {
  std::vector<Event> events;  // in the order of simulation
  Nanoseconds makespan = 0;
  std::vector<int64_t> peak_bytes;
};

Whole whole(const Problem& problem, const Machine& machine, Simulator& simulator, const Strategy& strategy) {
  const TaskGraph graph = simulator.build(strategy);
  const Timeline line = simulate(graph);
  Whole out;
  for (int32_t i : line.order) {
    const auto t = static_cast<size_t>(i);
    const Task& task = graph.tasks[t];
    out.events.push_back(
        {static_cast<int>(task.kind), task.owner, task.index, task.duration, line.ready[t], line.end[t]});
  }
  out.makespan = line.makespan;
  out.peak_bytes = peak_bytes(problem, machine, graph, line);
  return out;
}

std::vector<Event> events(const DeltaSimulator& simulator) {
  std::vector<Event> out;
  for (const auto& t : simulator.timeline())
    out.push_back(
        {static_cast<int>(t.task.kind), t.task.owner, t.task.index, t.task.duration, t.ready, t.end});
  return out;
}

/// Whether all that the simulator says is what full simulation says.
void check_equal(DeltaSimulator& simulator, const Whole& full) {
  CHECK(simulator.makespan() == full.makespan);
  CHECK(simulator.num_tasks() == static_cast<int64_t>(full.events.size()));
  CHECK((events(simulator) == full.events));
  CHECK(simulator.peak_bytes() == full.peak_bytes);
  // Limits around the peaks: the bound on memory must not hide an overrun.
  std::vector<int64_t> limits = full.peak_bytes;
  for (int64_t& limit : limits) limit = std::max<int64_t>(limit, 1);
  CHECK(simulator.overrun(limits) == 0);
  const auto most = std::max_element(limits.begin(), limits.end());
  if (*most > 1) {
    --*most;
    CHECK(simulator.overrun(limits) > 0);
  }
}

/// A walk of proposals, each judged with or without a limit and kept or rejected at random.
void walk(const Problem& problem, const Machine& machine, Rng& rng, int proposals) {
  RooflineCost costs, whole_costs;
  Simulator simulator(problem, machine, whole_costs);
  const int32_t intervals[] = {1, 16, 1024};
  DeltaSimulator delta(problem, machine, costs, intervals[rng.below(std::ssize(intervals))]);
  const Proposer proposer(problem, machine, Space::full);
  Strategy current = rng.below(2) == 0 ? data_parallel(problem, machine) : proposer.random_strategy(rng);
  delta.reset(current);
  Whole now = whole(problem, machine, simulator, current);
  check_equal(delta, now);
  const auto keep_chance = rng.below(4);  // of 4: some walks stay, some run
  for (int i = 0; i < proposals; ++i) {
    CAPTURE(i);
    StrategyEdit edit(current);
    const auto edits = 1 + rng.below(3);
    for (int64_t k = 0; k < edits; ++k) proposer.propose(edit, rng);
    const Whole next = whole(problem, machine, simulator, current);
    // Limits: none, far away, just enough, just too small, at random around the answer.
    const Nanoseconds choices[] = {kForever, 2 * next.makespan, next.makespan, next.makespan - 1,
                                   next.makespan / 2 + rng.below(next.makespan + 1)};
    const Nanoseconds limit = choices[rng.below(std::ssize(choices))];
    const bool fits = delta.propose(current, edit.leaders(), limit);
    REQUIRE(fits == (next.makespan <= limit));
    if (fits) {
      check_equal(delta, next);
      if (rng.below(4) < keep_chance) {
        delta.accept();
        now = next;
      } else {
        delta.reject();
        edit.undo();
      }
    } else {
      edit.undo();
    }
    if (i % 8 == 0) check_equal(delta, now);
  }
  check_equal(delta, now);
}

void walk(uint64_t seed, int proposals) {
  CAPTURE(seed);
  Rng rng(seed);
  const test::RandomTraining t = test::random_training(rng, true);
  std::vector<std::string> notes;
  const Graph graph = make_training_graph(t.net, t.options, notes);
  const char* names[] = {"cpu-2", "cpu-4", "ethernet-4", "p100-4x4", "k80-16x4:devices=8"};
  const std::string name = names[rng.below(std::ssize(names))];
  CAPTURE(name);
  const Machine machine = load_machine(name);
  const Problem problem(graph, machine.num_devices());
  walk(problem, machine, rng, proposals);
}

}  // namespace

TEST_CASE("delta simulation is full simulation over random nets, machines and walks") {
  for (uint64_t seed = 0; seed < 100; ++seed) walk(seed, 50);
}

TEST_CASE("delta simulation is full simulation on 64 devices") {
  for (uint64_t seed = 1000; seed < 1003; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const test::RandomTraining t = test::random_training(rng, true);
    std::vector<std::string> notes;
    const Graph graph = make_training_graph(t.net, t.options, notes);
    const Machine machine = load_machine("k80-16x4");
    const Problem problem(graph, machine.num_devices());
    walk(problem, machine, rng, 60);
  }
}

TEST_CASE("a strategy may be taken up again after others") {
  Rng rng(7);
  const test::RandomTraining t = test::random_training(rng, true);
  std::vector<std::string> notes;
  const Graph graph = make_training_graph(t.net, t.options, notes);
  const Machine machine = load_machine("p100-4x4");
  const Problem problem(graph, machine.num_devices());
  RooflineCost costs;
  Simulator simulator(problem, machine, costs);
  DeltaSimulator delta(problem, machine, costs);
  const Proposer proposer(problem, machine, Space::full);
  const Strategy a = data_parallel(problem, machine), b = proposer.random_strategy(rng);
  for (const Strategy* s : {&a, &b, &a}) {
    delta.reset(*s);
    check_equal(delta, whole(problem, machine, simulator, *s));
  }
}
