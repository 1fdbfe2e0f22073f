// Communicator over a Transport: keeps the operations in flight and the groups, and starts the state machines
// of operations.h. Both implementations are this class with a transport of their own.
#pragma once

#include <memory>
#include <unordered_map>

#include "executor/comm/communicator.h"
#include "executor/comm/operations.h"

namespace ff {

class MessageCommunicator : public Communicator {
 public:
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Request isend(const void* data, int64_t bytes, int peer, int tag) override;
  Request irecv(void* data, int64_t bytes, int peer, int tag) override;
  bool test(Request& request) override;
  void wait(Request& request) override;
  void progress() override;
  int add_group(const std::vector<int>& ranks) override;
  Request iall_reduce(int group, const void* in, void* out, int64_t count, DType type, ReduceOp op) override;
  Request ireduce_scatter(int group, const void* in, void* out, const std::vector<int64_t>& counts,
                          DType type, ReduceOp op) override;
  Request iall_gather(int group, const void* in, void* out, const std::vector<int64_t>& counts,
                      DType type) override;
  Request ibroadcast(int group, void* data, int64_t count, DType type, int root) override;
  Request iall_to_all(int group, const void* in, const std::vector<int64_t>& in_counts, void* out,
                      const std::vector<int64_t>& out_counts, DType type) override;
  void barrier() override;

 protected:
  /// Opens the group of all ranks. Context 0 of the transport is that of isend and irecv.
  MessageCommunicator(int rank, int size, Transport& transport, const MessageOptions& options);

 private:
  struct Group {
    std::vector<int> ranks;
    int member;
    int context;
    int issued;
  };
  Messages message_to(int64_t bytes, int peer, int tag) const;
  /// Where the next collective of a group runs.
  Place next_place(int group);
  Request start(std::unique_ptr<Operation> operation);
  void advance_steps();

  int rank_;
  int size_;
  Transport& transport_;
  MessageOptions options_;
  std::vector<Group> groups_;
  std::unordered_map<int64_t, std::unique_ptr<Operation>> operations_;
  std::vector<Operation*> with_steps_;  // in the order of issue, until they are done
  int64_t next_id_ = 0;
};

}  // namespace ff
