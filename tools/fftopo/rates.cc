// What a core does while all of them are at work: multiply-adds in registers, copies of what no cache holds.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "tools/fftopo/host.h"

namespace ff {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

using Vector16 = float __attribute__((vector_size(16)));
using Vector32 = float __attribute__((vector_size(32)));
using Vector64 = float __attribute__((vector_size(64)));

constexpr int kRounds = 2000;
constexpr int kChains = 10;  // independent sums: more than a multiply-add's latency on two units

/// Flops of kRounds multiply-adds in each chain, which depend on `sink`'s value and end in it.
template <typename V>
[[gnu::always_inline]] inline double multiply_add(float& sink) {
  V a[kChains], factor = V{} + 0.999F, term = V{} + sink;
  for (V& chain : a) chain = term;
  for (int round = 0; round < kRounds; ++round) {
    for (V& chain : a) chain = chain * factor + term;
  }
  for (int i = 1; i < kChains; ++i) a[0] += a[i];
  sink = a[0][0] > 1e6F ? 0.5F : 0.25F;
  constexpr size_t kLanes = sizeof(V) / sizeof(float);
  return 2.0 * kRounds * kChains * kLanes;
}

double narrow(float& sink) { return multiply_add<Vector16>(sink); }
#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] double wide(float& sink) { return multiply_add<Vector32>(sink); }
[[gnu::target("avx512f")]] double widest(float& sink) { return multiply_add<Vector64>(sink); }
#endif

using Kernel = double (*)(float&);

Kernel best_kernel() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") != 0) return widest;
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0) return wide;
#endif
  return narrow;
}

double flops_rate(Kernel kernel) {
  float sink = 0.25F;
  double best = 0;
  for (int turn = 0; turn < 10; ++turn) {
    double flops = 0;
    const Clock::time_point start = Clock::now();
    while (seconds_since(start) < 0.01) flops += kernel(sink);
    best = std::max(best, flops / seconds_since(start));
  }
  return best;
}

double copy_rate(size_t bytes) {
  std::vector<char> from(bytes, 1), to(bytes, 2);
  double copied = 0;
  const Clock::time_point start = Clock::now();
  do {
    std::memcpy(to.data(), from.data(), bytes);
    from[static_cast<size_t>(copied) % bytes] = to[bytes / 2];
    copied += static_cast<double>(bytes);
  } while (seconds_since(start) < 0.15);
  return copied / seconds_since(start);
}

/// The median over as many threads as cores, which all work at once.
template <typename F>
double on_all_cores(int cores, F measure) {
  std::vector<double> rates(static_cast<size_t>(cores));
  std::vector<std::thread> threads;
  threads.reserve(rates.size());
  std::atomic<int> ready{0};
  for (double& rate : rates) {
    threads.emplace_back([&rate, &ready, &measure, cores] {
      for (++ready; ready < cores;) std::this_thread::yield();
      rate = measure();
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::nth_element(rates.begin(), rates.begin() + cores / 2, rates.end());
  return rates[static_cast<size_t>(cores) / 2];
}

}  // namespace

CoreRates measure_rates(const Host& host) {
  const Kernel kernel = best_kernel();
  const int64_t share = host.memory_bytes / host.cores() / 8;
  const auto bytes = static_cast<size_t>(std::clamp<int64_t>(share, 1 << 20, 64 << 20));
  CoreRates rates;
  rates.flops = on_all_cores(host.cores(), [kernel] { return flops_rate(kernel); });
  rates.copied = on_all_cores(host.cores(), [bytes] { return copy_rate(bytes); });
  return rates;
}

}  // namespace ff
