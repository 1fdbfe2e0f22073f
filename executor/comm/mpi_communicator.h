// Ranks as processes of one Open MPI job.
//
//   int main(int argc, char** argv) {
//     MpiRuntime mpi(&argc, &argv);
//     return mpi.run("ffrun", [&](Communicator& comm) { return train(comm); });
//   }
//
// MPI moves messages only inside its calls: call progress between kernels. Waiting ranks poll, and give their
// core away between polls; start more ranks than cores with --mca mpi_yield_when_idle 1 --bind-to none. A
// rank that is killed takes the job with it: mpirun notices, says which rank and signal, and ends the others.
// A rank that fails by itself calls abort, which does the same with a message of ours.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "executor/comm/communicator.h"
#include "executor/comm/operations.h"

namespace ff {

/// MPI from its start to its end; one a process.
class MpiRuntime {
 public:
  MpiRuntime(int* argc, char*** argv, const MessageOptions& options = {});
  ~MpiRuntime();
  MpiRuntime(const MpiRuntime&) = delete;
  MpiRuntime& operator=(const MpiRuntime&) = delete;

  Communicator& world();
  /// Runs `body` and returns its status. What it throws is printed as `program`'s error and ends all ranks,
  /// with the exit status of its kind (check.h).
  int run(const char* program, const std::function<int(Communicator&)>& body);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// How many ranks the launcher that started this process says there are, if one did. More than the world's
/// size means that MPI does not understand the launcher, and that every process believes to be alone.
std::optional<int> launcher_world_size();

}  // namespace ff
