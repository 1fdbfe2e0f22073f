#include "executor/comm/thread_communicator.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "compiler/base/check.h"
#include "executor/comm/mpi_communicator.h"
#include "executor/comm/reduce.h"
#include "test/catch.h"
#include "test/comm/conformance.h"

using namespace ff;

namespace {

/// Limits so low that small data go in many pieces and rounds.
ThreadWorldOptions small_pieces(uint64_t yield_seed) {
  ThreadWorldOptions options;
  options.messages = {/*max_message_bytes=*/1000, /*small_bytes=*/64, /*round_bytes=*/3000};
  options.yield_seed = yield_seed;
  return options;
}

/// The message of the error that a run of `size` ranks ends with.
template <typename Error>
std::string error_of(int size, const std::function<void(Communicator&)>& body) {
  try {
    run_threads(size, body);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error of this type";
}

}  // namespace

TEST_CASE("one rank as a thread conforms") { run_threads(1, conformance); }
TEST_CASE("two ranks as threads conform") { run_threads(2, conformance); }
TEST_CASE("three ranks as threads conform") { run_threads(3, conformance); }
TEST_CASE("five ranks as threads conform") { run_threads(5, conformance); }

TEST_CASE("ranks that pause at random and send in small pieces conform") {
  for (const int size : {1, 2, 3, 5}) {
    INFO(size << " ranks");
    run_threads(size, conformance, small_pieces(static_cast<uint64_t>(size)));
  }
}

TEST_CASE("a rank that throws ends all ranks with an error that names it") {
  std::vector<std::string> seen(4);
  const auto body = [&](Communicator& comm) {
    if (comm.rank() == 2) throw UserError("data.npy: no such file", "give a file");
    int word = 0;
    try {
      switch (comm.rank()) {  // in a wait, a barrier, and a loop of tests
        case 0: {
          Request request = comm.irecv(&word, 4, 2, 0);
          comm.wait(request);
          break;
        }
        case 1:
          comm.barrier();
          break;
        default: {
          Request request = comm.irecv(&word, 4, 2, 0);
          while (!comm.test(request)) comm.progress();
        }
      }
    } catch (const RunError& e) {
      seen[static_cast<size_t>(comm.rank())] = e.what();
      throw;
    }
  };
  CHECK(error_of<UserError>(4, body) == "rank 2: data.npy: no such file");
  for (const size_t rank : {0, 1, 3}) CHECK(seen[rank] == "rank 2 failed: data.npy: no such file");
}

TEST_CASE("abort ends all ranks with its message") {
  const auto body = [](Communicator& comm) {
    if (comm.rank() == 1) comm.abort(3, "out of memory");
    comm.barrier();
  };
  CHECK(error_of<RunError>(3, body) == "rank 1: out of memory");
}

TEST_CASE("ranks that all wait for each other end with an error that says for what") {
  const auto body = [](Communicator& comm) {
    std::vector<char> data(8);
    const int other = 1 - comm.rank();
    Request send = comm.isend(data.data(), 8, other, 4 + comm.rank());
    comm.wait(send);  // nobody has posted a receive
    Request receive = comm.irecv(data.data(), 8, other, 4 + other);
    comm.wait(receive);
  };
  const std::string message = error_of<RunError>(2, body);
  CHECK(message.find("rank 0 sends 8 bytes to rank 1 with tag 4") != std::string::npos);
  CHECK(message.find("rank 1 sends 8 bytes to rank 0 with tag 5") != std::string::npos);
}

TEST_CASE("waiting for a rank that has ended is an error") {
  const auto body = [](Communicator& comm) {
    int word = 0;
    if (comm.rank() == 1) return;
    Request receive = comm.irecv(&word, 4, 1, 6);
    comm.wait(receive);
  };
  CHECK(error_of<RunError>(2, body).find("rank 0 awaits 4 bytes from rank 1 with tag 6") !=
        std::string::npos);
}

TEST_CASE("a group that its maker is not in is refused") {
  CHECK_THROWS_AS(run_threads(3, [](Communicator& comm) { (void)comm.add_group({(comm.rank() + 1) % 3}); }),
                  InternalError);
}

TEST_CASE("parts are added up in their order and the result may replace one") {
  // 1e8 + 1 is 1e8 in single precision, so that the order shows.
  std::vector<float> a(3000, 1e8F), b(3000, 1.0F), c(3000, -1e8F);
  const void* parts[] = {a.data(), b.data(), c.data()};
  reduce_parts(parts, DType::f32, ReduceOp::sum, c.data(), 3000);
  CHECK(c == std::vector<float>(3000, 0.0F));
  std::vector<float> d(3000, -1e8F);
  const void* other[] = {a.data(), d.data(), b.data()};
  reduce_parts(other, DType::f32, ReduceOp::sum, a.data(), 3000);
  CHECK(a == std::vector<float>(3000, 1.0F));
}

TEST_CASE("the launcher's number of ranks is read from its variables") {
  const std::vector<const char*> variables{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS",
                                           "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"};
  for (const char* variable : variables) unsetenv(variable);
  CHECK(!launcher_world_size());
  for (const char* variable : variables) {
    setenv(variable, "4", 1);
    CHECK(launcher_world_size() == 4);
    setenv(variable, "four", 1);
    CHECK(!launcher_world_size());
    unsetenv(variable);
  }
}
