#include "executor/runtime/executor.h"

#include <algorithm>
#include <chrono>

#include "compiler/base/check.h"
#include "compiler/base/units.h"

namespace ff {

struct Executor::Step {
  InstructionKind kind;
  std::unique_ptr<Kernel> kernel;
  std::vector<void*> operands;
  void* workspace = nullptr;
  std::vector<int32_t> waits;
  // Messages and collectives.
  int64_t bytes = 0;  // of operand 0
  int64_t count = 0;  // elements of operand 0
  DType dtype = DType::f32;
  int peer = -1, tag = -1, group = -1, root = 0;
  ReduceOp reduce = ReduceOp::sum;
  std::vector<int64_t> counts;
};

struct Executor::Prepared {
  const Entry* entry;
  std::vector<Step> steps;
};

namespace {

std::string instruction_name(const Instruction& in) {
  constexpr const char* kNames[] = {"",           "send",     "receive", "all-reduce", "reduce-scatter",
                                    "all-gather", "broadcast"};
  std::string out = in.kind == InstructionKind::kernel ? in.call.kernel : kNames[static_cast<int>(in.kind)];
  return in.op.empty() ? out : out + " " + in.op;
}

}  // namespace

Executor::Executor(const Program& program, const std::vector<std::vector<int32_t>>& groups,
                   Communicator& comm, const MakeKernel& make_kernel, const ExecutorOptions& options)
    : program_(program),
      comm_(comm),
      options_(options),
      persistent_(program.persistent_bytes, options.fill_nan),
      scratch_(program.scratch_bytes, options.fill_nan) {
  join_groups(groups);
  size_t most = 0;
  for (const Entry& entry : program.entries) {
    prepare(entry, make_kernel);
    most = std::max(most, entry.instructions.size());
  }
  requests_.resize(most);
  in_flight_.resize(most);
  if (options.timed) times_.resize(most);
}

Executor::~Executor() {
  if (outstanding_ == 0) return;
  persistent_.abandon();
  scratch_.abandon();
}

void Executor::join_groups(const std::vector<std::vector<int32_t>>& groups) {
  for (const auto& group : groups) {
    const bool member = std::find(group.begin(), group.end(), comm_.rank()) != group.end();
    groups_.push_back(member ? comm_.add_group({group.begin(), group.end()}) : -1);
  }
}

size_t Executor::entry(std::string_view name) const {
  for (size_t i = 0; i < program_.entries.size(); ++i) {
    if (program_.entries[i].name == name) return i;
  }
  throw UserError("the plan has no entry '" + std::string(name) + "'",
                  "compile the model with another --mode");
}

bool Executor::has_entry(std::string_view name) const {
  return std::any_of(program_.entries.begin(), program_.entries.end(),
                     [&](const Entry& entry) { return entry.name == name; });
}

void* Executor::data(int32_t buffer) const {
  const Buffer& b = program_.buffers[static_cast<size_t>(buffer)];
  return (b.region == Region::persistent ? persistent_ : scratch_).at(b.offset);
}

void Executor::prepare(const Entry& entry, const MakeKernel& make_kernel) {
  auto prepared = std::make_unique<Prepared>();
  prepared->entry = &entry;
  prepared->steps.resize(entry.instructions.size());
  for (at_ = 0; at_ < entry.instructions.size(); ++at_) {
    const Instruction& in = entry.instructions[at_];
    Step& step = prepared->steps[at_];
    step.kind = in.kind;
    step.waits = in.waits;
    for (const int32_t operand : in.operands) step.operands.push_back(operand < 0 ? nullptr : data(operand));
    if (in.kind == InstructionKind::kernel)
      prepare_kernel(in, make_kernel, step);
    else
      prepare_comm(in, step);
  }
  entries_.push_back(std::move(prepared));
}

void Executor::prepare_kernel(const Instruction& in, const MakeKernel& make_kernel, Step& step) {
  step.kernel = make_kernel(in.call);
  const int64_t needed = step.kernel->workspace_bytes();
  const int64_t planned = in.workspace < 0 ? 0 : program_.buffers[static_cast<size_t>(in.workspace)].bytes;
  if (needed > planned) {
    throw UserError("instruction #" + std::to_string(at_) + " (" + instruction_name(in) + ") needs " +
                        format_bytes(needed) + " of workspace here, and the plan has " +
                        format_bytes(planned),
                    "compile the model again with ffcompile on this machine");
  }
  if (in.workspace >= 0) step.workspace = data(in.workspace);
}

void Executor::prepare_comm(const Instruction& in, Step& step) {
  const Buffer& b = program_.buffers[static_cast<size_t>(in.operands.at(0))];
  step.bytes = b.bytes;
  step.count = b.bytes / size_of(b.dtype);
  step.dtype = b.dtype;
  step.peer = in.peer;
  step.tag = in.tag;
  step.root = in.root;
  step.reduce = in.combine_max ? ReduceOp::max : ReduceOp::sum;
  step.counts = in.counts;
  if (in.group < 0) return;
  step.group = groups_.at(static_cast<size_t>(in.group));
  FF_CHECK_GE(step.group, 0) << "rank " << comm_.rank() << " is not in group " << in.group;
}

void Executor::run(size_t entry, const RunContext& context) {
  const Prepared& prepared = *entries_.at(entry);
  at_ = 0;
  try {
    execute(prepared, context);
  } catch (...) {
    rethrow_named(prepared);
  }
}

void Executor::execute(const Prepared& entry, const RunContext& context) {
  kernel_ns_ = 0;
  for (at_ = 0; at_ < entry.steps.size(); ++at_) {
    const Step& step = entry.steps[at_];
    for (const int32_t other : step.waits) wait(static_cast<size_t>(other));
    if (outstanding_ > 0) comm_.progress();
    if (!step.kernel) {
      issue(step, at_);
      continue;
    }
    if (!options_.timed) {
      step.kernel->run(step.operands, step.workspace, context);
      continue;
    }
    times_[at_].start_ns = now();
    step.kernel->run(step.operands, step.workspace, context);
    times_[at_].end_ns = now();
    kernel_ns_ += times_[at_].end_ns - times_[at_].start_ns;
  }
  for (size_t i = 0; i < entry.steps.size() && outstanding_ > 0; ++i) {
    at_ = i;
    wait(i);
  }
}

void Executor::issue(const Step& s, size_t at) {
  if (options_.timed) times_[at].start_ns = now();
  Request& request = requests_[at];
  switch (s.kind) {
    case InstructionKind::send:
      request = comm_.isend(s.operands[0], s.bytes, s.peer, s.tag);
      break;
    case InstructionKind::receive:
      request = comm_.irecv(s.operands[0], s.bytes, s.peer, s.tag);
      break;
    case InstructionKind::all_reduce:
      request = comm_.iall_reduce(s.group, s.operands[0], s.operands[1], s.count, s.dtype, s.reduce);
      break;
    case InstructionKind::reduce_scatter:
      request = comm_.ireduce_scatter(s.group, s.operands[0], s.operands[1], s.counts, s.dtype, s.reduce);
      break;
    case InstructionKind::all_gather:
      request = comm_.iall_gather(s.group, s.operands[0], s.operands[1], s.counts, s.dtype);
      break;
    case InstructionKind::broadcast:
      request = comm_.ibroadcast(s.group, s.operands[0], s.count, s.dtype, s.root);
      break;
    case InstructionKind::kernel:
      break;
  }
  in_flight_[at] = 1;
  ++outstanding_;
}

void Executor::wait(size_t at) {
  if (!in_flight_[at]) return;
  comm_.wait(requests_[at]);
  in_flight_[at] = 0;
  --outstanding_;
  if (options_.timed) times_[at].end_ns = now();
}

void Executor::rethrow_named(const Prepared& entry) const {
  std::string where = "rank " + std::to_string(comm_.rank()) + ": ";
  if (at_ < entry.steps.size()) {
    where += "instruction #" + std::to_string(at_) + " (" + instruction_name(entry.entry->instructions[at_]) +
             "): ";
  }
  try {
    throw;
  } catch (const UserError& error) {
    throw UserError(where + error.what(), error.hint());
  } catch (const RunError& error) {
    throw RunError(where + error.what());
  } catch (const std::bad_alloc&) {
    throw RunError(where + "out of memory");
  } catch (const std::exception& error) {
    throw InternalError(where + error.what());
  }
}

int64_t Executor::now() const {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count() - origin_ns_;
}

}  // namespace ff
