// The verifier on two-device programs by hand: each fault is put into a program that passes without it.
#include "compiler/plan/verify.h"

#include "compiler/base/check.h"
#include "test/catch.h"
#include "test/support/plan_builder.h"

namespace ff {
namespace {

using test::plan_of;
using test::ProgramBuilder;

std::string fault(const Plan& plan) {
  try {
    verify(plan);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "none";
}

/// Rank 0 sends x to rank 1, which adds it to its own.
struct Exchange {
  ProgramBuilder a, b;
  int32_t ax, bx, got, sum;

  Exchange() {
    ax = a.input("x", {0, 16}, 0);
    a.entry("train_step");
    bx = b.input("y", {0, 16}, 0);
    got = b.scratch("x", {0, 16}, 64);
    sum = b.scratch("z", {0, 16}, 128);
    b.entry("train_step");
  }
  void complete(std::vector<int32_t> waits) {
    a.send(ax, 1, 7);
    b.receive(got, 0, 7);
    b.kernel("Sum", {{bx, Access::in}, {got, Access::in}, {sum, Access::out}}, std::move(waits), "add");
  }
  Plan plan() const { return plan_of({a.program(), b.program()}); }
};

}  // namespace

TEST_CASE("an exchange of two devices has no fault") {
  Exchange e;
  e.complete({0});
  CHECK(fault(e.plan()) == "none");
}

TEST_CASE("a kernel that reads what is still being received is found") {
  Exchange e;
  e.complete({});
  CHECK(fault(e.plan()) ==
        "program of rank 1, entry train_step, #1 (Sum add): reads b1 (x) while #0 (receive x) writes it; a "
        "wait "
        "for #0 is missing");
}

TEST_CASE("an earlier instruction's wait counts for later ones") {
  Exchange e;
  e.complete({0});
  e.b.kernel("Copy", {{e.got, Access::in}, {e.sum, Access::out}}, {}, "copy");
  CHECK(fault(e.plan()) == "none");
}

TEST_CASE("a kernel that overwrites what is still being sent is found") {
  Exchange e;
  e.complete({0});
  e.a.kernel("Fill", {{e.ax, Access::out}}, {}, "fill");
  CHECK(fault(e.plan()) ==
        "program of rank 0, entry train_step, #1 (Fill fill): writes b0 (x) while #0 (send x) reads it; a "
        "wait for "
        "#0 is missing");
  Exchange good;
  good.complete({0});
  good.a.kernel("Fill", {{good.ax, Access::out}}, {0}, "fill");
  CHECK(fault(good.plan()) == "none");
}

TEST_CASE("a message without its counterpart is found") {
  Exchange e;
  e.a.send(e.ax, 1, 8);
  e.b.receive(e.got, 0, 7);
  CHECK(fault(e.plan()) == "program of rank 0, entry train_step, #0 (send x): no receive of tag 8 on rank 1");
  Exchange other;
  other.b.receive(other.got, 0, 7);
  CHECK(fault(other.plan()) ==
        "program of rank 1, entry train_step, #0 (receive x): no send of tag 7 on rank 0");
  Exchange twice;
  twice.a.send(twice.ax, 1, 7);
  twice.a.send(twice.ax, 1, 7);
  twice.b.receive(twice.got, 0, 7);
  CHECK(fault(twice.plan()) ==
        "program of rank 0, entry train_step, #1 (send x): a second message of tag 7 between these ranks");
}

TEST_CASE("a message of another size than its receive is found") {
  Exchange e;
  const int32_t half = e.b.scratch("x", {0, 8}, 256);
  e.a.send(e.ax, 1, 7);
  e.b.receive(half, 0, 7);
  CHECK(fault(e.plan()) ==
        "program of rank 0, entry train_step, #0 (send x): sends 64 bytes, but rank 1 receives 32");
}

TEST_CASE("two tensors in one place at one time are found") {
  ProgramBuilder p;
  const int32_t x = p.input("x", {0, 16}, 0), y = p.scratch("y", {0, 16}, 64);
  const int32_t z = p.scratch("z", {0, 8}, 96);  // over the second half of y
  p.entry("train_step");
  p.kernel("Copy", {{x, Access::in}, {y, Access::out}}, {}, "first");
  p.kernel("Half", {{x, Access::in}, {z, Access::out}}, {}, "second");
  p.kernel("Copy", {{y, Access::in}, {x, Access::out}}, {}, "third");
  CHECK(fault(plan_of({p.program()})) ==
        "program of rank 0, entry train_step, #2 (Copy third): reads b1 (y), whose bytes 32 to 64 b2 (z) has "
        "overwritten");
}

TEST_CASE("memory whose tensor is dead may be used again") {
  ProgramBuilder p;
  const int32_t x = p.input("x", {0, 16}, 0), y = p.scratch("y", {0, 16}, 64);
  const int32_t z = p.scratch("z", {0, 16}, 0);
  p.entry("train_step");
  p.kernel("Copy", {{x, Access::in}, {y, Access::out}}, {}, "first");
  p.kernel("Copy", {{y, Access::in}, {z, Access::out}}, {}, "second");
  p.kernel("Copy", {{z, Access::in}, {y, Access::out}}, {}, "third");
  p.output(y);
  CHECK(fault(plan_of({p.program()})) == "none");
}

TEST_CASE("reading what nothing has written is found") {
  ProgramBuilder p;
  const int32_t x = p.scratch("x", {0, 16}, 0), y = p.scratch("y", {0, 16}, 64);
  const int32_t half = p.scratch("x", {0, 8}, 0);
  p.entry("train_step");
  p.kernel("Fill", {{half, Access::out}}, {}, "fill");
  p.kernel("Copy", {{x, Access::in}, {y, Access::out}}, {}, "copy");
  CHECK(fault(plan_of({p.program()})) ==
        "program of rank 0, entry train_step, #1 (Copy copy): reads b0 (x), whose bytes 32 to 64 nothing has "
        "written in this entry");
}

TEST_CASE("what an earlier entry left in scratch memory does not count as written") {
  ProgramBuilder p;
  const int32_t x = p.scratch("x", {0, 16}, 0), y = p.scratch("y", {0, 16}, 64);
  p.entry("train_step");
  p.kernel("Fill", {{x, Access::out}}, {}, "fill");
  p.entry("eval_step");
  p.kernel("Copy", {{x, Access::in}, {y, Access::out}}, {}, "copy");
  CHECK(fault(plan_of({p.program()})).find("entry eval_step, #0 (Copy copy): reads b0 (x)") !=
        std::string::npos);
}

TEST_CASE("box copies that fill a buffer together begin with its first") {
  ProgramBuilder p;
  const int32_t x = p.input("x", {0, 16}, 0), y = p.scratch("y", {0, 16}, 64),
                z = p.scratch("z", {0, 16}, 64);
  p.entry("train_step");
  p.kernel("CopyBox", {{x, Access::in}, {y, Access::inout}}, {}, "one");
  p.kernel("CopyBox", {{x, Access::in}, {y, Access::inout}}, {}, "two");
  p.output(y);
  CHECK(fault(plan_of({p.program()})) == "none");
  // Another tensor between the two.
  ProgramBuilder q;
  q.input("x", {0, 16}, 0), q.scratch("y", {0, 16}, 64), q.scratch("z", {0, 16}, 64);
  q.entry("train_step");
  q.kernel("CopyBox", {{x, Access::in}, {y, Access::inout}}, {}, "one");
  q.kernel("Fill", {{z, Access::out}}, {}, "fill");
  q.kernel("CopyBox", {{x, Access::in}, {y, Access::inout}}, {}, "two");
  CHECK(fault(plan_of({q.program()})) ==
        "program of rank 0, entry train_step, #2 (CopyBox two): reads b1 (y), whose bytes 0 to 64 b2 (z) has "
        "overwritten");
}

TEST_CASE("a parameter that is not in place at the end is found") {
  ProgramBuilder p;
  const int32_t w = p.parameter("w", {0, 16}, 0), g = p.input("g", {0, 16}, 0);
  const int32_t other = p.parameter("v", {0, 16}, 64);
  p.entry("train_step");
  p.kernel("Sgd", {{w, Access::inout}, {g, Access::in}}, {}, "update");
  CHECK(fault(plan_of({p.program()})) == "none");
  p.at(other).origin = Origin::computed;
  p.at(other).offset = 32;
  p.kernel("Fill", {{other, Access::out}}, {}, "fill");
  CHECK(fault(plan_of({p.program()})) ==
        "program of rank 0, entry train_step: at its end, parameter b0 (w), whose bytes 32 to 64 b2 (v) has "
        "overwritten");
}

TEST_CASE("ranks that wait for each other are found") {
  // Each sends only after it has received.
  const auto side = [](int32_t other, int32_t out_tag, int32_t in_tag) {
    ProgramBuilder p;
    const int32_t x = p.input("x", {0, 16}, 0), y = p.scratch("y", {0, 16}, 64);
    p.entry("train_step");
    p.receive(y, other, in_tag);
    p.send(x, other, out_tag, {0});
    return p.program();
  };
  CHECK(fault(plan_of({side(1, 1, 2), side(0, 2, 1)})) ==
        "entry train_step never ends: rank 0 waits at #1 (send x) for #0 (receive y); rank 1 waits at #1 "
        "(send x) "
        "for #0 (receive y)");
}

TEST_CASE("a send is not taken for buffered") {
  // Each waits for its send before it posts its receive.
  const auto side = [](int32_t other, int32_t out_tag, int32_t in_tag) {
    ProgramBuilder p;
    const int32_t x = p.input("x", {0, 16}, 0), y = p.scratch("y", {0, 16}, 64);
    p.entry("train_step");
    p.send(x, other, out_tag);
    p.receive(y, other, in_tag, {0});
    return p.program();
  };
  CHECK(
      fault(plan_of({side(1, 1, 2), side(0, 2, 1)})).rfind("entry train_step never ends: rank 0 waits", 0) ==
      0);
}

TEST_CASE("members that issue collectives in another order are found") {
  const auto member = [](const std::string& first, const std::string& second) {
    ProgramBuilder p;
    const int32_t x = p.input("x", {0, 16}, 0), y = p.input("y", {0, 16}, 64);
    p.entry("train_step");
    p.collective(InstructionKind::all_reduce, 0, {x, x}, {}, {}, first);
    p.collective(InstructionKind::all_reduce, 0, {y, y}, {}, {}, second);
    return p.program();
  };
  CHECK(fault(plan_of({member("a", "b"), member("a", "b")}, {{0, 1}})) == "none");
  CHECK(fault(plan_of({member("a", "b"), member("b", "a")}, {{0, 1}})) ==
        "program of rank 1, entry train_step, #0 (all-reduce b): is number 0 of group 0, where rank 0 issues "
        "#0 "
        "(all-reduce a)");
}

TEST_CASE("a collective that only some members issue is found") {
  ProgramBuilder p, q;
  const int32_t x = p.input("x", {0, 16}, 0);
  p.entry("train_step");
  q.entry("train_step");
  p.collective(InstructionKind::broadcast, 0, {x});
  CHECK(fault(plan_of({p.program(), q.program()}, {{0, 1}})) ==
        "program of rank 0, entry train_step, #0 (broadcast op): only some members of group 0 issue this "
        "collective");
}

TEST_CASE("operands that do not fit their buffers are found") {
  ProgramBuilder p;
  const int32_t x = p.input("x", {0, 16}, 0);
  p.entry("train_step");
  p.kernel("Relu", {{x, Access::in}}, {}, "relu");
  p.last().call.operands[0].shape = {17};
  CHECK(fault(plan_of({p.program()})) ==
        "program of rank 0, entry train_step, #0 (Relu relu): operand 0 and b0 (x) differ in size: 68 "
        "against 64 "
        "bytes");
  p.last().call.operands[0].shape = {16};
  p.last().call.operands[0].dtype = DType::i32;
  CHECK(fault(plan_of({p.program()})) ==
        "program of rank 0, entry train_step, #0 (Relu relu): operand 0 and b0 (x) differ in type: i32 "
        "against f32");
}

TEST_CASE("buffers outside their region and waits for what is no message are found") {
  ProgramBuilder p;
  const int32_t x = p.input("x", {0, 16}, 0);
  p.entry("train_step");
  p.kernel("Relu", {{x, Access::inout}}, {}, "relu");
  p.kernel("Relu", {{x, Access::inout}}, {0}, "again");
  CHECK(fault(plan_of({p.program()})) ==
        "program of rank 0, entry train_step, #1 (Relu again): waits for #0, which is a kernel and done when "
        "it has "
        "run");
  p.last().waits = {1};
  CHECK(fault(plan_of({p.program()})) ==
        "program of rank 0, entry train_step, #1 (Relu again): waits for #1, which is not an earlier "
        "instruction");
  p.last().waits = {};
  p.at(x).offset = 64;
  CHECK(fault(plan_of({p.program()})) == "program of rank 0: b0 (x) ends at 128 of 64 bytes of its region");
}

TEST_CASE("counts of a collective that do not fit its buffers are found") {
  ProgramBuilder p;
  const int32_t x = p.input("x", {0, 16}, 0), y = p.scratch("y", {0, 8}, 64);
  p.entry("train_step");
  p.collective(InstructionKind::reduce_scatter, 0, {x, y}, {9, 7});
  CHECK(fault(plan_of({p.program(), p.program()}, {{0, 1}})) ==
        "program of rank 0, entry train_step, #0 (reduce-scatter op): out has 8 elements, but the counts say "
        "9");
}

TEST_CASE("the verifier takes 64 programs of 5000 instructions") {
  // A ring: each rank computes, sends to the next and receives from the one before, 1250 times.
  constexpr int32_t kRanks = 64, kRounds = 1250;
  std::vector<Program> programs;
  for (int32_t r = 0; r < kRanks; ++r) {
    ProgramBuilder p;
    const int32_t x = p.input("x", {0, 16}, 0);
    const int32_t out[2] = {p.scratch("out", {0, 16}, 64), p.scratch("out", {0, 16}, 128)};
    const int32_t in = p.scratch("in", {0, 16}, 192);
    p.entry("train_step");
    for (int32_t round = 0; round < kRounds; ++round) {
      const int32_t mine = out[round % 2];
      std::vector<int32_t> before;
      if (round >= 2) before = {4 * (round - 2) + 1};
      p.kernel("Copy", {{x, Access::in}, {mine, Access::out}}, before);
      p.send(mine, (r + 1) % kRanks, round);
      p.receive(in, (r + kRanks - 1) % kRanks, round);
      p.kernel("Use", {{in, Access::in}}, {4 * round + 2});
    }
    programs.push_back(p.program());
  }
  CHECK(fault(plan_of(programs)) == "none");
}

}  // namespace ff
