// Costs: the roofline by hand, the store of measurements, and what is made of it.
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "compiler/base/check.h"
#include "compiler/cost/constant_cost.h"
#include "compiler/cost/measured_cost.h"
#include "compiler/cost/profiled_cost.h"
#include "compiler/cost/roofline.h"
#include "profiles/cpu_profiler.h"
#include "test/catch.h"

using namespace ff;
namespace fs = std::filesystem;

namespace {

/// 10 TFLOP/s in f32, 5 in f64, 500 GB/s; "conv" reaches half of the peak; 5 us a launch.
DeviceKind gpu() {
  DeviceKind kind;
  kind.name = "gpu";
  kind.flops_f32 = 10e12;
  kind.flops_f64 = 5e12;
  kind.flops_bf16 = 40e12;
  kind.memory_bandwidth = 500e9;
  kind.kernel_launch = 5'000;
  kind.efficiencies = {{.family = "conv", .fraction = 0.5, .half_work_flops = 1e9, .memory_fraction = 1},
                       {.family = "default", .fraction = 1, .half_work_flops = 0, .memory_fraction = 0.8}};
  return kind;
}

KernelCall call_of(const std::string& kernel, Shape shape, DType dtype = DType::f32) {
  return {.kernel = kernel,
          .attributes = {{"group", int64_t{1}}},
          .operands = {{.dtype = dtype, .shape = shape},
                       {.dtype = dtype, .access = Access::out, .shape = shape}}};
}

/// A folder that is gone after the test.
struct TempFolder {
  fs::path path = fs::temp_directory_path() / ("ff-cost-" + std::to_string(getpid()));
  TempFolder() { fs::create_directories(path); }
  ~TempFolder() { fs::remove_all(path); }
  std::string file(const std::string& name) const { return (path / name).string(); }
};

std::string read(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

bool says(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos;
}

const ProfileHeader kHeader{.device = "gpu", .threads = 2, .libraries = "lib 1.0"};

class CountingQuery : public KernelQuery {
 public:
  int64_t calls = 0;
  Measurement measure(const KernelCall&) override {
    if (++calls == fail_at) throw RunError("interrupted");
    return {.median = 100 * calls, .spread = 1, .count = 5, .workspace_bytes = 64};
  }
  int64_t workspace_bytes(const KernelCall&) override { return 64; }
  int64_t fail_at = -1;
};

}  // namespace

TEST_CASE("roofline takes the longer of arithmetic and memory") {
  RooflineCost costs;
  // Arithmetic: (9e9 + 1e9 half-work) / (10e12 * 0.5) = 2 ms; memory: 12e6 / 500e9 = 24 us.
  CHECK(costs.kernel(call_of("conv", {1}), {9e9, 12e6}, "conv", gpu()).time == 2'000'000);
  // Another family: memory 400e6 / (500e9 * 0.8) = 1 ms, arithmetic 1e9 / 10e12 = 100 us.
  CHECK(costs.kernel(call_of("relu", {2}), {1e9, 400e6}, "elementwise", gpu()).time == 1'000'000);
  // f64: 5e9 / 5e12 = 1 ms; bf16: 40e9 / 40e12 = 1 ms.
  CHECK(costs.kernel(call_of("mm", {3}, DType::f64), {5e9, 0}, "matmul", gpu()).time == 1'000'000);
  CHECK(costs.kernel(call_of("mm", {3}, DType::bf16), {40e9, 0}, "matmul", gpu()).time == 1'000'000);
}

TEST_CASE("no kernel is shorter than a launch") {
  RooflineCost costs;
  CHECK(costs.kernel(call_of("relu", {1}), {0, 8}, "elementwise", gpu()).time == 5'000);
  DeviceKind free = gpu();
  free.name = "free";
  free.kernel_launch = 0;
  CHECK(costs.kernel(call_of("relu", {1}), {0, 0}, "elementwise", free).time == 1);
}

TEST_CASE("every distinct call is priced and counted once whatever the threads") {
  RooflineCost costs;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int64_t i = 1; i <= 50; ++i)
        costs.kernel(call_of("relu", {i}), {0, 8.0 * static_cast<double>(i)}, "x", gpu());
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(costs.counts().estimated == 50);
  CHECK(costs.counts().measured == 0);
}

TEST_CASE("constant costs are what the test says by kernel") {
  ConstantCost costs(100);
  costs.set("conv", 1000);
  CHECK(costs.kernel(call_of("conv", {1}), {}, "conv", gpu()).time == 1000);
  CHECK(costs.kernel(call_of("relu", {1}), {}, "x", gpu()).time == 100);
}

TEST_CASE("the signature of a call leaves out extents and keeps attributes types and ranks") {
  const KernelCall a = call_of("conv", {4, 8}), b = call_of("conv", {16, 2}), c = call_of("conv", {16});
  CHECK(signature_of(to_string(a)) == signature_of(to_string(b)));
  CHECK(signature_of(to_string(a)) != signature_of(to_string(c)));
  CHECK(signature_of(to_string(a)) != signature_of(to_string(call_of("conv", {4, 8}, DType::f64))));
  CHECK(signature_of("conv group=1 in f32:row:4x8 in none out f32:last:2") ==
        "conv group=1 in f32:row:2 in none out f32:last:1");
}

TEST_CASE("a profile comes back from its file as it was") {
  const TempFolder folder;
  ProfileStore store(folder.file("a/b.profile"), kHeader);
  store.add(1, "conv in f32:row:4",
            {{.median = 7, .spread = 2, .count = 9, .workspace_bytes = 128}, {3.5e9, 1e6}});
  store.add(2, "conv in f32:row:4",
            {{.median = 11, .spread = 2, .count = 9, .workspace_bytes = 128}, {3.5e9, 1e6}});
  store.save();
  const ProfileStore again = ProfileStore::open(store.path(), kHeader);
  CHECK(again.text() == store.text());
  CHECK(again.hash() == store.hash());
  REQUIRE(again.find(2, "conv in f32:row:4") != nullptr);
  CHECK(again.find(2, "conv in f32:row:4")->measurement.median == 11);
  CHECK(again.find(1, "conv in f32:row:4")->work.flops == 3.5e9);
  CHECK(again.find(3, "conv in f32:row:4") == nullptr);
  CHECK(again.ranks() == std::vector<int>{1, 2});
  // Nothing is left beside it.
  CHECK(std::distance(fs::directory_iterator(folder.path / "a"), fs::directory_iterator()) == 1);
}

TEST_CASE("a broken profile is refused by name") {
  const TempFolder folder;
  ProfileStore store(folder.file("p"), kHeader);
  for (int i = 0; i < 3; ++i)
    store.add(1, "relu in f32:row:" + std::to_string(i + 1), {{.median = 5}, {0, 4}});
  const std::string whole = store.text();
  const std::string path = folder.file("p");
  // Cut anywhere, it must not pass for a shorter profile.
  for (size_t length = 0; length + 1 < whole.size(); length += 7) {
    write(path, whole.substr(0, length));
    CHECK(error_of([&] { ProfileStore::open(path, kHeader); }).find(path) == 0);
  }
  // A line lost in the middle.
  std::string gap = whole;
  const size_t second = gap.find('\n') + 1;
  gap.erase(second, gap.find('\n', second) + 1 - second);
  write(path, gap);
  CHECK(says(error_of([&] { ProfileStore::open(path, kHeader); }), "lacks entries"));
}

TEST_CASE("a profile of other libraries or another device is refused") {
  const TempFolder folder;
  ProfileStore store(folder.file("p"), kHeader);
  store.save();
  ProfileHeader newer = kHeader;
  newer.libraries = "lib 2.0";
  const std::string refusal = error_of([&] { ProfileStore::open(store.path(), newer); });
  CHECK(says(refusal, "lib 1.0"));
  CHECK(says(refusal, "lib 2.0"));
  std::string text = read(store.path());
  text.replace(text.find("\"version\":1"), 11, "\"version\":9");
  write(store.path(), text);
  CHECK(says(error_of([&] { ProfileStore::open(store.path(), kHeader); }), "version 9"));
}

TEST_CASE("a profile that cannot be written is an error and leaves the old one") {
  const TempFolder folder;
  fs::create_directories(folder.file("p"));  // a folder where the file should be
  write(folder.file("p/x"), "");
  ProfileStore store(folder.file("p"), kHeader);
  CHECK_THROWS_AS(store.save(), RunError);
  CHECK(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()) == 1);
}

TEST_CASE("profiled costs are measured then interpolated then estimated") {
  ProfileStore store("none", kHeader);
  store.add(1, to_string(call_of("conv", {8, 2})),
            {{.median = 10'000'000, .workspace_bytes = 1000}, {1e9, 1e6}});
  store.add(1, to_string(call_of("conv", {64, 2})),
            {{.median = 80'000'000, .workspace_bytes = 8000}, {8e9, 8e6}});
  ProfiledCost costs(store, 1);
  const KernelCost hit = costs.kernel(call_of("conv", {8, 2}), {1e9, 1e6}, "conv", gpu());
  CHECK(hit.source == CostSource::measured);
  CHECK(hit.time == 10'000'000);
  CHECK(hit.workspace_bytes == 1000);
  // 2e9 flops: nearer to 1e9 than to 8e9; twice the work, twice the time and workspace.
  const KernelCost near = costs.kernel(call_of("conv", {16, 2}), {2e9, 2e6}, "conv", gpu());
  CHECK(near.source == CostSource::interpolated);
  CHECK(near.time == 20'000'000);
  CHECK(near.workspace_bytes == 2000);
  // Another rank of operand: only the kernel is the same. Its roofline at 1e9 flops is (1e9 + 1e9) / 5e12 =
  // 400 us and it took 10 ms, 25 times that; 4e8 flops are nearest to it: (4e8 + 1e9) / 5e12 = 280 us, times
  // 25 = 7 ms.
  const KernelCost scaled = costs.kernel(call_of("conv", {3}), {4e8, 1e5}, "conv", gpu());
  CHECK(scaled.source == CostSource::interpolated);
  CHECK(scaled.time == 7'000'000);
  const KernelCost none = costs.kernel(call_of("relu", {3}), {0, 500e6}, "conv", gpu());
  CHECK(none.source == CostSource::estimated);
  CHECK(none.time == 1'000'000);
  CHECK(costs.counts().measured == 1);
  CHECK(costs.counts().interpolated == 2);
  CHECK(costs.counts().estimated == 1);
}

TEST_CASE("a profile without this number of ranks serves its nearest") {
  ProfileStore store("none", kHeader);
  const std::string call = to_string(call_of("conv", {8}));
  store.add(1, call, {{.median = 10}, {1, 1}});
  store.add(4, call, {{.median = 40}, {1, 1}});
  CHECK(ProfiledCost(store, 16).kernel(call_of("conv", {8}), {1, 1}, "x", gpu()).time == 40);
  CHECK(ProfiledCost(store, 2).kernel(call_of("conv", {8}), {1, 1}, "x", gpu()).time == 10);
}

TEST_CASE("measured costs ask once for what the store lacks") {
  const TempFolder folder;
  ProfileStore store(folder.file("p"), kHeader);
  store.add(2, to_string(call_of("conv", {1})), {{.median = 77}, {1, 1}});
  CountingQuery query;
  int64_t reported = 0;
  {
    MeasuredCost costs(store, query, 2, [&](int64_t n, const std::string&) { reported = n; });
    CHECK(costs.kernel(call_of("conv", {1}), {1, 1}, "x", gpu()).time == 77);
    CHECK(costs.kernel(call_of("conv", {2}), {1, 1}, "x", gpu()).time == 100);
    CHECK(costs.kernel(call_of("conv", {2}), {1, 1}, "x", gpu()).time == 100);
    CHECK(costs.kernel(call_of("conv", {3}), {1, 1}, "x", gpu()).time == 200);
    CHECK(costs.counts().measured == 3);
  }
  CHECK(query.calls == 2);
  CHECK(reported == 2);
  const ProfileStore again = ProfileStore::open(folder.file("p"), kHeader);
  CHECK(again.size() == 3);
}

TEST_CASE("an interrupted measurement keeps what was measured before") {
  const TempFolder folder;
  ProfileStore store(folder.file("p"), kHeader);
  CountingQuery query;
  query.fail_at = 3;
  MeasuredCost costs(store, query, 1, {}, std::chrono::milliseconds(0));
  CHECK(costs.kernel(call_of("conv", {1}), {1, 1}, "x", gpu()).time == 100);
  CHECK(costs.kernel(call_of("conv", {2}), {1, 1}, "x", gpu()).time == 200);
  CHECK_THROWS_AS(costs.kernel(call_of("conv", {3}), {1, 1}, "x", gpu()), RunError);
  // As if killed here: what is on disk is whole.
  CHECK(ProfileStore::open(folder.file("p"), kHeader).size() == 2);
  // And a call that failed is asked for again.
  CHECK(costs.kernel(call_of("conv", {3}), {1, 1}, "x", gpu()).time == 400);
}

namespace {

class SleepKernel : public Kernel {
 public:
  explicit SleepKernel(std::atomic<int>& runs) : runs_(runs) {}
  int64_t workspace_bytes() const override { return 100; }
  void run(std::span<void* const> operands, void* workspace, const RunContext&) override {
    FF_CHECK_EQ(operands.size(), size_t{3});
    FF_CHECK(operands[1] == nullptr);
    FF_CHECK_EQ(reinterpret_cast<uintptr_t>(operands[0]) % 64, uintptr_t{0});
    FF_CHECK_EQ(reinterpret_cast<uintptr_t>(workspace) % 64, uintptr_t{0});
    ++runs_;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

 private:
  std::atomic<int>& runs_;
};

}  // namespace

TEST_CASE("the profiler gives the median of several runs after warm-up") {
  std::atomic<int> runs{0};
  CpuProfiler profiler([&](const KernelCall&) { return std::make_unique<SleepKernel>(runs); }, {});
  const KernelCall call{
      .kernel = "sleep",
      .attributes = {},
      .operands = {{.shape = {5}}, absent_operand(), {.access = Access::out, .shape = {5}}}};
  const Measurement m = profiler.measure(call);
  CHECK(m.median >= 5'000'000);
  CHECK(m.median < 100'000'000);
  CHECK(m.count >= 3);
  CHECK(m.count <= 20);
  CHECK(runs == m.count + 1);
  CHECK(m.workspace_bytes == 100);
  CHECK(profiler.workspace_bytes(call) == 100);
}

TEST_CASE("the profiler loads other cores with the same kernel") {
  std::atomic<int> runs{0};
  CpuProfiler profiler([&](const KernelCall&) { return std::make_unique<SleepKernel>(runs); },
                       {.threads = 1, .ranks = 2});
  const KernelCall call{
      .kernel = "sleep",
      .attributes = {},
      .operands = {{.shape = {5}}, absent_operand(), {.access = Access::out, .shape = {5}}}};
  const Measurement m = profiler.measure(call);
  // The second rank runs for about as long as the first; with one core there is none.
  if (std::thread::hardware_concurrency() < 2) {
    CHECK(runs == m.count + 1);
  } else {
    CHECK(runs > m.count + 2);
  }
}
