// Operations in flight: each a small state machine over messages. Written once, over a Transport that can
// send and receive, so that ranks as threads and ranks under MPI run the same algorithms and get the same
// bits.
//
// All-reduce of 10 elements over 2 members: member 0 receives the other's elements 0..4 and sends its
// own 5..9, adds up in member order, and then the two halves are exchanged. Every element is added up in one
// place and copied. Both halves travel in rounds, of which two are in flight, so that the room for what is
// received is small and what is added up was just written. Few bytes are sent to everybody instead, and added
// up by all in the same order: one latency, not two.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "executor/comm/communicator.h"

namespace ff {

/// What a message is matched by, beside its sender and receiver: a context that no other group shares, and a
/// tag.
struct Channel {
  int context = 0;
  int tag = 0;
};

/// Sends and receives of one implementation. `peer` is a number within the channel's context.
class Transport {
 public:
  using Ticket = int64_t;
  virtual ~Transport() = default;
  virtual Ticket send(Channel channel, const void* data, int64_t bytes, int peer) = 0;
  virtual Ticket receive(Channel channel, void* data, int64_t bytes, int peer) = 0;
  /// Whether the message is done; its ticket ends with that.
  virtual bool done(Ticket ticket) = 0;
  /// Lets messages in flight move on.
  virtual void poke() = 0;
  /// A count of what has happened to this rank's messages, and a pause until it is no longer `since`, or
  /// shorter.
  virtual int64_t events() = 0;
  virtual void idle(int64_t since) = 0;
  /// Makes a context for these ranks, which all call this in the same order.
  virtual int open_context(const std::vector<int>& ranks) = 0;
  virtual int max_tag() const = 0;
};

struct MessageOptions {
  int64_t max_message_bytes = int64_t{1} << 30;  // longer messages go in pieces (MPI counts in int)
  int64_t small_bytes = 16 << 10;                // all-reduces up to this size are sent to everybody
  int64_t round_bytes = 256 << 10;  // what a member sends to one other in one round of a reduction
};

/// Messages of one channel that are waited for together.
class Messages {
 public:
  Messages(Transport& transport, Channel channel, int64_t max_message_bytes)
      : transport_(&transport), channel_(channel), max_message_bytes_(max_message_bytes) {}
  void send(const void* data, int64_t bytes, int peer);
  void receive(void* data, int64_t bytes, int peer);
  bool done();

 private:
  Transport* transport_;
  Channel channel_;
  int64_t max_message_bytes_;
  std::vector<Transport::Ticket> tickets_;
};

class Operation {
 public:
  virtual ~Operation() = default;
  /// Does what can be done now; whether all is.
  virtual bool advance() = 0;
  /// Whether it has steps of its own, for which somebody must call advance.
  virtual bool has_steps() const { return true; }
};

/// Where a collective runs: this rank's place among the members, and the channel for this one operation.
struct Place {
  Transport* transport;
  Channel channel;
  int member;
  int members;
  MessageOptions options;

  Messages messages() const { return {*transport, channel, options.max_message_bytes}; }
};

std::unique_ptr<Operation> make_exchange(Messages messages);
std::unique_ptr<Operation> make_all_reduce(const Place& place, const void* in, void* out, int64_t count,
                                           DType type, ReduceOp op);
std::unique_ptr<Operation> make_reduce_scatter(const Place& place, const void* in, void* out,
                                               const std::vector<int64_t>& counts, DType type, ReduceOp op);
std::unique_ptr<Operation> make_all_gather(const Place& place, const void* in, void* out,
                                           const std::vector<int64_t>& counts, DType type);
std::unique_ptr<Operation> make_broadcast(const Place& place, void* data, int64_t bytes, int root);
std::unique_ptr<Operation> make_all_to_all(const Place& place, const void* in,
                                           const std::vector<int64_t>& in_counts, void* out,
                                           const std::vector<int64_t>& out_counts, DType type);

}  // namespace ff
