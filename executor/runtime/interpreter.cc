#include "executor/runtime/interpreter.h"

#include <algorithm>
#include <chrono>
#include <new>

#include "compiler/base/check.h"
#include "compiler/base/units.h"

namespace ff {
namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string describe(const Instruction& i) {
  constexpr const char* kNames[] = {"kernel",         "send",       "receive",  "all_reduce",
                                    "reduce_scatter", "all_gather", "broadcast"};
  const std::string what =
      i.kind == InstructionKind::kernel ? i.call.kernel : kNames[static_cast<int>(i.kind)];
  return what + " " + i.op;
}

}  // namespace

Interpreter::Interpreter(const Program& program, const std::vector<std::vector<int32_t>>& groups,
                         Communicator& comm, const KernelFactory& make_kernel, InterpreterOptions options)
    : program_(program),
      comm_(comm),
      options_(options),
      persistent_(program.persistent_bytes, options.fill_nan),
      scratch_(program.scratch_bytes, options.fill_nan) {
  for (const auto& group : groups) {
    const bool member = std::find(group.begin(), group.end(), comm.rank()) != group.end();
    groups_.push_back(member ? comm.add_group({group.begin(), group.end()}) : -1);
  }
  entries_.resize(program.entries.size());
  for (size_t e = 0; e < entries_.size(); ++e) {
    entries_[e].entry = &program.entries[e];
    prepare(entries_[e], make_kernel);
  }
}

Interpreter::~Interpreter() {
  // After a failure a peer may still read or write what is in flight.
  for (const PreparedEntry& entry : entries_) {
    for (const Prepared& p : entry.instructions) {
      if (p.request.null()) continue;
      persistent_.abandon();
      scratch_.abandon();
    }
  }
}

void* Interpreter::pointer(int32_t buffer) {
  if (buffer < 0) return nullptr;
  const Buffer& b = program_.buffers[static_cast<size_t>(buffer)];
  const Arena& arena = b.region == Region::persistent ? persistent_ : scratch_;
  FF_CHECK_LE(b.offset + b.bytes, arena.bytes()) << "buffer " << buffer << " of " << b.tensor;
  return arena.at(b.offset);
}

void Interpreter::prepare(PreparedEntry& out, const KernelFactory& make_kernel) {
  for (size_t i = 0; i < out.entry->instructions.size(); ++i) {
    const Instruction& instruction = out.entry->instructions[i];
    Prepared p;
    p.instruction = &instruction;
    for (int32_t b : instruction.operands) p.operands.push_back(pointer(b));
    p.workspace = pointer(instruction.workspace);
    if (instruction.group >= 0) p.group = groups_[static_cast<size_t>(instruction.group)];
    if (instruction.kind == InstructionKind::kernel) {
      try {
        p.kernel = make_kernel(instruction.call);
      } catch (...) {
        rethrow(i, instruction);
      }
      const int64_t planned =
          instruction.workspace < 0 ? 0 : program_.buffers[static_cast<size_t>(instruction.workspace)].bytes;
      if (p.kernel->workspace_bytes() > planned) {
        throw UserError(
            "kernel " + describe(instruction) + " needs " + format_bytes(p.kernel->workspace_bytes()) +
                " of workspace here, the plan gives it " + format_bytes(planned),
            "the plan was made with other libraries: compile it again with ffcompile on this machine");
      }
    }
    out.instructions.push_back(std::move(p));
  }
}

const Entry& Interpreter::entry(const std::string& name) const {
  for (const Entry& e : program_.entries) {
    if (e.name == name) return e;
  }
  throw UserError("the plan has no entry '" + name + "'");
}

bool Interpreter::has_entry(const std::string& name) const {
  return std::any_of(program_.entries.begin(), program_.entries.end(),
                     [&](const Entry& e) { return e.name == name; });
}

void Interpreter::issue(Prepared& p) {
  const Instruction& i = *p.instruction;
  const Buffer& first = program_.buffers[static_cast<size_t>(i.operands[0])];
  const ReduceOp op = i.combine_max ? ReduceOp::max : ReduceOp::sum;
  switch (i.kind) {
    case InstructionKind::send:
      p.request = comm_.isend(p.operands[0], first.bytes, i.peer, i.tag);
      break;
    case InstructionKind::receive:
      p.request = comm_.irecv(p.operands[0], first.bytes, i.peer, i.tag);
      break;
    case InstructionKind::all_reduce:
      p.request = comm_.iall_reduce(p.group, p.operands[0], p.operands[1], first.bytes / size_of(first.dtype),
                                    first.dtype, op);
      break;
    case InstructionKind::reduce_scatter:
      p.request = comm_.ireduce_scatter(p.group, p.operands[0], p.operands[1], i.counts, first.dtype, op);
      break;
    case InstructionKind::all_gather:
      p.request = comm_.iall_gather(p.group, p.operands[0], p.operands[1], i.counts, first.dtype);
      break;
    case InstructionKind::broadcast:
      p.request =
          comm_.ibroadcast(p.group, p.operands[0], first.bytes / size_of(first.dtype), first.dtype, i.root);
      break;
    case InstructionKind::kernel:
      break;
  }
}

void Interpreter::run_one(Prepared& p, const RunContext& context) {
  if (p.kernel) {
    p.kernel->run(p.operands, p.workspace, context);
  } else {
    issue(p);
    ++outstanding_;
  }
}

void Interpreter::complete(PreparedEntry& entry, size_t instruction) {
  Request& request = entry.instructions[instruction].request;
  if (request.null()) return;
  comm_.wait(request);
  --outstanding_;
  if (!options_.time_instructions) return;
  InstructionTiming& timing = timings_[instruction];
  timing.duration_ns = now_ns() - began_ns_ - timing.start_ns;
}

void Interpreter::rethrow(size_t index, const Instruction& instruction) const {
  const std::string where = "rank " + std::to_string(comm_.rank()) + ": instruction #" +
                            std::to_string(index) + " (" + describe(instruction) + "): ";
  try {
    throw;
  } catch (const UserError& e) {
    throw UserError(where + e.what(), e.hint());
  } catch (const RunError& e) {
    throw RunError(where + e.what());
  } catch (const std::bad_alloc&) {
    throw RunError(where + "out of memory");
  } catch (const std::exception& e) {
    throw InternalError(where + e.what());
  }
}

void Interpreter::execute(const std::string& name, const RunContext& context) {
  const auto at = std::find_if(entries_.begin(), entries_.end(),
                               [&](const PreparedEntry& e) { return e.entry->name == name; });
  if (at == entries_.end()) entry(name);  // throws
  PreparedEntry& prepared = *at;
  outstanding_ = 0;
  size_t i = 0;
  try {
    if (options_.time_instructions)
      run_timed(prepared, context, i);
    else
      run_all(prepared, context, i);
    for (i = 0; i < prepared.instructions.size() && outstanding_ > 0; ++i) complete(prepared, i);
  } catch (...) {
    if (i == prepared.instructions.size()) throw;
    rethrow(i, *prepared.instructions[i].instruction);
  }
}

void Interpreter::run_all(PreparedEntry& entry, const RunContext& context, size_t& i) {
  for (i = 0; i < entry.instructions.size(); ++i) {
    Prepared& p = entry.instructions[i];
    for (const int32_t w : p.instruction->waits) complete(entry, static_cast<size_t>(w));
    if (outstanding_ > 0) comm_.progress();
    run_one(p, context);
  }
}

void Interpreter::run_timed(PreparedEntry& entry, const RunContext& context, size_t& i) {
  timings_.assign(entry.instructions.size(), {});
  busy_ns_ = 0;
  began_ns_ = now_ns();
  for (i = 0; i < entry.instructions.size(); ++i) {
    Prepared& p = entry.instructions[i];
    const int64_t ready = now_ns();
    for (const int32_t w : p.instruction->waits) complete(entry, static_cast<size_t>(w));
    if (outstanding_ > 0) comm_.progress();
    const int64_t start = p.instruction->waits.empty() && outstanding_ == 0 ? ready : now_ns();
    run_one(p, context);
    const int64_t end = now_ns();
    timings_[i] = {start - began_ns_, end - start};
    busy_ns_ += end - ready;
  }
}

}  // namespace ff
