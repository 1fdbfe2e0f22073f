// The interpreter on hand-written programs, with kernels of three lines: what it does, not what kernels
// compute.
#include "executor/runtime/interpreter.h"

#include <cmath>
#include <cstring>
#include <mutex>

#include "compiler/base/check.h"
#include "compiler/plan/verify.h"
#include "executor/comm/thread_communicator.h"
#include "executor/runtime/gather.h"
#include "executor/runtime/parameters.h"
#include "test/catch.h"
#include "test/support/plan_builder.h"

namespace ff {
namespace {

using test::plan_of;
using test::ProgramBuilder;

class Loop : public Kernel {
 public:
  using Body = std::function<void(std::span<void* const>, const RunContext&)>;
  Loop(Body body, int64_t workspace) : body_(std::move(body)), workspace_(workspace) {}
  int64_t workspace_bytes() const override { return workspace_; }
  void run(std::span<void* const> operands, void*, const RunContext& context) override {
    body_(operands, context);
  }

 private:
  Body body_;
  int64_t workspace_;
};

float* floats(void* p) { return static_cast<float*>(p); }

/// "Sum": out = a + b. "Double": out = 2 a. "Step": out = the step's number. "Throw": a UserError. "Large":
/// asks for 4 KiB.
std::unique_ptr<Kernel> make(const KernelCall& call) {
  const int64_t n = call.operands.empty() ? 0 : volume(call.operands.back().shape);
  const std::string what = call.kernel;
  return std::make_unique<Loop>(
      [n, what](std::span<void* const> p, const RunContext& context) {
        if (what == "Throw") throw UserError("label 12 of 10 classes", "look at the labels");
        for (int64_t i = 0; i < n; ++i) {
          if (what == "Sum") floats(p[2])[i] = floats(p[0])[i] + floats(p[1])[i];
          if (what == "Double") floats(p[1])[i] = 2 * floats(p[0])[i];
          if (what == "Step") floats(p[0])[i] = static_cast<float>(context.step);
        }
      },
      what == "Large" ? 4096 : 0);
}

/// Runs a checked plan on threads; `body` gets each rank's interpreter.
void run_plan_on_threads(const Plan& plan, const std::function<void(Interpreter&, Communicator&)>& body,
                         uint64_t yield_seed = 0) {
  verify(plan);
  ThreadWorldOptions options;
  options.yield_seed = yield_seed;
  run_threads(
      static_cast<int>(plan.num_devices),
      [&](Communicator& comm) {
        const auto p = static_cast<size_t>(plan.program_of[static_cast<size_t>(comm.rank())]);
        Interpreter interpreter(plan.programs[p], plan.groups, comm, make, {.fill_nan = true});
        body(interpreter, comm);
      },
      options);
}

void set(Interpreter& interpreter, int32_t b, std::vector<float> values) {
  std::memcpy(interpreter.data(b), values.data(), values.size() * sizeof(float));
}
std::vector<float> get(Interpreter& interpreter, int32_t b) {
  const int64_t n = interpreter.program().buffers[static_cast<size_t>(b)].bytes / 4;
  const float* p = floats(interpreter.data(b));
  return {p, p + n};
}

template <typename Error, typename Function>
std::string message_of(const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no such error";
}

/// Each of two ranks has two elements of x, gives them to the other, and doubles all four.
Plan halves() {
  std::vector<Program> programs;
  for (int32_t rank = 0; rank < 2; ++rank) {
    ProgramBuilder p;
    p.scratch("x", {0, 4}, 0);
    p.input("x", {2 * rank, 2 * rank + 2}, 8 * rank);            // 1: this rank's part of 0
    p.scratch("x", {2 - 2 * rank, 4 - 2 * rank}, 8 - 8 * rank);  // 2: the other's
    p.scratch("y", {0, 4}, 64);
    p.entry("train_step");
    const int32_t received = p.receive(2, 1 - rank, 10 + rank);
    p.send(1, 1 - rank, 11 - rank);
    p.kernel("Double", {{0, Access::in}, {3, Access::out}}, {received});
    p.output(3);
    programs.push_back(p.program());
  }
  return plan_of(programs);
}

}  // namespace

TEST_CASE("two ranks exchange halves and compute with the whole") {
  const uint64_t yield_seed = GENERATE(0, 1, 2, 3, 4);
  run_plan_on_threads(
      halves(),
      [](Interpreter& run, Communicator& comm) {
        for (int step = 0; step < 3; ++step) {
          const auto base = static_cast<float>(10 * step + 2 * comm.rank());
          set(run, 1, {base, base + 1});
          run.execute("train_step", {});
          const auto s = static_cast<float>(20 * step);
          if (get(run, 3) != std::vector<float>{s, s + 2, s + 4, s + 6}) throw InternalError("wrong values");
        }
      },
      yield_seed);
}

TEST_CASE("collectives give what their names say") {
  // Three ranks with in = {r, r, r, r, r, r}, r = rank + 1; segments of 1, 2 and 3 elements.
  const std::vector<int64_t> counts = {1, 2, 3};
  std::vector<Program> programs;
  for (int32_t rank = 0; rank < 3; ++rank) {
    const int64_t own = counts[static_cast<size_t>(rank)];
    ProgramBuilder p;
    p.input("in", {0, 6}, 0);
    p.scratch("sum", {0, 6}, 64);
    p.scratch("largest", {0, 6}, 128);
    p.scratch("segment", {0, own}, 192);
    p.scratch("all", {0, 6}, 256);
    p.input("root", {0, 6}, 320);
    p.entry("train_step");
    const int32_t sum = p.collective(InstructionKind::all_reduce, 0, {0, 1});
    const int32_t largest = p.collective(InstructionKind::all_reduce, 0, {0, 2});
    p.last().combine_max = true;
    const int32_t scattered = p.collective(InstructionKind::reduce_scatter, 0, {0, 3}, counts);
    const int32_t gathered = p.collective(InstructionKind::all_gather, 0, {3, 4}, counts, {scattered});
    const int32_t sent = p.collective(InstructionKind::broadcast, 0, {5});
    p.last().root = 2;
    p.kernel("None", {{1, Access::in}}, {sum, largest, gathered, sent});
    programs.push_back(p.program());
  }
  run_plan_on_threads(plan_of(programs, {{0, 1, 2}}), [](Interpreter& run, Communicator& comm) {
    const auto r = static_cast<float>(comm.rank() + 1);
    set(run, 0, {r, r, r, r, r, r});
    set(run, 5, {r, r, r, r, r, r});
    run.execute("train_step", {});
    FF_CHECK(get(run, 1) == std::vector<float>(6, 6));  // 1 + 2 + 3
    FF_CHECK(get(run, 2) == std::vector<float>(6, 3));
    FF_CHECK(get(run, 3) == std::vector<float>(static_cast<size_t>(comm.rank()) + 1, 6));
    FF_CHECK(get(run, 4) == std::vector<float>(6, 6));
    FF_CHECK(get(run, 5) == std::vector<float>(6, 3));  // rank 2's
  });
}

TEST_CASE("memory that nothing wrote is NaN if asked for") {
  ProgramBuilder p;
  p.scratch("x", {0, 4}, 0);
  p.parameter("w", {0, 4}, 0);
  p.entry("train_step");
  const Program program = p.program();
  ThreadWorld world(1);
  Interpreter run(program, {}, world.rank(0), make, {.fill_nan = true});
  for (const int32_t b : {0, 1}) {
    for (const float x : get(run, b)) CHECK(std::isnan(x));
  }
}

TEST_CASE("an error of a kernel names rank and instruction and stays of its kind") {
  ProgramBuilder p;
  p.input("x", {0, 4}, 0);
  p.entry("train_step");
  p.kernel("None", {{0, Access::in}});
  p.kernel("Throw", {{0, Access::in}}, {}, "loss");
  const Plan plan = plan_of({p.program(), p.program()});
  const std::string message = message_of<UserError>([&] {
    run_threads(2, [&](Communicator& comm) {
      Interpreter run(plan.programs[0], plan.groups, comm, make);
      if (comm.rank() == 1) run.execute("train_step", {});
    });
  });
  // The world names the rank once more.
  CHECK(message == "rank 1: rank 1: instruction #1 (Throw loss): label 12 of 10 classes");
}

TEST_CASE("a rank that fails while messages are in flight ends the others") {
  const Plan plan = halves();
  const std::string message = message_of<UserError>([&] {
    run_threads(2, [&](Communicator& comm) {
      Interpreter run(plan.programs[static_cast<size_t>(comm.rank())], plan.groups, comm,
                      [&](const KernelCall& call) {
                        KernelCall other = call;
                        if (comm.rank() == 0) other.kernel = "Throw";
                        return make(other);
                      });
      set(run, 1, {1, 2});
      for (int step = 0; step < 100; ++step) run.execute("train_step", {});
    });
  });
  CHECK(message == "rank 0: rank 0: instruction #2 (Double op): label 12 of 10 classes");
}

TEST_CASE("a kernel that needs more workspace than the plan has is refused") {
  ProgramBuilder p;
  p.scratch("x", {0, 4}, 0);
  const int32_t workspace = p.scratch("", {0, 512}, 64);  // 2 KiB
  p.entry("train_step");
  p.kernel("Large", {{0, Access::out}}, {}, "conv1", workspace);
  const Program program = p.program();
  ThreadWorld world(1);
  CHECK(message_of<UserError>([&] { Interpreter(program, {}, world.rank(0), make); }) ==
        "kernel Large conv1 needs 4.0 KiB of workspace here, the plan gives it 2.0 KiB");
}

TEST_CASE("kernels see the step and the time of every instruction is kept if asked for") {
  ProgramBuilder p;
  p.scratch("x", {0, 4}, 0);
  p.scratch("y", {0, 4}, 64);
  p.entry("train_step");
  p.kernel("Step", {{0, Access::out}});
  p.kernel("Double", {{0, Access::in}, {1, Access::out}});
  const Program program = p.program();
  ThreadWorld world(1);
  Interpreter run(program, {}, world.rank(0), make, {.time_instructions = true});
  RunContext context;
  context.step = 7;
  run.execute("train_step", context);
  CHECK(get(run, 1) == std::vector<float>(4, 14));
  REQUIRE(run.timings().size() == 2);
  CHECK(run.timings()[1].start_ns >= run.timings()[0].start_ns + run.timings()[0].duration_ns);
  CHECK_THROWS_AS(run.execute("eval_step", context), UserError);
}

TEST_CASE("parameters are loaded by box and gathered whole and unequal replicas are found") {
  // w of 2x3: rank 0 holds row 0, rank 1 rows 0 and 1; "b" on both.
  std::vector<Program> programs;
  for (int32_t rank = 0; rank < 2; ++rank) {
    ProgramBuilder p;
    p.parameter("w", {0, 3 + 3 * rank}, 0);
    p.parameter("b", {0, 2}, 64);
    p.at(0).box = Box({0, 0}, {1 + rank, 3});
    p.entry("train_step");
    programs.push_back(p.program());
  }
  const Plan plan = plan_of(programs);
  std::vector<Parameter> parameters = {test::parameter_of("w", {2, 3}), test::parameter_of("b", {2})};
  parameters[1].source = Parameter::Source::fill;
  parameters[1].fill = 0.5;
  for (const bool spoil : {false, true}) {
    run_plan_on_threads(plan, [&](Interpreter& run, Communicator& comm) {
      // Element (r, c) of w is 10 r + c.
      load_parameters(parameters, run, plan_loader([](const Parameter&, const Box& box, void* out) {
                        float* to = floats(out);
                        for (int64_t r = box[0].lo; r < box[0].hi; ++r) {
                          for (int64_t c = box[1].lo; c < box[1].hi; ++c)
                            *to++ = static_cast<float>(10 * r + c);
                        }
                      }));
      if (spoil && comm.rank() == 1) floats(run.data(0))[1] = -1;
      const GatheredParameters all = gather_parameters(parameters, run, comm);
      FF_CHECK_EQ(all.values.size(), comm.rank() == 0 ? 2U : 0U);
      if (comm.rank() != 0) return;
      std::vector<float> w(6), b(2);
      std::memcpy(w.data(), all.values.at("w").data(), 24);
      std::memcpy(b.data(), all.values.at("b").data(), 8);
      FF_CHECK(b == std::vector<float>(2, 0.5F));
      FF_CHECK(w ==
               (spoil ? std::vector<float>{0, -1, 2, 10, 11, 12} : std::vector<float>{0, 1, 2, 10, 11, 12}));
      FF_CHECK(all.differing_replicas ==
               (spoil ? std::vector<std::string>{"w"} : std::vector<std::string>{}));
    });
  }
}

TEST_CASE("rank 0 gets every rank's text") {
  run_threads(3, [](Communicator& comm) {
    const auto all = gather_texts(std::string(static_cast<size_t>(comm.rank()), 'x'), comm);
    FF_CHECK(all ==
             (comm.rank() == 0 ? std::vector<std::string>{"", "x", "xx"} : std::vector<std::string>{}));
    FF_CHECK(all_gather(10 * comm.rank(), comm) == std::vector<int64_t>({0, 10, 20}));
  });
}

}  // namespace ff
