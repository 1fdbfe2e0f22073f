#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/base/check.h"
#include "compiler/base/hash.h"
#include "compiler/plan/container.h"
#include "compiler/plan/text.h"
#include "test/catch.h"
#include "test/support/plan_builder.h"

namespace ff {
namespace {

namespace fs = std::filesystem;
using test::ProgramBuilder;

/// A folder of its own, gone at the end.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("ff-plan-" + std::to_string(::getpid()))) {
    fs::create_directories(path_);
    old_ = fs::current_path();
    fs::current_path(path_);  // so that messages name "plan.soap"
  }
  ~Folder() {
    fs::current_path(old_);
    fs::remove_all(path_);
  }

 private:
  fs::path path_, old_;
};

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void put_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// Every field of every message holds something that is not its default.
Plan full_plan() {
  ProgramBuilder a;
  const int32_t w = a.parameter("w", {2, 6}, 64), x = a.scratch("x", {0, 4}, 128);
  a.entry("train_step");
  a.kernel("Sgd", {{w, Access::inout}, {x, Access::in}}, {}, "fc", x);
  a.last().call.attributes = {
      {"i", int64_t{-3}}, {"r", 0.1}, {"s", std::string("sum")}, {"v", Ints{1, -1}}, {"q", Reals{0.5, -2}}};
  a.last().start_ns = 12;
  a.last().duration_ns = 7;
  a.send(x, 1, 41);
  a.collective(InstructionKind::reduce_scatter, 0, {x, w}, {2, 2}, {1});
  a.last().root = 1;
  a.last().combine_max = true;
  a.output(x);
  a.at(w).dtype = DType::i32;
  a.at(w).layout = Layout::channels_last;
  ProgramBuilder b;
  b.entry("train_step");
  Plan plan = test::plan_of({a.program(), b.program(), a.program()}, {{0, 1}, {2}});
  plan.model_path = "net.onnx";
  plan.model_hash = "m";
  plan.machine_name = "cpu-3";
  plan.machine_hash = "h";
  plan.profile_hash = "p";
  plan.options = "--batch 8";
  plan.library_versions = "oneDNN 2.6.3";
  plan.batch = 8;
  plan.threads_per_rank = 2;
  plan.seed = 0xFFFFFFFFFFFFFFFFULL;
  plan.optimizer = "adam";
  plan.batchnorm = "local";
  plan.parameters = {{.name = "w",
                      .kind = ParameterKind::state,
                      .shape = {8},
                      .dtype = DType::f64,
                      .source = Parameter::Source::inlined,
                      .model_name = "fc.w",
                      .fill = 1.5,
                      .bytes = std::string("\0\xFF", 2),
                      .views = {{"transpose", {{"perm", Ints{1, 0}}}}}}};
  plan.inputs = {{.name = "labels", .shape = {8}, .dtype = DType::i64, .batch_axis = 1, .classes = 10}};
  plan.outputs = {"y"};
  plan.strategy = "op {}";
  plan.ops = {{.op = "fc",
               .type = "Gemm",
               .dims = {"n:S", "co:P"},
               .degrees = {2, 1},
               .replicas = 2,
               .devices = {0, 2},
               .compute_ns = 1000,
               .traffic_bytes = 2048,
               .memory_bytes = 4096}};
  plan.reference = b.program();
  plan.step_ns = 1500000;
  plan.data_parallel_ns = 3000000;
  plan.devices = {{5, 6, 7}, {8, 9, 10}, {11, 12, 13}};
  return plan;
}

template <typename Function>
std::string error_of(const Function& function, std::string* hint = nullptr) {
  try {
    function();
  } catch (const UserError& error) {
    if (hint != nullptr) *hint = error.hint();
    return error.what();
  }
  return "no error";
}

std::string read_error(const std::string& bytes, std::string* hint = nullptr) {
  put_bytes("plan.soap", bytes);
  return error_of([] { read_plan("plan.soap"); }, hint);
}

}  // namespace

TEST_CASE("a plan that was read and written again has the same bytes") {
  const Folder folder;
  write_plan("a.soap", full_plan());
  const Plan again = read_plan("a.soap");
  write_plan("b.soap", again);
  CHECK(bytes_of("a.soap") == bytes_of("b.soap"));
  CHECK(bytes_of("a.soap").substr(0, 8) == "FFPLAN\r\n");
  for (const auto& entry : fs::directory_iterator("."))
    CHECK(entry.path().extension() == ".soap");  // no temporary file is left
}

TEST_CASE("every field of a plan survives its file") {
  const Folder folder;
  const Plan before = full_plan();
  write_plan("a.soap", before);
  const Plan after = read_plan("a.soap");
  CHECK(after.seed == before.seed);
  CHECK(after.groups == before.groups);
  CHECK(after.batchnorm == "local");
  CHECK(after.threads_per_rank == 2);
  REQUIRE(after.parameters.size() == 1);
  CHECK(after.parameters[0].bytes == before.parameters[0].bytes);
  CHECK(after.parameters[0].views == before.parameters[0].views);
  CHECK(after.parameters[0].kind == ParameterKind::state);
  CHECK(after.parameters[0].fill == 1.5);
  CHECK(after.inputs[0].classes == 10);
  CHECK(after.inputs[0].batch_axis == 1);
  CHECK(after.ops[0].devices == before.ops[0].devices);
  CHECK(after.devices[2].peak_bytes == 13);
  CHECK(after.data_parallel_ns == 3000000);
  const Program &p = before.programs[0], &q = after.programs[0];
  CHECK(program_text(p, before.groups) == program_text(q, after.groups));
  CHECK(p.entries[0].instructions[0].call == q.entries[0].instructions[0].call);
  CHECK(q.entries[0].instructions[0].start_ns == 12);
  CHECK(q.entries[0].instructions[0].duration_ns == 7);
  CHECK(q.entries[0].instructions[2].root == 1);
  CHECK(q.buffers[0].layout == Layout::channels_last);
  REQUIRE(after.reference);
  CHECK(after.reference->entries[0].name == "train_step");
}

TEST_CASE("devices with the same program share one section") {
  const Folder folder;
  write_plan("a.soap", full_plan());
  const Plan plan = read_plan("a.soap");
  CHECK(plan.programs.size() == 2);
  CHECK(plan.program_of == std::vector<int32_t>{0, 1, 0});
}

TEST_CASE("a rank reads its own program and not the others") {
  const Folder folder;
  write_plan("a.soap", full_plan());
  const Plan plan = read_plan_for_rank("a.soap", 2, /*want_reference=*/false);
  CHECK(plan.programs[0].buffers.size() == 2);
  CHECK(plan.programs[1].entries.empty());
  CHECK(plan.strategy.empty());
  CHECK_FALSE(plan.reference);
  CHECK(read_plan_for_rank("a.soap", 0, true).reference);
  // A flipped byte in another rank's program is not this rank's to find. Its section is the fourth in the
  // table.
  std::string bytes = bytes_of("a.soap");
  const size_t row = 24 + 3 * 32;
  const size_t offset =
      static_cast<unsigned char>(bytes[row + 8]) | static_cast<unsigned char>(bytes[row + 9]) << 8;
  bytes[offset] ^= 1;
  put_bytes("plan.soap", bytes);
  CHECK(read_plan_for_rank("plan.soap", 1, false).programs[1].entries[0].name == "train_step");
  CHECK(error_of([] { read_plan_for_rank("plan.soap", 0, false); }) ==
        "plan.soap: section 'program 0' is damaged: its checksum does not match");
}

TEST_CASE("a file that is no plan is refused by name") {
  const Folder folder;
  std::string hint;
  CHECK(read_error("hello", &hint) == "plan.soap: not a plan file");
  CHECK(hint == "ffcompile MODEL.onnx --machine MACHINE makes one");
  CHECK(read_error("") == "plan.soap: not a plan file");
  CHECK(error_of([] { read_plan("none.soap"); }) == "none.soap: No such file or directory");
}

TEST_CASE("a plan of another major version is refused with both versions") {
  const Folder folder;
  write_plan("a.soap", full_plan());
  std::string bytes = bytes_of("a.soap");
  bytes[8] = 2;
  std::string hint;
  CHECK(read_error(bytes, &hint) == "plan.soap: plan format 2.0; this ffrun reads 1.x");
  CHECK(hint == "compile the model again with the ffcompile of this version");
}

TEST_CASE("a truncated plan is refused with both sizes") {
  const Folder folder;
  write_plan("a.soap", full_plan());
  const std::string bytes = bytes_of("a.soap");
  const std::string size = std::to_string(bytes.size());
  CHECK(read_error(bytes.substr(0, bytes.size() - 1)) ==
        "plan.soap: truncated: " + std::to_string(bytes.size() - 1) + " bytes of at least " + size);
  // 24 bytes before the table; 7 sections of 32 bytes and a hash of 8 in it.
  CHECK(read_error(bytes.substr(0, 30)) == "plan.soap: truncated: 30 bytes of at least 256");
  CHECK(read_error(bytes.substr(0, 12)) == "plan.soap: truncated: 12 bytes of at least 24");
}

TEST_CASE("any flipped byte of a plan is found and its section named") {
  const Folder folder;
  write_plan("a.soap", full_plan());
  const std::string bytes = bytes_of("a.soap");
  int found = 0;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    std::string broken = bytes;
    broken[at] = static_cast<char>(broken[at] ^ 0x40);
    const std::string message = read_error(broken);
    INFO("byte " << at << ": " << message);
    CHECK(message != "no error");
    found += message.find("is damaged: its checksum does not match") != std::string::npos ? 1 : 0;
  }
  CHECK(found > static_cast<int>(bytes.size()) / 4);
  std::string broken = bytes;
  broken[broken.size() - 1] ^= 1;
  CHECK(read_error(broken) == "plan.soap: section 'predictions' is damaged: its checksum does not match");
  broken = bytes;
  broken[24 + 7 * 32 + 8] ^= 1;  // the first byte behind the table
  CHECK(read_error(broken) == "plan.soap: section 'header' is damaged: its checksum does not match");
}

TEST_CASE("a feature that is not known is refused by name") {
  const Folder folder;
  Plan plan = full_plan();
  plan.required_features = {"micro-batches"};
  write_plan("plan.soap", plan);
  CHECK(error_of([] { read_plan("plan.soap"); }) ==
        "plan.soap: needs 'micro-batches', which this ffrun does not know");
}

TEST_CASE("a plan that cannot be written leaves nothing and says why") {
  const Folder folder;
  CHECK_THROWS_AS(write_plan("no-such-folder/a.soap", full_plan()), RunError);
  CHECK(fs::is_empty("."));
}

TEST_CASE("the text of a program has a line for every buffer and instruction") {
  const Plan plan = full_plan();
  CHECK(program_text(plan.programs[0], plan.groups) ==
        "memory persistent 128 B scratch 192 B\n"
        "b0 persistent +64 16 B i32:last [2:6] parameter w\n"
        "b1 scratch +128 16 B f32:row [0:4] computed x\n"
        "entry train_step\n"
        "#0 compute Sgd i=-3 q=[0.5,-2.0] r=0.1 s='sum' v=[1,-1] (b0 inout f32:row:4, b1 in f32:row:4) "
        "workspace "
        "b1  | fc\n"
        "#1 comm    send b1[0:4] to 1 tag 41  | x\n"
        "#2 comm    reduce_scatter b1[0:4] into b0[2:6] max counts 2,2 group 0 of 0-1  waits 1  | op\n"
        "outputs b1\n");
}

TEST_CASE("the table of ops shows roles and devices as ranges and who is idle") {
  CHECK(device_ranges({3, 0, 1, 2, 7, 1}) == "0-3,7");
  CHECK(ops_table(full_plan()) ==
        "op  type  degrees            devices  compute  traffic  memory\n"
        "fc  Gemm  n:2(S) replicas:2  0,2      1.0 us   2.0 KiB  4.0 KiB  idle: 1\n");
}

TEST_CASE("a hash changes with every byte and with the order of files") {
  const std::string a(100, 'a');
  for (size_t i = 0; i < a.size(); ++i) {
    std::string b = a;
    b[i] = 'b';
    CHECK(hash_bytes(a) != hash_bytes(b));
  }
  CHECK(hash_bytes("") != hash_bytes(std::string(1, '\0')));
  CHECK(to_hex(0x0123456789abcdefULL) == "0123456789abcdef");
}

}  // namespace ff
