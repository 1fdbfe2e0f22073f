#include "executor/comm/operations.h"

#include <algorithm>
#include <cstring>

#include "compiler/base/box.h"
#include "compiler/base/check.h"
#include "executor/comm/reduce.h"

namespace ff {
namespace {

const std::byte* at(const void* data, int64_t offset) { return static_cast<const std::byte*>(data) + offset; }
std::byte* at(void* data, int64_t offset) { return static_cast<std::byte*>(data) + offset; }

/// Offsets of consecutive segments, and the whole behind them, in bytes.
std::vector<int64_t> offsets_of(const std::vector<int64_t>& counts, DType type) {
  std::vector<int64_t> offsets{0};
  for (int64_t count : counts) {
    FF_CHECK_GE(count, 0);
    offsets.push_back(offsets.back() + count * size_of(type));
  }
  return offsets;
}

void copy(void* to, const void* from, int64_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, static_cast<size_t>(bytes));
}

/// Buffers of one size for each of the other members.
class Scratch {
 public:
  Scratch() = default;
  Scratch(int buffers, int64_t bytes)
      : bytes_(bytes),
        data_(std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(buffers * bytes))) {}
  std::byte* operator[](int buffer) const { return data_.get() + buffer * bytes_; }

 private:
  int64_t bytes_ = 0;
  std::unique_ptr<std::byte[]> data_;
};

/// The parts of all members in their order: one's own, and the others' in scratch buffers first, first + 1,
/// ...
std::vector<const void*> parts_of(const Place& place, const void* own, const Scratch& scratch, int first) {
  std::vector<const void*> parts;
  for (int m = 0; m < place.members; ++m) parts.push_back(m == place.member ? own : scratch[first++]);
  return parts;
}

class Exchange : public Operation {
 public:
  explicit Exchange(Messages messages) : messages_(std::move(messages)) {}
  bool advance() override { return messages_.done(); }
  bool has_steps() const override { return false; }

 private:
  Messages messages_;
};

class SmallAllReduce : public Operation {
 public:
  SmallAllReduce(const Place& place, const void* in, void* out, int64_t count, DType type, ReduceOp op)
      : place_(place), messages_(place.messages()), in_(in), out_(out), count_(count), type_(type), op_(op) {
    const int64_t bytes = count * size_of(type);
    scratch_ = Scratch(place.members - 1, bytes);
    int buffer = 0;
    for (int m = 0; m < place.members; ++m) {
      if (m == place.member || bytes == 0) continue;
      messages_.receive(scratch_[buffer++], bytes, m);
      messages_.send(in, bytes, m);
    }
  }
  bool advance() override {
    if (!messages_.done()) return false;
    reduce_parts(parts_of(place_, in_, scratch_, 0), type_, op_, out_, count_);
    return true;
  }

 private:
  Place place_;
  Messages messages_;
  const void* in_;
  void* out_;
  int64_t count_;
  DType type_;
  ReduceOp op_;
  Scratch scratch_;
};

struct Reduction {
  const void* in;
  std::byte* own_out;  // where this member's segment goes
  void* gather_out;    // where all segments go, or null for a reduce-scatter
  std::vector<int64_t> counts;
  DType type;
  ReduceOp op;
};

class SegmentReduce : public Operation {
 public:
  SegmentReduce(const Place& place, Reduction reduction)
      : place_(place),
        r_(std::move(reduction)),
        offsets_(offsets_of(r_.counts, r_.type)),
        flights_{place.messages(), place.messages()},
        gathering_(place.messages()) {
    round_ = std::max<int64_t>(1, place.options.round_bytes / size_of(r_.type)) * size_of(r_.type);
    for (int m = 0; m < place.members; ++m) rounds_ = std::max(rounds_, (bytes_of(m) + round_ - 1) / round_);
    scratch_ = Scratch(2 * (place.members - 1), std::min(round_, bytes_of(place.member)));
    post(0);
    post(1);
  }

  bool advance() override {
    while (summed_ < rounds_) {
      if (!flights_[summed_ % 2].done()) return false;
      add_up(summed_);
      post(summed_ + 2);
      ++summed_;
    }
    // Only now are all of one's own segments sent, so that those of the result may take their place.
    if (r_.gather_out != nullptr && !gather_posted_) post_gather();
    return gathering_.done();
  }

 private:
  int64_t bytes_of(int member) const {
    return offsets_[static_cast<size_t>(member) + 1] - offsets_[static_cast<size_t>(member)];
  }
  int64_t offset_of(int member) const { return offsets_[static_cast<size_t>(member)]; }
  int64_t bytes_of(int member, int64_t round) const {
    return std::clamp<int64_t>(bytes_of(member) - round * round_, 0, round_);
  }
  int first_buffer(int64_t round) const { return static_cast<int>(round % 2) * (place_.members - 1); }

  void post(int64_t round) {
    int buffer = first_buffer(round);
    Messages& flight = flights_[round % 2];
    for (int m = 0; m < place_.members; ++m) {
      if (m == place_.member) continue;
      const int64_t mine = bytes_of(place_.member, round);
      const int64_t theirs = bytes_of(m, round);
      if (mine > 0) flight.receive(scratch_[buffer++], mine, m);
      if (theirs > 0) flight.send(at(r_.in, offset_of(m) + round * round_), theirs, m);
    }
  }

  void add_up(int64_t round) {
    const std::byte* own = at(r_.in, offset_of(place_.member) + round * round_);
    reduce_parts(parts_of(place_, own, scratch_, first_buffer(round)), r_.type, r_.op,
                 r_.own_out + round * round_, bytes_of(place_.member, round) / size_of(r_.type));
  }

  void post_gather() {
    gather_posted_ = true;
    for (int m = 0; m < place_.members; ++m) {
      if (m == place_.member) continue;
      if (bytes_of(m) > 0) gathering_.receive(at(r_.gather_out, offset_of(m)), bytes_of(m), m);
      if (bytes_of(place_.member) > 0) gathering_.send(r_.own_out, bytes_of(place_.member), m);
    }
  }

  Place place_;
  Reduction r_;
  std::vector<int64_t> offsets_;
  Messages flights_[2];
  Messages gathering_;
  Scratch scratch_;
  int64_t round_ = 0;
  int64_t rounds_ = 0;
  int64_t summed_ = 0;
  bool gather_posted_ = false;
};

/// Down a binomial tree: with the root as number 0, number v has v without its lowest set bit as parent.
class Broadcast : public Operation {
 public:
  Broadcast(const Place& place, void* data, int64_t bytes, int root)
      : place_(place), messages_(place.messages()), data_(data), bytes_(bytes), root_(root) {
    number_ = (place.member - root + place.members) % place.members;
    if (number_ != 0 && bytes > 0) messages_.receive(data, bytes, member_of(number_ & (number_ - 1)));
  }
  bool advance() override {
    if (!messages_.done()) return false;
    if (!sent_) post_sends();
    return messages_.done();
  }

 private:
  int member_of(int number) const { return (number + root_) % place_.members; }
  void post_sends() {
    sent_ = true;
    if (bytes_ == 0) return;
    const int lowest = number_ == 0 ? place_.members : number_ & -number_;
    int step = 1;
    while (step * 2 < lowest) step *= 2;
    for (; step >= 1; step /= 2) {  // the largest subtree first
      if (step < lowest && number_ + step < place_.members)
        messages_.send(data_, bytes_, member_of(number_ + step));
    }
  }

  Place place_;
  Messages messages_;
  void* data_;
  int64_t bytes_;
  int root_;
  int number_ = 0;
  bool sent_ = false;
};

}  // namespace

void Messages::send(const void* data, int64_t bytes, int peer) {
  int64_t start = 0;
  do {
    const int64_t piece = std::min(max_message_bytes_, bytes - start);
    tickets_.push_back(transport_->send(channel_, at(data, start), piece, peer));
    start += piece;
  } while (start < bytes);
}

void Messages::receive(void* data, int64_t bytes, int peer) {
  int64_t start = 0;
  do {
    const int64_t piece = std::min(max_message_bytes_, bytes - start);
    tickets_.push_back(transport_->receive(channel_, at(data, start), piece, peer));
    start += piece;
  } while (start < bytes);
}

bool Messages::done() {
  // From the back: what was posted last is mostly done last, so that one question is answered for all.
  while (!tickets_.empty()) {
    if (!transport_->done(tickets_.back())) return false;
    tickets_.pop_back();
  }
  return true;
}

std::unique_ptr<Operation> make_exchange(Messages messages) {
  return std::make_unique<Exchange>(std::move(messages));
}

std::unique_ptr<Operation> make_all_reduce(const Place& place, const void* in, void* out, int64_t count,
                                           DType type, ReduceOp op) {
  check_reducible(type);
  FF_CHECK_GE(count, 0);
  if (count * size_of(type) <= place.options.small_bytes) {
    return std::make_unique<SmallAllReduce>(place, in, out, count, type, op);
  }
  std::vector<int64_t> counts;
  int64_t start = 0;
  for (int m = 0; m < place.members; ++m) {
    const Range segment = block(count, place.members, m);
    if (m == place.member) start = segment.lo;
    counts.push_back(segment.size());
  }
  return std::make_unique<SegmentReduce>(
      place, Reduction{in, at(out, start * size_of(type)), out, std::move(counts), type, op});
}

std::unique_ptr<Operation> make_reduce_scatter(const Place& place, const void* in, void* out,
                                               const std::vector<int64_t>& counts, DType type, ReduceOp op) {
  check_reducible(type);
  FF_CHECK_EQ(counts.size(), static_cast<size_t>(place.members));
  return std::make_unique<SegmentReduce>(place, Reduction{in, at(out, 0), nullptr, counts, type, op});
}

std::unique_ptr<Operation> make_all_gather(const Place& place, const void* in, void* out,
                                           const std::vector<int64_t>& counts, DType type) {
  FF_CHECK_EQ(counts.size(), static_cast<size_t>(place.members));
  const std::vector<int64_t> offsets = offsets_of(counts, type);
  Messages messages = place.messages();
  const auto self = static_cast<size_t>(place.member);
  const int64_t own = counts[self] * size_of(type);
  copy(at(out, offsets[self]), in, own);
  for (int m = 0; m < place.members; ++m) {
    const auto i = static_cast<size_t>(m);
    if (m == place.member) continue;
    if (counts[i] > 0) messages.receive(at(out, offsets[i]), counts[i] * size_of(type), m);
    if (own > 0) messages.send(in, own, m);
  }
  return make_exchange(std::move(messages));
}

std::unique_ptr<Operation> make_broadcast(const Place& place, void* data, int64_t bytes, int root) {
  FF_CHECK(root >= 0 && root < place.members) << "root " << root << " of " << place.members;
  return std::make_unique<Broadcast>(place, data, bytes, root);
}

std::unique_ptr<Operation> make_all_to_all(const Place& place, const void* in,
                                           const std::vector<int64_t>& in_counts, void* out,
                                           const std::vector<int64_t>& out_counts, DType type) {
  const auto members = static_cast<size_t>(place.members);
  const auto self = static_cast<size_t>(place.member);
  FF_CHECK_EQ(in_counts.size(), members);
  FF_CHECK_EQ(out_counts.size(), members);
  FF_CHECK_EQ(in_counts[self], out_counts[self]);
  const std::vector<int64_t> from = offsets_of(in_counts, type);
  const std::vector<int64_t> to = offsets_of(out_counts, type);
  Messages messages = place.messages();
  copy(at(out, to[self]), at(in, from[self]), in_counts[self] * size_of(type));
  for (size_t i = 0; i < members; ++i) {
    if (i == self) continue;
    const int peer = static_cast<int>(i);
    if (out_counts[i] > 0) messages.receive(at(out, to[i]), out_counts[i] * size_of(type), peer);
    if (in_counts[i] > 0) messages.send(at(in, from[i]), in_counts[i] * size_of(type), peer);
  }
  return make_exchange(std::move(messages));
}

}  // namespace ff
