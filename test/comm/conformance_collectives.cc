#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "test/comm/conformance.h"
#include "test/comm/conformance_data.h"

namespace ff {
namespace {

/// The groups of the next cases: all, all backwards, the even ones, neighbours that overlap, oneself.
std::vector<Ranks> some_groups(const Communicator& comm) {
  std::vector<Ranks> groups{all_ranks(comm)};
  groups.emplace_back(groups[0].rbegin(), groups[0].rend());
  Ranks even;
  for (int r = 0; r < comm.size(); r += 2) even.push_back(r);
  groups.push_back(even);
  for (int r = 0; r + 1 < comm.size(); ++r) groups.push_back({r + 1, r});
  for (int r = 0; r < comm.size(); ++r) groups.push_back({r});
  return groups;
}

bool has(const Ranks& ranks, int rank) { return std::find(ranks.begin(), ranks.end(), rank) != ranks.end(); }

template <typename T>
void check_all_reduce(Communicator& comm, int group, const Ranks& ranks, int64_t count, ReduceOp op,
                      bool in_place) {
  const auto stream = static_cast<uint64_t>(count);
  const std::vector<T> in = elements<T>(comm.rank(), count, stream);
  std::vector<T> out = in_place ? in : std::vector<T>(in.size(), T(-1));
  Request request =
      comm.iall_reduce(group, in_place ? out.data() : in.data(), out.data(), count, dtype_of<T>(), op);
  comm.wait(request);
  FF_CHECK(same_bits(out, reduced<T>(ranks, count, op, stream)))
      << count << " elements of " << name(dtype_of<T>());

  const auto mine = static_cast<int64_t>(checksum(out));
  std::vector<int64_t> theirs(ranks.size(), 0);
  Request gathered = comm.iall_gather(group, &mine, theirs.data(), Counts(ranks.size(), 1), DType::i64);
  comm.wait(gathered);
  for (int64_t other : theirs) FF_CHECK_EQ(other, mine);
}

void all_reduce_has_the_same_bits(Communicator& comm) {
  for (const Ranks& ranks : some_groups(comm)) {
    if (!has(ranks, comm.rank())) continue;
    const int group = comm.add_group(ranks);
    FF_CHECK_EQ(comm.add_group(ranks), group);
    for (const int64_t count : {0, 1, 3, 1000, 30011, 200003}) {
      for (const bool in_place : {false, true}) {
        check_all_reduce<float>(comm, group, ranks, count, ReduceOp::sum, in_place);
        if (count > 1000) continue;
        check_all_reduce<double>(comm, group, ranks, count, ReduceOp::sum, in_place);
        check_all_reduce<int64_t>(comm, group, ranks, count, ReduceOp::sum, in_place);
        check_all_reduce<int32_t>(comm, group, ranks, count, ReduceOp::max, in_place);
        check_all_reduce<float>(comm, group, ranks, count, ReduceOp::max, in_place);
      }
    }
  }
}

void order_of_members_matters(Communicator& comm) {
  // Of the checks above: with three members or more the data do tell one order of addition from another.
  if (comm.size() < 3) return;
  Ranks ranks = all_ranks(comm);
  const auto forwards = reduced<float>(ranks, 1000, ReduceOp::sum);
  std::reverse(ranks.begin(), ranks.end());
  FF_CHECK(!same_bits(forwards, reduced<float>(ranks, 1000, ReduceOp::sum)));
}

void nan_wins_a_maximum(Communicator& comm) {
  for (int where = 0; where < comm.size(); ++where) {
    float x = comm.rank() == where ? std::nanf("") : 1.0F;
    Request request = comm.iall_reduce(Communicator::kAllRanks, &x, &x, 1, DType::f32, ReduceOp::max);
    comm.wait(request);
    FF_CHECK(std::isnan(x)) << "NaN of rank " << where;
  }
}

void unsupported_type_is_refused(Communicator& comm) {
  uint16_t x = 0;
  bool refused = false;
  try {
    (void)comm.iall_reduce(Communicator::kAllRanks, &x, &x, 1, DType::bf16, ReduceOp::sum);
  } catch (const UserError& e) {
    refused = std::string(e.what()).find("bf16") != std::string::npos;
  }
  FF_CHECK(refused);
}

/// Uneven, and nothing for every third member.
Counts uneven(size_t members, int64_t scale) {
  Counts counts;
  for (size_t m = 0; m < members; ++m) counts.push_back(m % 3 == 1 ? 0 : scale + static_cast<int64_t>(m) * 7);
  return counts;
}

void reduce_scatter_of_uneven_segments(Communicator& comm) {
  for (const Ranks& ranks : some_groups(comm)) {
    if (!has(ranks, comm.rank())) continue;
    const int group = comm.add_group(ranks);
    for (const int64_t scale : {0, 5, 70001}) {
      const Counts counts = uneven(ranks.size(), scale);
      const int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t{0});
      const auto m = std::find(ranks.begin(), ranks.end(), comm.rank()) - ranks.begin();
      const int64_t start = std::accumulate(counts.begin(), counts.begin() + m, int64_t{0});
      const int64_t own = counts[static_cast<size_t>(m)];
      const auto in = elements<float>(comm.rank(), total);
      std::vector<float> out(static_cast<size_t>(own), -1.0F);
      Request request = comm.ireduce_scatter(group, in.data(), out.data(), counts, DType::f32, ReduceOp::sum);
      comm.wait(request);
      const auto whole = reduced<float>(ranks, total, ReduceOp::sum);
      FF_CHECK(same_bits(out, std::vector<float>(whole.begin() + start, whole.begin() + start + own)));
    }
  }
}

void all_gather_of_uneven_segments(Communicator& comm) {
  for (const Ranks& ranks : some_groups(comm)) {
    if (!has(ranks, comm.rank())) continue;
    const int group = comm.add_group(ranks);
    for (const int64_t scale : {0, 5, 70001}) {
      for (const bool in_place : {false, true}) {
        const Counts counts = uneven(ranks.size(), scale);
        std::vector<float> expected;
        size_t start = 0;
        std::vector<float> in;
        for (size_t m = 0; m < ranks.size(); ++m) {
          const auto part = elements<float>(ranks[m], counts[m]);
          if (ranks[m] == comm.rank()) {
            in = part;
            start = expected.size();
          }
          expected.insert(expected.end(), part.begin(), part.end());
        }
        std::vector<float> out(expected.size(), -1.0F);
        if (in_place) std::copy(in.begin(), in.end(), out.begin() + static_cast<int64_t>(start));
        const float* from = in_place ? out.data() + start : in.data();
        Request request = comm.iall_gather(group, from, out.data(), counts, DType::f32);
        comm.wait(request);
        FF_CHECK(same_bits(out, expected));
      }
    }
  }
}

void broadcast_from_each_root(Communicator& comm) {
  for (const Ranks& ranks : some_groups(comm)) {
    if (!has(ranks, comm.rank())) continue;
    const int group = comm.add_group(ranks);
    for (size_t root = 0; root < ranks.size(); ++root) {
      for (const int64_t count : {0, 1, 50001}) {
        auto data = elements<double>(comm.rank(), count);
        Request request = comm.ibroadcast(group, data.data(), count, DType::f64, static_cast<int>(root));
        comm.wait(request);
        FF_CHECK(same_bits(data, elements<double>(ranks[root], count))) << "root " << root;
      }
    }
  }
}

void all_to_all_of_uneven_segments(Communicator& comm) {
  for (const Ranks& ranks : some_groups(comm)) {
    if (!has(ranks, comm.rank())) continue;
    const int group = comm.add_group(ranks);
    // Rank a gives rank b: nothing where a + b is a multiple of 3, else a number that differs in the two
    // directions.
    const auto count = [](int a, int b) { return (a + b) % 3 == 0 ? 0 : int64_t{1000} * a + 30 * b + 1; };
    const auto stream = [](int b) { return static_cast<uint64_t>(b) + 50; };
    Counts in_counts, out_counts;
    std::vector<int32_t> in, expected;
    for (int peer : ranks) {
      in_counts.push_back(count(comm.rank(), peer));
      out_counts.push_back(count(peer, comm.rank()));
      const auto to = elements<int32_t>(comm.rank(), in_counts.back(), stream(peer));
      const auto from = elements<int32_t>(peer, out_counts.back(), stream(comm.rank()));
      in.insert(in.end(), to.begin(), to.end());
      expected.insert(expected.end(), from.begin(), from.end());
    }
    std::vector<int32_t> out(expected.size(), -1);
    Request request = comm.iall_to_all(group, in.data(), in_counts, out.data(), out_counts, DType::i32);
    comm.wait(request);
    FF_CHECK(same_bits(out, expected));
  }
}

void collectives_in_flight_together(Communicator& comm) {
  // On groups that overlap, waited for in another order on every rank; small and large ones mixed.
  const std::vector<Ranks> groups = some_groups(comm);
  std::vector<Request> requests;
  std::vector<std::vector<float>> outs, expected;
  for (size_t i = 0; i < 3 * groups.size(); ++i) {
    const Ranks& ranks = groups[i % groups.size()];
    if (!has(ranks, comm.rank())) continue;
    const int64_t count = i % 2 == 0 ? 60000 : 10;
    outs.push_back(elements<float>(comm.rank(), count, i));
    expected.push_back(reduced<float>(ranks, count, ReduceOp::sum, i));
    float* data = outs.back().data();
    requests.push_back(comm.iall_reduce(comm.add_group(ranks), data, data, count, DType::f32, ReduceOp::sum));
  }
  Rng rng(static_cast<uint64_t>(comm.rank()) + 1);
  for (size_t i = requests.size(); i > 1; --i) {
    std::swap(requests[i - 1], requests[static_cast<size_t>(rng.below(static_cast<int64_t>(i)))]);
  }
  wait_all(comm, requests);
  for (size_t i = 0; i < outs.size(); ++i) FF_CHECK(same_bits(outs[i], expected[i])) << "collective " << i;
}

void waiting_for_one_moves_the_others(Communicator& comm) {
  // Rank 0 waits for a message that the last rank sends after its all-reduce, whose second half needs rank 0.
  const int64_t count = 100000;
  auto data = elements<float>(comm.rank(), count);
  const int last = comm.size() - 1;
  int word = comm.rank();
  Request go;
  if (comm.rank() == 0) go = comm.irecv(&word, 4, last, 2);
  Request sum =
      comm.iall_reduce(Communicator::kAllRanks, data.data(), data.data(), count, DType::f32, ReduceOp::sum);
  if (comm.rank() == 0 && last > 0) comm.wait(go);
  comm.wait(sum);
  if (comm.rank() == last) {
    Request send = comm.isend(&last, 4, 0, 2);
    if (last == 0) comm.wait(go);
    comm.wait(send);
  }
  FF_CHECK_EQ(word, comm.rank() == 0 ? last : comm.rank());
  FF_CHECK(same_bits(data, reduced<float>(all_ranks(comm), count, ReduceOp::sum)));
}

void progress_while_computing(Communicator& comm) {
  const int64_t count = 400000;
  auto data = elements<float>(comm.rank(), count);
  Request sum =
      comm.iall_reduce(Communicator::kAllRanks, data.data(), data.data(), count, DType::f32, ReduceOp::sum);
  volatile double work = 1.0;
  for (int kernel = 0; kernel < 200; ++kernel) {
    for (int i = 0; i < 500; ++i) work = work * 1.0000001;
    comm.progress();
  }
  while (!comm.test(sum)) comm.progress();
  FF_CHECK(same_bits(data, reduced<float>(all_ranks(comm), count, ReduceOp::sum)));
}

constexpr ConformanceCase kCases[] = {
    {"all-reduce gives all members the bits of one thread", all_reduce_has_the_same_bits},
    {"the order of addition shows in the data", order_of_members_matters},
    {"a NaN wins a maximum", nan_wins_a_maximum},
    {"a type that cannot be reduced is refused", unsupported_type_is_refused},
    {"reduce-scatter takes uneven and empty segments", reduce_scatter_of_uneven_segments},
    {"all-gather takes uneven and empty segments", all_gather_of_uneven_segments},
    {"broadcast works from each root", broadcast_from_each_root},
    {"all-to-all takes uneven and empty segments", all_to_all_of_uneven_segments},
    {"collectives of overlapping groups may be in flight together", collectives_in_flight_together},
    {"waiting for one request moves the others", waiting_for_one_moves_the_others},
    {"progress moves a collective while computing", progress_while_computing},
};

}  // namespace

std::span<const ConformanceCase> collective_cases() { return kCases; }

void conformance(Communicator& comm) {
  for (const auto cases : {message_cases(), collective_cases()}) {
    for (const ConformanceCase& test : cases) {
      try {
        test.run(comm);
      } catch (const InternalError& e) {
        throw InternalError(std::string(test.name) + ": " + e.what());
      }
      comm.barrier();
    }
  }
}

}  // namespace ff
