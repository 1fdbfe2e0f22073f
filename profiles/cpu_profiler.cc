#include "profiles/cpu_profiler.h"

#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>
#include <vector>

#include "compiler/base/rng.h"

#include <oneapi/dnnl/dnnl.h>

namespace ff {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kEnough = std::chrono::milliseconds(30);
constexpr size_t kFewestRuns = 3, kMostRuns = 20;

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<void, Free>;

Buffer allocate(int64_t bytes) {
  const size_t size = (static_cast<size_t>(std::max<int64_t>(bytes, 1)) + 63) / 64 * 64;
  Buffer buffer(std::aligned_alloc(64, size));
  if (!buffer) throw std::bad_alloc();
  std::memset(buffer.get(), 0, size);
  return buffer;
}

void fill_random(const Operand& operand, void* buffer, Rng& rng) {
  const int64_t count = volume(operand.shape);
  for (int64_t i = 0; i < count; ++i) {
    const double value = 2 * rng.uniform() - 1;
    if (operand.dtype == DType::f64) {
      static_cast<double*>(buffer)[i] = value;
    } else if (operand.dtype == DType::f32) {
      static_cast<float*>(buffer)[i] = static_cast<float>(value);
    } else if (operand.dtype == DType::bf16) {
      const auto real = static_cast<float>(value);
      std::memcpy(static_cast<uint16_t*>(buffer) + i, reinterpret_cast<const char*>(&real) + 2, 2);
    } else if (operand.dtype == DType::f16) {
      static_cast<uint16_t*>(buffer)[i] = 0x3800;  // 0.5
    }
  }
}

/// How many sets of operands of these bytes are more than a core keeps in its own cache (L2).
size_t sets_beyond_cache(int64_t bytes) {
  const long cache = std::max(sysconf(_SC_LEVEL2_CACHE_SIZE), 1L << 20);
  return static_cast<size_t>(std::clamp<int64_t>(4 * cache / std::max<int64_t>(bytes, 1), 1, kMostRuns));
}

/// A kernel with operands of its own, ready to run again and again. Each run takes the next of several sets
/// of operands: in a step, too, what a kernel reads and writes was last touched many kernels ago.
class Bench {
 public:
  Bench(const CpuProfiler::MakeKernel& make_kernel, const KernelCall& call, uint64_t seed)
      : kernel_(make_kernel(call)) {
    Rng rng(seed);
    int64_t bytes = 0;
    for (const Operand& operand : call.operands) bytes += is_absent(operand) ? 0 : operand.bytes();
    sets_.resize(sets_beyond_cache(bytes));
    for (auto& pointers : sets_) {
      for (const Operand& operand : call.operands) {
        if (is_absent(operand)) {
          pointers.push_back(nullptr);
          continue;
        }
        buffers_.push_back(allocate(operand.bytes()));
        if (operand.access != Access::out) fill_random(operand, buffers_.back().get(), rng);
        pointers.push_back(buffers_.back().get());
      }
    }
    workspace_ = allocate(kernel_->workspace_bytes());
  }
  void run() {
    kernel_->run(sets_[static_cast<size_t>(context_.step) % sets_.size()], workspace_.get(), context_);
    ++context_.step;
  }
  int64_t workspace_bytes() const { return kernel_->workspace_bytes(); }

 private:
  std::unique_ptr<Kernel> kernel_;
  std::vector<Buffer> buffers_;
  std::vector<std::vector<void*>> sets_;
  Buffer workspace_;
  RunContext context_;
};

std::vector<Nanoseconds> time_runs(Bench& bench) {
  std::vector<Nanoseconds> times;
  const auto started = Clock::now();
  do {
    const auto before = Clock::now();
    bench.run();
    times.push_back(std::chrono::nanoseconds(Clock::now() - before).count());
  } while (times.size() < kMostRuns && (times.size() < kFewestRuns || Clock::now() - started < kEnough));
  return times;
}

/// The same kernel on other cores for as long as this lives: memory bandwidth is shared as in training.
class Neighbours {
 public:
  Neighbours(int count, int threads, const CpuProfiler::MakeKernel& make_kernel, const KernelCall& call) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this, i, threads, &make_kernel, &call] {
        try {
          omp_set_num_threads(threads);
          Bench bench(make_kernel, call, static_cast<uint64_t>(i) + 2);
          bench.run();
          ++ready_;
          while (!stop_.load(std::memory_order_relaxed)) bench.run();
        } catch (...) {
          // The measuring thread meets the same error and reports it.
          ++ready_;
        }
      });
    }
    while (ready_ < count) std::this_thread::yield();
  }
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;
  ~Neighbours() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::vector<std::thread> threads_;
  std::atomic<int> ready_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace

namespace {

/// Kernels are made and run with the threads of a rank for as long as this lives.
class RankThreads {
 public:
  explicit RankThreads(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;
  ~RankThreads() { omp_set_num_threads(before_); }

 private:
  int before_;
};

/// Counted up when kernels become faster or slower: what was measured before is measured again.
constexpr int kKernelsVersion = 2;

}  // namespace

CpuProfiler::CpuProfiler(MakeKernel make_kernel, CpuProfilerOptions options)
    : make_kernel_(std::move(make_kernel)), options_(options) {}

Measurement CpuProfiler::measure(const KernelCall& call) {
  const RankThreads threads(options_.threads);
  std::vector<Nanoseconds> times;
  int64_t workspace = 0;
  {
    Bench bench(make_kernel_, call, 1);
    bench.run();
    const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    const int fit = std::max(1, cores / std::max(1, options_.threads));
    const Neighbours neighbours(std::min(options_.ranks, fit) - 1, options_.threads, make_kernel_, call);
    times = time_runs(bench);
    workspace = bench.workspace_bytes();
  }
  std::sort(times.begin(), times.end());
  const size_t n = times.size();
  return {.median = std::max<Nanoseconds>(1, times[n / 2]),
          .spread = times[n * 3 / 4] - times[n / 4],
          .count = static_cast<int64_t>(n),
          .workspace_bytes = workspace};
}

int64_t CpuProfiler::workspace_bytes(const KernelCall& call) {
  const RankThreads threads(options_.threads);
  return make_kernel_(call)->workspace_bytes();
}

std::string cpu_libraries() {
  const dnnl_version_t* version = dnnl_version();
  std::string isa = "baseline";
  if (__builtin_cpu_supports("avx2")) isa = "avx2";
  if (__builtin_cpu_supports("avx512f")) isa = "avx512";
  return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch) + ", " + isa + ", kernels " + std::to_string(kKernelsVersion);
}

}  // namespace ff
