// Timelines derived by hand. Resources: devices 0 and 1 compute on 0 and 1; the links are 2 and 3.
#include "compiler/base/check.h"
#include "compiler/simulator/parts.h"
#include "compiler/simulator/simulator.h"
#include "test/catch.h"

using namespace ff;

namespace {

constexpr int32_t kLink = 2, kOtherLink = 3;

/// A task graph from durations, resources and edges.
class Tasks {
 public:
  int32_t add(Nanoseconds duration, std::vector<int32_t> resources) {
    graph_.tasks.push_back({Task::Kind::run, 0, 0, duration});
    graph_.resources.items.insert(graph_.resources.items.end(), resources.begin(), resources.end());
    graph_.resources.begin.push_back(static_cast<int32_t>(graph_.resources.items.size()));
    after_.emplace_back();
    return static_cast<int32_t>(graph_.tasks.size()) - 1;
  }
  void edge(int32_t from, int32_t to) { after_[static_cast<size_t>(from)].push_back(to); }

  Timeline run() {
    graph_.num_resources = 4;
    graph_.first_link = kLink;
    graph_.predecessors.assign(graph_.tasks.size(), 0);
    for (const auto& list : after_) {
      for (int32_t to : list) {
        graph_.successors.items.push_back(to);
        ++graph_.predecessors[static_cast<size_t>(to)];
      }
      graph_.successors.begin.push_back(static_cast<int32_t>(graph_.successors.items.size()));
    }
    return simulate(graph_);
  }

 private:
  TaskGraph graph_;
  std::vector<std::vector<int32_t>> after_;
};

using Times = std::vector<Nanoseconds>;

Step step(StepKind kind, int members, int64_t bytes) {
  Step s;
  s.kind = kind;
  for (int i = 0; i < members; ++i) {
    s.group.push_back(DeviceId(i));
    s.in.push_back(i);
    s.out.push_back(i);
  }
  s.bytes = bytes;
  return s;
}

}  // namespace

TEST_CASE("a chain takes the sum of its tasks") {
  Tasks t;
  const auto a = t.add(3, {0});
  const auto b = t.add(5, {0});
  const auto c = t.add(7, {0});
  t.edge(a, b);
  t.edge(b, c);
  const Timeline line = t.run();
  CHECK(line.start == Times{0, 3, 8});
  CHECK(line.makespan == 15);
}

TEST_CASE("a diamond on two devices takes its longer side") {
  // a 2 on device 0; then b 4 on 0 and c 9 on 1 at once; d 1 on 0 starts when c ends: 2 + 9 = 11.
  Tasks t;
  const auto a = t.add(2, {0});
  const auto b = t.add(4, {0});
  const auto c = t.add(9, {1});
  const auto d = t.add(1, {0});
  t.edge(a, b);
  t.edge(a, c);
  t.edge(b, d);
  t.edge(c, d);
  const Timeline line = t.run();
  CHECK(line.start == Times{0, 2, 2, 11});
  CHECK(line.makespan == 12);
}

TEST_CASE("what does not depend on a message runs beside it") {
  // a 4 on 0, its message 10 on the link, b 6 on 1 waits for it; c 8 on 0 needs a only: 4 .. 12 beside the
  // message 4 .. 14.
  Tasks t;
  const auto a = t.add(4, {0});
  const auto message = t.add(10, {kLink});
  const auto b = t.add(6, {1});
  const auto c = t.add(8, {0});
  t.edge(a, message);
  t.edge(message, b);
  t.edge(a, c);
  const Timeline line = t.run();
  CHECK(line.start == Times{0, 4, 14, 4});
  CHECK(line.makespan == 20);
}

TEST_CASE("a message that holds its device delays what runs there") {
  // As above, but the message occupies device 0 too, and comes first by id: c starts at 14.
  Tasks t;
  const auto a = t.add(4, {0});
  const auto message = t.add(10, {0, kLink});
  const auto b = t.add(6, {1});
  const auto c = t.add(8, {0});
  t.edge(a, message);
  t.edge(message, b);
  t.edge(a, c);
  CHECK(t.run().start == Times{0, 4, 14, 14});
}

TEST_CASE("a link serves in order of readiness and then of number") {
  // Messages ready at 5 (after a), 3 (after b) and 3 (after c): c's and b's tie and go by number, a's is
  // last.
  Tasks t;
  const auto a = t.add(5, {0});
  const auto b = t.add(3, {1});
  const auto from_a = t.add(10, {kLink});
  const auto from_b = t.add(10, {kLink});
  const auto also_from_b = t.add(10, {kLink});
  t.edge(a, from_a);
  t.edge(b, from_b);
  t.edge(b, also_from_b);
  const Timeline line = t.run();
  CHECK(line.start == Times{0, 0, 23, 3, 13});
  CHECK(line.makespan == 33);
}

TEST_CASE("a message that waits for one of its links lets others pass on the rest") {
  // The first holds link 2 from 0 to 10. The second crosses both links: 3 at once, 2 from 10 to 20. The
  // third, over link 3, follows it there: 10 to 20. Each link is busy for 20, and that is all it takes.
  Tasks t;
  t.add(10, {kLink});
  t.add(10, {kLink, kOtherLink});
  t.add(10, {kOtherLink});
  const Timeline line = t.run();
  CHECK(line.start == Times{0, 10, 10});
  CHECK(line.makespan == 20);
}

TEST_CASE("a message keeps its devices until it is through") {
  // Link 2 is taken until 10; the message from device 0 over it ends at 14, and only then does 0 compute.
  Tasks t;
  t.add(10, {kLink});
  t.add(4, {0, kLink});
  t.add(3, {0});
  CHECK(t.run().start == Times{0, 10, 14});
}

TEST_CASE("a gradient is synchronised beside the rest of the backward pass") {
  // Backward of layer 2 (10), then of layer 1 (10), on both devices; layer 2's all-reduce (12) holds the link
  // from 10 to 22, layer 1's (4) from 22 to 26; the updates (1 each) follow on the devices: 22..23
  // and 26..27.
  Tasks t;
  std::vector<int32_t> layer2, layer1;
  for (int32_t d : {0, 1}) layer2.push_back(t.add(10, {d}));
  for (int32_t d : {0, 1}) layer1.push_back(t.add(10, {d}));
  const auto sync2 = t.add(12, {kLink});
  const auto sync1 = t.add(4, {kLink});
  for (size_t d : {0U, 1U}) {
    t.edge(layer2[d], layer1[d]);
    t.edge(layer2[d], sync2);
    t.edge(layer1[d], sync1);
    t.edge(sync2, t.add(1, {static_cast<int32_t>(d)}));
    t.edge(sync1, t.add(1, {static_cast<int32_t>(d)}));
  }
  const Timeline line = t.run();
  CHECK(line.start[static_cast<size_t>(sync2)] == 10);
  CHECK(line.start[static_cast<size_t>(sync1)] == 22);
  CHECK(line.makespan == 27);
}

TEST_CASE("tasks that wait for each other are found out") {
  Tasks t;
  const auto a = t.add(1, {0});
  const auto b = t.add(1, {0});
  t.edge(a, b);
  t.edge(b, a);
  CHECK_THROWS_AS(t.run(), InternalError);
}

TEST_CASE("steps are priced by the links that they cross") {
  // Two devices of one node over a full-duplex link of 1 GB/s and 500 ns.
  const Machine machine = parse_machine(R"(
name: "pair"
device_kind { name: "gpu" backend: CUDA memory: "1 GiB" flops_f32: 1e12 memory_bandwidth: 1e11 }
node {
  device { kind: "gpu" count: 2 }
  link { kind: NVLINK from: "gpu0" to: "gpu1" bandwidth: 1e9 latency_ns: 500 }
}
refinements { collectives: true }
)",
                                        "pair.machine");
  // 1000 bytes at 1 byte a nanosecond.
  CHECK(price_step(step(StepKind::message, 2, 1000), machine).duration == 1500);
  // An all-reduce of 1000 bytes over 2 is one round of 500 bytes each way to reduce and one to gather: 2 (500
  // + 500).
  CHECK(price_step(step(StepKind::all_reduce, 2, 1000), machine).duration == 2000);
  CHECK(price_step(step(StepKind::reduce_scatter, 2, 1000), machine).duration == 1000);
  CHECK(price_step(step(StepKind::broadcast, 2, 1000), machine).duration == 1500);
  CHECK(price_step(step(StepKind::all_reduce, 2, 1000), machine).bytes_moved == 2000);
}
