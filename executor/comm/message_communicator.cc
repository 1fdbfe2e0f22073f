#include "executor/comm/message_communicator.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "compiler/base/check.h"

namespace ff {
namespace {

/// Collectives of a group are told apart by their number, modulo more than can be in flight.
constexpr int kCollectiveTags = 1 << 20;

}  // namespace

MessageCommunicator::MessageCommunicator(int rank, int size, Transport& transport,
                                         const MessageOptions& options)
    : rank_(rank), size_(size), transport_(transport), options_(options) {
  FF_CHECK_GE(transport.max_tag(), kCollectiveTags);
  FF_CHECK(options.max_message_bytes > 0 && options.max_message_bytes <= INT32_MAX);
  std::vector<int> all(static_cast<size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  groups_.push_back({all, rank, transport.open_context(all), 0});
}

Messages MessageCommunicator::message_to(int64_t bytes, int peer, int tag) const {
  FF_CHECK(peer >= 0 && peer < size_) << "peer " << peer << " of " << size_;
  FF_CHECK_GE(bytes, 0);
  FF_CHECK_GE(tag, 0);
  const int bound = std::min(kMaxTag, transport_.max_tag());
  if (tag > bound) {
    throw RunError("rank " + std::to_string(rank_) + ": message tag " + std::to_string(tag) +
                   " is above the largest that ranks can use here, " + std::to_string(bound));
  }
  return {transport_, {0, tag}, options_.max_message_bytes};
}

Request MessageCommunicator::isend(const void* data, int64_t bytes, int peer, int tag) {
  Messages message = message_to(bytes, peer, tag);
  message.send(data, bytes, peer);
  return start(make_exchange(std::move(message)));
}

Request MessageCommunicator::irecv(void* data, int64_t bytes, int peer, int tag) {
  Messages message = message_to(bytes, peer, tag);
  message.receive(data, bytes, peer);
  return start(make_exchange(std::move(message)));
}

Request MessageCommunicator::start(std::unique_ptr<Operation> operation) {
  if (operation->has_steps()) with_steps_.push_back(operation.get());
  operations_.emplace(next_id_, std::move(operation));
  return {next_id_++};
}

void MessageCommunicator::advance_steps() {
  std::erase_if(with_steps_, [](Operation* operation) { return operation->advance(); });
}

bool MessageCommunicator::test(Request& request) {
  if (request.null()) return true;
  const auto found = operations_.find(request.id);
  FF_CHECK(found != operations_.end()) << "request " << request.id << " is done already";
  Operation* operation = found->second.get();
  // A peer may wait for the next step of another operation than the one that is asked for.
  advance_steps();
  const bool done = operation->has_steps()
                        ? std::find(with_steps_.begin(), with_steps_.end(), operation) == with_steps_.end()
                        : operation->advance();
  if (!done) return false;
  operations_.erase(found);
  request = {};
  return true;
}

void MessageCommunicator::wait(Request& request) {
  for (;;) {
    const int64_t since = transport_.events();
    if (test(request)) return;
    transport_.idle(since);
  }
}

void MessageCommunicator::progress() {
  transport_.poke();
  advance_steps();
}

int MessageCommunicator::add_group(const std::vector<int>& ranks) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].ranks == ranks) return static_cast<int>(g);
  }
  std::vector<int> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  FF_CHECK(!ranks.empty() && sorted.front() >= 0 && sorted.back() < size_);
  FF_CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end()) << "a rank is twice in a group";
  const auto self = std::find(ranks.begin(), ranks.end(), rank_);
  FF_CHECK(self != ranks.end()) << "rank " << rank_ << " makes a group that it is not in";
  groups_.push_back({ranks, static_cast<int>(self - ranks.begin()), transport_.open_context(ranks), 0});
  return static_cast<int>(groups_.size()) - 1;
}

Place MessageCommunicator::next_place(int group) {
  FF_CHECK(group >= 0 && group < static_cast<int>(groups_.size())) << "group " << group;
  Group& g = groups_[static_cast<size_t>(group)];
  const Channel channel{g.context, g.issued};
  g.issued = (g.issued + 1) % kCollectiveTags;
  return {&transport_, channel, g.member, static_cast<int>(g.ranks.size()), options_};
}

Request MessageCommunicator::iall_reduce(int group, const void* in, void* out, int64_t count, DType type,
                                         ReduceOp op) {
  return start(make_all_reduce(next_place(group), in, out, count, type, op));
}

Request MessageCommunicator::ireduce_scatter(int group, const void* in, void* out,
                                             const std::vector<int64_t>& counts, DType type, ReduceOp op) {
  return start(make_reduce_scatter(next_place(group), in, out, counts, type, op));
}

Request MessageCommunicator::iall_gather(int group, const void* in, void* out,
                                         const std::vector<int64_t>& counts, DType type) {
  return start(make_all_gather(next_place(group), in, out, counts, type));
}

Request MessageCommunicator::ibroadcast(int group, void* data, int64_t count, DType type, int root) {
  return start(make_broadcast(next_place(group), data, count * size_of(type), root));
}

Request MessageCommunicator::iall_to_all(int group, const void* in, const std::vector<int64_t>& in_counts,
                                         void* out, const std::vector<int64_t>& out_counts, DType type) {
  return start(make_all_to_all(next_place(group), in, in_counts, out, out_counts, type));
}

void MessageCommunicator::barrier() {
  // Dissemination (Hensgen, Finkel, Manber 1988): after the step of 2^k everybody has heard of 2^(k+1) ranks.
  for (int step = 1; step < size_; step *= 2) {
    Messages messages = next_place(kAllRanks).messages();
    messages.receive(nullptr, 0, (rank_ - step + size_) % size_);
    messages.send(nullptr, 0, (rank_ + step) % size_);
    Request request = start(make_exchange(std::move(messages)));
    wait(request);
  }
}

}  // namespace ff
