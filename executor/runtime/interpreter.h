// The interpreter: runs one rank's program. Kernels run in the program's order on one thread; messages and
// collectives are issued without blocking and waited for where the program says, so that they overlap what
// runs in between.
//
//   Interpreter run(plan.programs[0], plan.groups, comm, make_kernel);
//   load_parameters(plan.parameters, run, loader);
//   run.execute("train_step", context);
//
// What can be decided before the first step is decided then: kernels, pointers, groups. A step allocates
// nothing.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/plan/plan.h"
#include "executor/comm/communicator.h"
#include "executor/kernels/kernel.h"
#include "executor/runtime/arena.h"

namespace ff {

using KernelFactory = std::function<std::unique_ptr<Kernel>(const KernelCall&)>;

struct InterpreterOptions {
  bool fill_nan = false;  // both regions start as NaN: what is read before it is written shows
  bool time_instructions = false;
};

/// What one instruction took, in the last execution that was timed. Of a message or a collective: from its
/// issue until an instruction had waited for it.
struct InstructionTiming {
  int64_t start_ns = 0;  // since the entry's start
  int64_t duration_ns = 0;
};

class Interpreter {
 public:
  /// Allocates exactly the program's arena and makes all its kernels. UserError if a kernel needs more
  /// workspace than the plan gives it (another library version): the plan must be compiled again. `program`
  /// and `comm` must outlive this.
  Interpreter(const Program& program, const std::vector<std::vector<int32_t>>& groups, Communicator& comm,
              const KernelFactory& make_kernel, InterpreterOptions options = {});
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;
  ~Interpreter();

  /// Runs an entry once. What an instruction throws is rethrown as its own kind with "rank 1: instruction #12
  /// (Conv conv1): " before it.
  void execute(const std::string& entry, const RunContext& context);

  const Program& program() const { return program_; }
  const Entry& entry(const std::string& name) const;
  bool has_entry(const std::string& name) const;
  void* data(int32_t buffer) { return pointer(buffer); }
  /// By instruction of the entry that ran last; empty unless options.time_instructions.
  const std::vector<InstructionTiming>& timings() const { return timings_; }
  /// When the last timed execution began, on the steady clock.
  int64_t began_ns() const { return began_ns_; }
  /// Time inside kernels and communication calls in the last execution, if timed; the rest is the
  /// interpreter's own.
  int64_t busy_ns() const { return busy_ns_; }

 private:
  struct Prepared {
    const Instruction* instruction = nullptr;
    std::unique_ptr<Kernel> kernel;
    std::vector<void*> operands;
    void* workspace = nullptr;
    int group = -1;  // of the communicator
    Request request;
  };
  struct PreparedEntry {
    const Entry* entry = nullptr;
    std::vector<Prepared> instructions;
  };

  void* pointer(int32_t buffer);
  void prepare(PreparedEntry& out, const KernelFactory& make_kernel);
  void run_all(PreparedEntry& entry, const RunContext& context, size_t& at);
  void run_timed(PreparedEntry& entry, const RunContext& context, size_t& at);
  void run_one(Prepared& p, const RunContext& context);
  void complete(PreparedEntry& entry, size_t instruction);
  void issue(Prepared& p);
  [[noreturn]] void rethrow(size_t index, const Instruction& instruction) const;

  const Program& program_;
  Communicator& comm_;
  InterpreterOptions options_;
  Arena persistent_, scratch_;
  std::vector<int> groups_;  // of the communicator, by group of the plan; -1: this rank is no member
  std::vector<PreparedEntry> entries_;
  std::vector<InstructionTiming> timings_;
  int64_t outstanding_ = 0;  // messages and collectives in flight
  int64_t began_ns_ = 0;
  int64_t busy_ns_ = 0;
};

}  // namespace ff
