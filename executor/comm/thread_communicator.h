// Ranks as threads of one process, for tests and debugging. Stricter than MPI, to find in a test what would
// go wrong on a cluster: a send is done only when its receive was posted (nothing is buffered), and when
// every rank waits for a message that cannot come the run ends with an error that says who waits for what,
// instead of hanging.
//
//   run_threads(3, [](Communicator& comm) {
//     float x = comm.rank();
//     Request sum = comm.iall_reduce(Communicator::kAllRanks, &x, &x, 1, DType::f32, ReduceOp::sum);
//     comm.wait(sum);                                        // x == 3 on every rank
//   });
//
// When a rank throws, every other one that tests, waits or sends gets a RunError "rank 1 failed: <its
// message>".
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "executor/comm/communicator.h"
#include "executor/comm/operations.h"

namespace ff {

struct ThreadWorldOptions {
  MessageOptions messages;
  uint64_t yield_seed = 0;  // other than 0: ranks pause at random places, so that they interleave in new ways
};

class ThreadWorld {
 public:
  explicit ThreadWorld(int size, const ThreadWorldOptions& options = {});
  ~ThreadWorld();
  ThreadWorld(const ThreadWorld&) = delete;
  ThreadWorld& operator=(const ThreadWorld&) = delete;

  /// The communicator of a rank, for one thread; its abort fails the world and throws RunError.
  Communicator& rank(int rank);
  /// The rank failed: ends every other one with an error. The first failure counts.
  void fail(int rank, const std::string& message);
  /// The rank will say nothing more: whoever waits for it waits in vain.
  void finish(int rank);
  /// The rank that failed first, or -1, and its message.
  std::pair<int, std::string> failure() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Runs `body` once for each of `size` ranks, each in its thread, and returns when all have ended. If ranks
/// throw, throws the error of the first that did, of the same kind, with "rank N: " before its message.
void run_threads(int size, const std::function<void(Communicator&)>& body,
                 const ThreadWorldOptions& options = {});

}  // namespace ff
