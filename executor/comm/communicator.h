// What the ranks of one run say to each other: messages and collectives, all of them non-blocking. The one
// seam between the program interpreter and what connects its ranks: threads of one process
// (thread_communicator.h) or Open MPI (mpi_communicator.h). One conformance suite holds for every
// implementation.
//
//   // rank 0 of 2 gives four floats to rank 1, computes meanwhile, then both add up a gradient
//   Request sent = comm.isend(x, 4 * sizeof(float), /*peer=*/1, /*tag=*/17);   // rank 1: irecv(y, 16, 0, 17)
//   int both = comm.add_group({0, 1});                                         // at load time, by both
//   Request summed = comm.iall_reduce(both, grad, grad, 1000, DType::f32, ReduceOp::sum);
//   compute();  comm.progress();                                               // now and then
//   comm.wait(sent);  comm.wait(summed);                                       // grad: the same bits on both
//
// Rules of use. One thread a rank. A buffer belongs to its request until test or wait has said that it is
// done; a rank that fails with requests in flight calls abort before it frees their buffers. A send may wait
// for its receive: nothing is promised to be buffered. Messages of one sender, receiver and tag arrive in the
// order of their sends. The members of a group issue its collectives in the same order with the same
// arguments. There are no wildcards.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/base/dtype.h"

namespace ff {

enum class ReduceOp : uint8_t { sum, max };

/// Names an operation in flight. A default one, and one that is done, is null: testing it is true at once.
struct Request {
  int64_t id = -1;
  bool null() const { return id < 0; }
};

class Communicator {
 public:
  /// The group of all ranks, in order; it is always there.
  static constexpr int kAllRanks = 0;
  /// Largest tag of a message.
  static constexpr int kMaxTag = 1 << 30;

  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Messages of any size, 0 included, to any rank, oneself included. The receiver must ask for exactly the
  /// bytes that were sent: anything else is a RunError that names the sender (unless it is oneself: Open MPI
  /// cuts a longer message to oneself without a word). A tag above the library's bound is a RunError.
  virtual Request isend(const void* data, int64_t bytes, int peer, int tag) = 0;
  virtual Request irecv(void* data, int64_t bytes, int peer, int tag) = 0;

  /// Whether the operation is done; the request is null after that. Throws RunError if a peer was lost.
  virtual bool test(Request& request) = 0;
  virtual void wait(Request& request) = 0;
  /// Lets operations in flight move on; cheap. For calls between kernels.
  virtual void progress() = 0;

  /// Makes a group of distinct ranks, of which this one is one; members are numbered by their place in the
  /// list. Called by the members, and only by them, with the same list, and in the same order where a rank is
  /// in several. Returns an id that holds on this rank; the same list gives the same id.
  virtual int add_group(const std::vector<int>& ranks) = 0;

  /// out[i] = the sum or maximum of all members' in[i], added up in member order: every member gets the same
  /// bits, those that one thread would get. `in` may be `out`. f64, f32, i64, i32; others are a UserError. A
  /// NaN wins a maximum.
  virtual Request iall_reduce(int group, const void* in, void* out, int64_t count, DType type,
                              ReduceOp op) = 0;
  /// As all-reduce, but member i gets the i-th consecutive segment, of counts[i] elements, alone.
  virtual Request ireduce_scatter(int group, const void* in, void* out, const std::vector<int64_t>& counts,
                                  DType type, ReduceOp op) = 0;
  /// Member i gives counts[i] elements; everybody gets all of them, in member order. `in` may be its place in
  /// `out`.
  virtual Request iall_gather(int group, const void* in, void* out, const std::vector<int64_t>& counts,
                              DType type) = 0;
  /// Everybody gets the data of the member with number `root`.
  virtual Request ibroadcast(int group, void* data, int64_t count, DType type, int root) = 0;
  /// The i-th segment of `in` goes to member i; the i-th segment of `out` comes from it. What a member sends
  /// and its peer expects must agree. `in` and `out` must not overlap.
  virtual Request iall_to_all(int group, const void* in, const std::vector<int64_t>& in_counts, void* out,
                              const std::vector<int64_t>& out_counts, DType type) = 0;
  /// Returns when every rank has come here.
  virtual void barrier() = 0;

  /// This rank failed: ends all ranks, with this exit status and message.
  [[noreturn]] virtual void abort(int status, const std::string& message) = 0;
};

}  // namespace ff
