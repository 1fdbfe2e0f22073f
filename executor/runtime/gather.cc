#include "executor/runtime/gather.h"

namespace ff {
namespace {
constexpr int kTag = Communicator::kMaxTag / 2 + 16;  // beyond the numbers of a program's messages
}

std::vector<std::string> gather_texts(const std::string& mine, Communicator& comm) {
  const std::vector<int64_t> sizes = all_gather(static_cast<int64_t>(mine.size()), comm);
  if (comm.rank() != 0) {
    Request sent = comm.isend(mine.data(), static_cast<int64_t>(mine.size()), 0, kTag);
    comm.wait(sent);
    return {};
  }
  std::vector<std::string> out{mine};
  for (int peer = 1; peer < comm.size(); ++peer) {
    const int64_t size = sizes[static_cast<size_t>(peer)];
    std::string text(static_cast<size_t>(size), '\0');
    Request received = comm.irecv(text.data(), size, peer, kTag);
    comm.wait(received);
    out.push_back(std::move(text));
  }
  return out;
}

std::vector<int64_t> all_gather(int64_t mine, Communicator& comm) {
  const auto ranks = static_cast<size_t>(comm.size());
  std::vector<int64_t> out(ranks);
  const std::vector<int64_t> counts(ranks, 1);
  Request done = comm.iall_gather(Communicator::kAllRanks, &mine, out.data(), counts, DType::i64);
  comm.wait(done);
  return out;
}

}  // namespace ff
