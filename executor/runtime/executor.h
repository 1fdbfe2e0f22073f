// Executes one rank's program: instructions in their order, each after what it waits for.
//
//   Executor executor(plan.programs[p], plan.groups, comm, make_kernel, {});
//   float* w = static_cast<float*>(executor.data(3));   // buffer 3, to be filled by its owner
//   executor.run(executor.entry("train_step"), context); // one step
//
// Everything that can be decided before the first step is: kernels, pointers, communicators. A step allocates
// nothing. One thread executes; messages and collectives are posted without blocking and are moved on between
// kernels as long as one is in flight; the end of an entry waits for the rest.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "compiler/plan/plan.h"
#include "executor/comm/communicator.h"
#include "executor/kernels/kernel.h"
#include "executor/runtime/arena.h"

namespace ff {

using MakeKernel = std::function<std::unique_ptr<Kernel>(const KernelCall&)>;

struct ExecutorOptions {
  bool fill_nan = false;  // memory starts as NaN, so that reading what was not written shows
  bool timed = false;     // keep the times of every instruction of the last run
};

/// When an instruction ran, in nanoseconds since Executor::set_origin; of an asynchronous one: from its issue
/// until it was seen complete.
struct InstructionTime {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

class Executor {
 public:
  /// `program` must outlive this. Makes the communicators of this rank's groups, in the plan's order, and all
  /// kernels. UserError naming the recompile if a kernel needs more workspace than the plan has for it.
  Executor(const Program& program, const std::vector<std::vector<int32_t>>& groups, Communicator& comm,
           const MakeKernel& make_kernel, const ExecutorOptions& options);
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  ~Executor();

  const Program& program() const { return program_; }
  /// The number of an entry; a UserError if the plan has none of this name.
  size_t entry(std::string_view name) const;
  bool has_entry(std::string_view name) const;
  /// Runs an entry once. What an instruction throws is thrown again, of the same kind, with
  /// "rank 1: instruction #12 (conv conv1): " before its message.
  void run(size_t entry, const RunContext& context);

  /// Where a buffer lies.
  void* data(int32_t buffer) const;
  /// Of the last run of a timed executor, an element an instruction of its entry.
  const std::vector<InstructionTime>& times() const { return times_; }
  /// Nanoseconds of the last run that were spent inside kernels; 0 unless timed.
  int64_t kernel_ns() const { return kernel_ns_; }
  void set_origin(int64_t steady_ns) { origin_ns_ = steady_ns; }

 private:
  struct Step;
  struct Prepared;

  void join_groups(const std::vector<std::vector<int32_t>>& groups);
  void prepare(const Entry& entry, const MakeKernel& make_kernel);
  void prepare_kernel(const Instruction& instruction, const MakeKernel& make_kernel, Step& step);
  void prepare_comm(const Instruction& instruction, Step& step);
  void execute(const Prepared& entry, const RunContext& context);
  void issue(const Step& step, size_t at);
  void wait(size_t at);
  [[noreturn]] void rethrow_named(const Prepared& entry) const;
  int64_t now() const;

  const Program& program_;
  Communicator& comm_;
  ExecutorOptions options_;
  Arena persistent_;
  Arena scratch_;
  std::vector<int> groups_;  // the communicator's ids; -1 where this rank is no member
  std::vector<std::unique_ptr<Prepared>> entries_;
  std::vector<Request> requests_;  // of the running entry's instructions
  std::vector<char> in_flight_;    // likewise
  int64_t outstanding_ = 0;
  size_t at_ = 0;  // the instruction that is being executed, for messages
  std::vector<InstructionTime> times_;
  int64_t kernel_ns_ = 0;
  int64_t origin_ns_ = 0;
};

}  // namespace ff
