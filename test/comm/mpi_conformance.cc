// The conformance suite as a program for mpirun, and ways to fail:
//
//   mpirun -n 3 test_comm_mpi [conform|pieces|large|throw|check|kill]
//
// conform, pieces: the suite, with the usual limits and with ones so low that everything goes in pieces;
// large: a message of more than 2^31 bytes (takes 2.1 GB a rank); throw, check, kill: rank 1 ends by an
// error, a check or a signal while the others wait for it.
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "compiler/base/check.h"
#include "executor/comm/mpi_communicator.h"
#include "test/comm/conformance.h"

using namespace ff;

namespace {

void fail_on_rank_1(Communicator& comm, const std::string& how) {
  if (comm.rank() == 1) {
    if (how == "throw") throw RunError("no more disk space");
    FF_CHECK(how != "check");
    std::raise(SIGKILL);
  }
  int word = 0;
  Request never = comm.irecv(&word, 4, 1, 0);
  comm.wait(never);
}

void send_large_message(Communicator& comm) {
  const int64_t bytes = (int64_t{1} << 31) + 4097;
  std::vector<uint8_t> data(static_cast<size_t>(bytes), static_cast<uint8_t>(comm.rank() + 1));
  if (comm.rank() == 0) data.back() = 77;
  Request request =
      comm.rank() == 0 ? comm.isend(data.data(), bytes, 1, 1) : comm.irecv(data.data(), bytes, 0, 1);
  comm.wait(request);
  for (int64_t i = 0; i + 1 < bytes; ++i) FF_CHECK_EQ(int{data[static_cast<size_t>(i)]}, 1) << "byte " << i;
  FF_CHECK_EQ(int{data.back()}, 77);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "conform";
  MessageOptions options;
  if (mode == "pieces") options = {/*max_message_bytes=*/1000, /*small_bytes=*/64, /*round_bytes=*/3000};
  MpiRuntime mpi(&argc, &argv, options);
  return mpi.run("test_comm_mpi", [&](Communicator& comm) {
    if (mode == "conform" || mode == "pieces") {
      conformance(comm);
    } else if (mode == "large") {
      send_large_message(comm);
    } else {
      fail_on_rank_1(comm, mode);
    }
    const auto launched = launcher_world_size();
    if (launched) FF_CHECK_EQ(*launched, comm.size());
    comm.barrier();
    if (comm.rank() == 0) std::printf("%d ranks conform\n", comm.size());
    return 0;
  });
}
