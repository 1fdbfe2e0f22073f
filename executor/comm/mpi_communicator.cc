#include "executor/comm/mpi_communicator.h"

#include <mpi.h>
#include <sched.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "compiler/base/check.h"
#include "executor/comm/message_communicator.h"

namespace ff {
namespace {

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int world_size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

void check_mpi(int code, const std::string& what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw RunError("rank " + std::to_string(world_rank()) + ": " + what + ": " + text);
}

class MpiTransport : public Transport {
 public:
  MpiTransport() {
    // Communicators made of this one inherit that errors are returned.
    check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    contexts_.emplace_back();
    check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &contexts_[0].comm), "MPI_Comm_dup");
    int* bound = nullptr;
    int found = 0;
    check_mpi(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &found), "MPI_Comm_get_attr");
    max_tag_ = found != 0 ? *bound : 32767;  // the least that the standard allows
    for (int r = 0; r < world_size(); ++r) contexts_[0].ranks.push_back(r);
  }
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;
  ~MpiTransport() override {
    for (Context& context : contexts_) {
      if (context.comm != MPI_COMM_NULL) MPI_Comm_free(&context.comm);
    }
  }

  Ticket send(Channel channel, const void* data, int64_t bytes, int peer) override {
    const Ticket ticket = new_ticket({MPI_REQUEST_NULL, channel, bytes, peer, true});
    Flight& flight = flights_[static_cast<size_t>(ticket)];
    check_mpi(
        MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, peer, channel.tag, comm(channel), &flight.request),
        describe(flight));
    return ticket;
  }
  Ticket receive(Channel channel, void* data, int64_t bytes, int peer) override {
    const Ticket ticket = new_ticket({MPI_REQUEST_NULL, channel, bytes, peer, false});
    Flight& flight = flights_[static_cast<size_t>(ticket)];
    check_mpi(
        MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, peer, channel.tag, comm(channel), &flight.request),
        describe(flight));
    return ticket;
  }
  bool done(Ticket ticket) override;
  void poke() override {
    // Nobody sends to oneself on this communicator, so the probe always looks for messages instead of finding
    // one.
    int found = 0;
    MPI_Iprobe(0, 0, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
  }
  int64_t events() override { return 0; }
  void idle(int64_t /*since*/) override {
    if (++idle_polls_ % 64 == 0) sched_yield();
  }
  int open_context(const std::vector<int>& ranks) override;
  int max_tag() const override { return max_tag_; }

 private:
  struct Context {
    MPI_Comm comm = MPI_COMM_NULL;
    std::vector<int> ranks;
  };
  struct Flight {
    MPI_Request request;
    Channel channel;
    int64_t bytes;
    int peer;
    bool sends;
  };
  MPI_Comm comm(Channel channel) const { return contexts_[static_cast<size_t>(channel.context)].comm; }
  Ticket new_ticket(const Flight& flight) {
    if (free_.empty()) {
      flights_.push_back(flight);
      return static_cast<Ticket>(flights_.size()) - 1;
    }
    const Ticket ticket = free_.back();
    free_.pop_back();
    flights_[static_cast<size_t>(ticket)] = flight;
    return ticket;
  }
  std::string describe(const Flight& flight) const {
    const Context& context = contexts_[static_cast<size_t>(flight.channel.context)];
    return std::string(flight.sends ? "sending " : "receiving ") + std::to_string(flight.bytes) + " bytes " +
           (flight.sends ? "to" : "from") + " rank " +
           std::to_string(context.ranks[static_cast<size_t>(flight.peer)]) +
           (flight.channel.context == 0 ? " with tag " : " in collective ") +
           std::to_string(flight.channel.tag);
  }

  std::vector<Context> contexts_;
  std::vector<Flight> flights_;
  std::vector<Ticket> free_;
  int max_tag_ = 0;
  unsigned idle_polls_ = 0;
};

bool MpiTransport::done(Ticket ticket) {
  Flight& flight = flights_[static_cast<size_t>(ticket)];
  int done = 0;
  MPI_Status status;
  const int code = MPI_Test(&flight.request, &done, &status);
  if (code != MPI_SUCCESS) check_mpi(code, describe(flight));
  if (done == 0) return false;
  if (!flight.sends) {
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    if (bytes != flight.bytes) {
      throw RunError("rank " + std::to_string(world_rank()) + ": " + describe(flight) + ": it sent " +
                     std::to_string(bytes));
    }
  }
  free_.push_back(ticket);
  return true;
}

int MpiTransport::open_context(const std::vector<int>& ranks) {
  Context context;
  context.ranks = ranks;
  const int id = static_cast<int>(contexts_.size());
  if (ranks.size() > 1) {
    MPI_Group world = MPI_GROUP_NULL;
    MPI_Group group = MPI_GROUP_NULL;
    check_mpi(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
    check_mpi(MPI_Group_incl(world, static_cast<int>(ranks.size()), ranks.data(), &group), "MPI_Group_incl");
    check_mpi(MPI_Comm_create_group(MPI_COMM_WORLD, group, /*tag=*/0, &context.comm),
              "making a group of ranks");
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    check_mpi(MPI_Comm_set_errhandler(context.comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  }
  contexts_.push_back(std::move(context));
  return id;
}

/// A base that is made before the communicator, which needs it.
struct TransportHolder {
  MpiTransport transport;
};

class MpiCommunicator : private TransportHolder, public MessageCommunicator {
 public:
  explicit MpiCommunicator(const MessageOptions& options)
      : MessageCommunicator(world_rank(), world_size(), transport, options) {}
  [[noreturn]] void abort(int status, const std::string& message) override {
    std::fputs((message.ends_with("\n") ? message : message + "\n").c_str(), stderr);
    std::fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, status);
    std::terminate();
  }
};

}  // namespace

struct MpiRuntime::Impl {
  std::unique_ptr<MpiCommunicator> world;
};

MpiRuntime::MpiRuntime(int* argc, char*** argv, const MessageOptions& options)
    : impl_(std::make_unique<Impl>()) {
  int provided = 0;
  if (MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
    throw RunError("MPI does not start");
  if (provided < MPI_THREAD_FUNNELED) throw RunError("this MPI does not allow a rank to have other threads");
  impl_->world = std::make_unique<MpiCommunicator>(options);
}

MpiRuntime::~MpiRuntime() {
  // With messages in flight MPI_Finalize would wait for peers that wait for us.
  if (std::uncaught_exceptions() > 0) MPI_Abort(MPI_COMM_WORLD, 3);
  impl_->world.reset();
  MPI_Finalize();
}

Communicator& MpiRuntime::world() { return *impl_->world; }

int MpiRuntime::run(const char* program, const std::function<int(Communicator&)>& body) {
  try {
    return body(world());
  } catch (...) {
    const bool alone = world().size() == 1;
    const std::string name = alone ? program : program + (": rank " + std::to_string(world().rank()));
    std::string message;
    const int status = describe_current_exception(name.c_str(), message);
    if (!alone) world().abort(status, message);
    std::fputs(message.c_str(), stderr);
    return status;
  }
}

}  // namespace ff
