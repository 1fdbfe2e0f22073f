#include "tools/fftopo/measure.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "compiler/base/check.h"

namespace ff {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kSizes[] = {8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20};
constexpr int kTag = 1;
constexpr size_t kNameBytes = 256;

/// Hosts are told apart by name and network namespace: containers may share the name.
std::string place_of_this_rank() {
  std::array<char, kNameBytes / 2> name{}, space{};
  gethostname(name.data(), name.size() - 1);
  const auto length = readlink("/proc/self/ns/net", space.data(), space.size() - 1);
  return std::string(name.data()) + (length > 0 ? " " + std::string(space.data()) : "");
}

std::vector<std::string> gather_places(Communicator& comm) {
  std::string mine = place_of_this_rank();
  mine.resize(kNameBytes);
  std::string all(kNameBytes * static_cast<size_t>(comm.size()), '\0');
  const std::vector<int64_t> counts(static_cast<size_t>(comm.size()), kNameBytes / sizeof(int32_t));
  Request done = comm.iall_gather(Communicator::kAllRanks, mine.data(), all.data(), counts, DType::i32);
  comm.wait(done);
  std::vector<std::string> places;
  for (size_t at = 0; at < all.size(); at += kNameBytes) places.emplace_back(all.c_str() + at);
  return places;
}

CoreRates gather_rates(Communicator& comm, const Host& host) {
  Host one = host;
  one.numa_of_core.resize(1);
  one.memory_bytes /= comm.size();
  comm.barrier();  // all at work at once
  const CoreRates mine = measure_rates(one);
  const double sent[2] = {mine.flops, mine.copied};
  std::vector<double> all(2 * static_cast<size_t>(comm.size()));
  const std::vector<int64_t> counts(static_cast<size_t>(comm.size()), 2);
  Request done = comm.iall_gather(Communicator::kAllRanks, sent, all.data(), counts, DType::f64);
  comm.wait(done);
  CoreRates least = mine;
  for (size_t i = 0; i < all.size(); i += 2) {
    least.flops = std::min(least.flops, all[i]);
    least.copied = std::min(least.copied, all[i + 1]);
  }
  return least;
}

/// The median time of `once`; short ones are timed several at a time. All who take part do it equally often.
template <typename F>
double time_of(int64_t bytes, F once) {
  const int turns = static_cast<int>(std::clamp<int64_t>((64 << 20) / bytes, 7, 101));
  const int together = bytes < 4096 ? 20 : 1;
  std::vector<double> seconds;
  for (int turn = -2; turn < turns; ++turn) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < together; ++i) once();
    if (turn >= 0) seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count() / together);
  }
  std::nth_element(seconds.begin(), seconds.begin() + turns / 2, seconds.end());
  return seconds[static_cast<size_t>(turns) / 2];
}

/// Both ranks send to each other at once; on other ranks empty.
std::vector<TimedMessage> time_pair(Communicator& comm, int a, int b) {
  std::vector<TimedMessage> times;
  const int peer = comm.rank() == a ? b : a;
  const auto most = static_cast<size_t>(kSizes[std::size(kSizes) - 1]);
  std::vector<char> out, in;
  if (comm.rank() == a || comm.rank() == b) {
    out.assign(most, 1);
    in.assign(most, 0);
    for (const int64_t bytes : kSizes) {
      times.push_back({bytes, time_of(bytes, [&] {
                         Request received = comm.irecv(in.data(), bytes, peer, kTag);
                         Request sent = comm.isend(out.data(), bytes, peer, kTag);
                         comm.wait(sent);
                         comm.wait(received);
                       })});
    }
  }
  comm.barrier();
  return times;
}

std::vector<TimedMessage> time_all_reduce(Communicator& comm) {
  std::vector<float> data(static_cast<size_t>(kSizes[std::size(kSizes) - 1]) / sizeof(float), 0);
  std::vector<TimedMessage> times;
  for (const int64_t bytes : kSizes) {
    const auto count = static_cast<int64_t>(static_cast<size_t>(bytes) / sizeof(float));
    times.push_back({bytes, time_of(bytes, [&] {
                       Request done = comm.iall_reduce(Communicator::kAllRanks, data.data(), data.data(),
                                                       count, DType::f32, ReduceOp::sum);
                       comm.wait(done);
                     })});
  }
  comm.barrier();
  return times;
}

/// What a pair measured, brought from its first rank to rank 0.
void bring_home(Communicator& comm, int from, std::vector<TimedMessage>& times) {
  if (from == 0) return;
  times.resize(std::size(kSizes));
  const auto bytes = static_cast<int64_t>(times.size() * sizeof(TimedMessage));
  Request done;
  if (comm.rank() == from) done = comm.isend(times.data(), bytes, 0, kTag);
  if (comm.rank() == 0) done = comm.irecv(times.data(), bytes, from, kTag);
  comm.wait(done);
}

/// The first two ranks, in order, that are on one host, or that are not.
std::optional<std::pair<int, int>> find_pair(const std::vector<std::string>& host_of, bool same) {
  for (size_t a = 0; a < host_of.size(); ++a) {
    for (size_t b = a + 1; b < host_of.size(); ++b) {
      if ((host_of[a] == host_of[b]) == same) return std::pair(static_cast<int>(a), static_cast<int>(b));
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<int> Measured::ranks_by_host() const {
  std::vector<std::string> hosts;
  std::vector<int> ranks;
  for (const std::string& host_name : host_of_rank) {
    const auto at = std::find(hosts.begin(), hosts.end(), host_name) - hosts.begin();
    if (at == static_cast<std::ptrdiff_t>(hosts.size())) {
      hosts.push_back(host_name);
      ranks.push_back(0);
    }
    ++ranks[static_cast<size_t>(at)];
  }
  return ranks;
}

Line fit_line(const std::vector<TimedMessage>& times) {
  FF_CHECK(!times.empty());
  const TimedMessage& largest = times.back();
  Line line{times[0].seconds, static_cast<double>(largest.bytes) / largest.seconds};
  double right = 0, squares = 0;
  for (const TimedMessage& t : times) {
    if (t.bytes < largest.bytes / 64) continue;
    const double bytes = static_cast<double>(t.bytes);
    right += (t.seconds - line.latency) * bytes / (t.seconds * t.seconds);
    squares += bytes * bytes / (t.seconds * t.seconds);
  }
  if (right > 0) line.bandwidth = squares / right;
  return line;
}

Measured measure_ranks(Communicator& comm) {
  if (comm.size() < 2) {
    throw UserError("--measure: one rank has nobody to send to", "mpirun -n 2 fftopo --measure");
  }
  Measured out;
  out.host_of_rank = gather_places(comm);
  out.host = detect_host(/*heed_binding=*/false);
  out.host.rates = gather_rates(comm, out.host);
  const std::vector<int> ranks = out.ranks_by_host();
  out.host.numa_of_core.assign(static_cast<size_t>(*std::max_element(ranks.begin(), ranks.end())), 0);
  out.host.numa_nodes = 1;
  for (const bool same : {true, false}) {
    const auto pair = find_pair(out.host_of_rank, same);
    if (!pair) continue;
    std::vector<TimedMessage>& times = same ? out.inside : out.between;
    times = time_pair(comm, pair->first, pair->second);
    bring_home(comm, pair->first, times);
  }
  out.all_reduce = time_all_reduce(comm);
  return out;
}

}  // namespace ff
