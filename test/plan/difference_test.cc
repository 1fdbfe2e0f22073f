// Differences between plans, derived from two plans by hand.
//
// In the first, fc is split by columns over devices 0 and 1; in the second it is whole on device 0, whose
// relu runs as before.
#include "tools/ffplan-dump/difference.h"

#include <nlohmann/json.hpp>

#include "compiler/base/check.h"
#include "test/catch.h"
#include "test/support/plan_builder.h"

using namespace ff;

namespace {

Program program_of(int copies) {
  test::ProgramBuilder p;
  const int32_t x = p.input("x", {0, 4}, 0), y = p.scratch("y", {0, 4}, 64);
  p.entry("train_step");
  for (int i = 0; i < copies; ++i) p.kernel("Copy", {{x, Access::in}, {y, Access::out}});
  return p.program();
}

Plan split_plan() {
  Plan plan;
  plan.model_path = "m.onnx";
  plan.model_hash = "aa";
  plan.machine_name = "cpu-2";
  plan.machine_hash = "bb";
  plan.num_devices = 2;
  plan.batch = 8;
  plan.optimizer = "sgd";
  plan.step_ns = 10'000;
  plan.devices = {{6'000, 0, 4096}, {5'000, 0, 2048}};
  plan.ops = {{"fc", "MatMul", {"m:S", "n:P", "k:C"}, {1, 2, 1}, 1, {0, 1}, 8'000, 1024, 512},
              {"relu", "Relu", {"d0:S", "d1:A"}, {2, 1}, 1, {0, 1}, 2'000, 100, 512}};
  plan.programs = {program_of(3), program_of(5)};
  plan.program_of = {0, 1};
  return plan;
}

Plan whole_plan() {
  Plan plan = split_plan();
  plan.step_ns = 12'500;
  plan.devices = {{9'000, 0, 4096}, {1'000, 0, 1024}};
  plan.ops[0].degrees = {1, 1, 1};
  plan.ops[0].devices = {0};
  plan.ops[0].compute_ns = 7'500;
  plan.ops[0].traffic_bytes = 256;
  plan.ops[1].traffic_bytes = 0;
  plan.programs = {program_of(4), program_of(1)};
  return plan;
}

}  // namespace

TEST_CASE("two plans are compared as wholes and by op") {
  // fc takes 8000 / 2 ns on each device and then 7500 on one, and sends 768 bytes less; relu is split alike
  // and sends 100 bytes less: 868 together, of 1124.
  const PlanDifference d = compare({"a.soap", split_plan()}, {"b.soap", whole_plan()});
  CHECK(difference_text(d) == R"(first   a.soap
second  b.soap

                first    second   difference
predicted step  10.0 us  12.5 us  +2.5 us (+25.0 %)
compute         6.0 us   9.0 us   +3.0 us (+50.0 %)  of the busiest device
sent            1.1 KiB  256 B    -868 B (-77.2 %)   by all devices
memory          4.0 KiB  4.0 KiB  0 B                of the fullest device
instructions    5        4        -1                 of the longest program

op         type    first          second  compute  sent    memory
fc         MatMul  n:2(P) on 0-1  - on 0  +3.5 us  -768 B  0 B
others: 1                                 0 ns     -100 B  0 B
compute: of the op's busiest device; sent and memory: of what it writes, on all devices
)");
}

TEST_CASE("the same difference as JSON") {
  const auto json =
      nlohmann::json::parse(difference_json(compare({"a.soap", split_plan()}, {"b.soap", whole_plan()})));
  CHECK(json["first"]["plan"] == "a.soap");
  CHECK(json["first"]["predicted_step_seconds"].get<double>() == Approx(10e-6));
  CHECK(json["second"]["peak_bytes"] == 4096);
  CHECK(json["difference"]["bytes_moved"] == -868);
  CHECK(json["header"].empty());
  REQUIRE(json["ops"].size() == 1);
  CHECK(json["ops"][0]["op"] == "fc");
  CHECK(json["ops"][0]["first"]["degrees"] == std::vector<int>{1, 2, 1});
  CHECK(json["ops"][0]["second"]["devices"] == std::vector<int>{0});
  CHECK(json["ops"][0]["difference"]["compute_ns"] == 3'500);
  CHECK(json["other_ops"]["count"] == 1);
  CHECK(json["other_ops"]["difference"]["traffic_bytes"] == -100);
}

TEST_CASE("plans that split alike differ in no op") {
  const std::string text = difference_text(compare({"a.soap", split_plan()}, {"a.soap", split_plan()}));
  CHECK(text.substr(text.rfind("\n\n") + 2) == "no op differs\n");
  Plan other = split_plan();
  other.programs[0] = program_of(4);
  const std::string programs = difference_text(compare({"a.soap", split_plan()}, {"b.soap", other}));
  CHECK(programs.substr(programs.rfind("\n\n") + 2) == "no op differs, but the programs of 1 devices do\n");
}

TEST_CASE("machines and other parts of the header that differ are said") {
  Plan other = split_plan();
  other.machine_name = "cpu-4";
  other.machine_hash = "cc";
  other.batch = 16;
  const std::string text = difference_text(compare({"a.soap", split_plan()}, {"b.soap", other}));
  CHECK(text.substr(0, text.find("\n\n")) ==
        "first   a.soap\nsecond  b.soap\nmachine: cpu-2 (bb) | cpu-4 (cc)\nbatch: 8 | 16\n"
        "times are predicted for different machines");
}

TEST_CASE("an op that only one plan has counts whole") {
  Plan other = split_plan();
  other.ops.pop_back();
  const PlanDifference d = compare({"a.soap", split_plan()}, {"b.soap", other});
  REQUIRE(d.ops.size() == 1);
  CHECK(d.ops[0].second == nullptr);
  CHECK(d.ops[0].change.compute_ns == -1'000);
  CHECK(d.ops[0].change.sent_bytes == -100);
  const PlanDifference back = compare({"b.soap", other}, {"a.soap", split_plan()});
  REQUIRE(back.ops.size() == 1);
  CHECK(back.ops[0].first == nullptr);
  CHECK(back.ops[0].change.compute_ns == 1'000);
}

TEST_CASE("plans of different models are refused", "[error]") {
  Plan other = split_plan();
  other.model_path = "n.onnx";
  other.model_hash = "dd";
  std::string message;
  try {
    compare({"a.soap", split_plan()}, {"b.soap", other});
  } catch (const UserError& e) {
    message = std::string(e.what()) + " | " + e.hint();
  }
  CHECK(message ==
        "--diff b.soap: a plan of another model: n.onnx (dd); that of a.soap is m.onnx (aa) | compile both "
        "plans "
        "from the same ONNX file");
}
