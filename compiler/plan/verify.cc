#include "compiler/plan/verify.h"

#include <algorithm>

#include "compiler/base/check.h"
#include "compiler/plan/verify_internal.h"

namespace ff {
namespace internal {
namespace {

std::string kind_name(const Instruction& in) {
  constexpr const char* kNames[] = {"",           "send",     "receive", "all-reduce", "reduce-scatter",
                                    "all-gather", "broadcast"};
  return in.kind == InstructionKind::kernel ? in.call.kernel : kNames[static_cast<int>(in.kind)];
}

int64_t elements(const Buffer& buffer) { return buffer.bytes / size_of(buffer.dtype); }

/// The shape checks of one entry.
class ShapeChecker {
 public:
  explicit ShapeChecker(const EntryPlace& place) : p_(place) {}

  void check() {
    for (at_ = 0; at_ < p_.entry.instructions.size(); ++at_) {
      const Instruction& in = p_.entry.instructions[at_];
      for (const int32_t operand : in.operands)
        require(operand >= -1 && exists_or_absent(operand), "no buffer b" + std::to_string(operand));
      require(exists_or_absent(in.workspace), "no workspace b" + std::to_string(in.workspace));
      check_waits(in);
      if (in.kind == InstructionKind::kernel)
        check_kernel(in);
      else if (is_collective(in))
        check_collective(in);
      else
        check_message(in);
    }
    for (const int32_t output : p_.entry.outputs) {
      if (output < 0 || !exists_or_absent(output)) p_.fail("no output b" + std::to_string(output));
    }
  }

 private:
  void require(bool good, const std::string& what) const {
    if (!good) p_.fail(at_, what);
  }
  bool exists_or_absent(int32_t buffer) const {
    return buffer == -1 || (buffer >= 0 && static_cast<size_t>(buffer) < p_.program.buffers.size());
  }
  const Buffer& buffer(const Instruction& in, size_t operand) const {
    require(operand < in.operands.size() && in.operands[operand] >= 0,
            "operand " + std::to_string(operand) + " is missing");
    return p_.program.buffers[static_cast<size_t>(in.operands[operand])];
  }

  void check_waits(const Instruction& in) const {
    for (const int32_t wait : in.waits) {
      require(wait >= 0 && static_cast<size_t>(wait) < at_,
              "waits for #" + std::to_string(wait) + ", which is not an earlier instruction");
      require(is_asynchronous(p_.entry.instructions[static_cast<size_t>(wait)]),
              "waits for #" + std::to_string(wait) + ", which is a kernel and done when it has run");
    }
  }

  void check_kernel(const Instruction& in) const {
    require(in.operands.size() == in.call.operands.size(),
            std::to_string(in.operands.size()) + " buffers for " + std::to_string(in.call.operands.size()) +
                " operands");
    for (size_t i = 0; i < in.operands.size(); ++i) {
      const Operand& operand = in.call.operands[i];
      const std::string which = "operand " + std::to_string(i);
      require(in.operands[i] >= 0 || is_absent(operand), which + " has no buffer");
      if (in.operands[i] < 0) continue;
      const Buffer& b = buffer(in, i);
      const std::string named = which + " and " + p_.buffer_name(in.operands[i]);
      require(b.dtype == operand.dtype, named + " differ in type: " + std::string(ff::name(operand.dtype)) +
                                            " against " + std::string(ff::name(b.dtype)));
      require(b.bytes == operand.bytes(), named + " differ in size: " + std::to_string(operand.bytes()) +
                                              " against " + std::to_string(b.bytes) + " bytes");
      require(operand.shape.size() <= 2 || b.layout == operand.layout, named + " differ in layout");
    }
  }

  void check_message(const Instruction& in) const {
    require(in.operands.size() == 1, "a message has one operand, not " + std::to_string(in.operands.size()));
    buffer(in, 0);
    require(in.peer >= 0 && in.peer != p_.rank, "peer " + std::to_string(in.peer) + " is no other rank");
    require(in.tag >= 0, "tag " + std::to_string(in.tag));
  }

  void check_collective(const Instruction& in) const {
    require(in.group >= 0 && static_cast<size_t>(in.group) < p_.groups.size(),
            "no group " + std::to_string(in.group));
    const auto& group = p_.groups[static_cast<size_t>(in.group)];
    const int64_t own = place_in_group(group, p_.rank);
    require(own >= 0, "rank " + std::to_string(p_.rank) + " is not in group " + std::to_string(in.group));
    if (in.kind == InstructionKind::broadcast) {
      require(in.operands.size() == 1, "a broadcast has one operand");
      buffer(in, 0);
      require(in.root >= 0 && static_cast<size_t>(in.root) < group.size(),
              "root " + std::to_string(in.root) + " is not a place in the group");
      return;
    }
    require(in.operands.size() == 2, "a collective has two operands");
    const Buffer& from = buffer(in, 0);
    const Buffer& to = buffer(in, 1);
    require(from.dtype == to.dtype, "operands differ in type");
    if (in.kind == InstructionKind::all_reduce) {
      check_elements(from, elements(to), "in");
      return;
    }
    require(in.counts.size() == group.size(),
            std::to_string(in.counts.size()) + " counts for a group of " + std::to_string(group.size()));
    int64_t sum = 0;
    for (const int64_t count : in.counts) sum += count;
    const bool scatter = in.kind == InstructionKind::reduce_scatter;
    check_elements(from, scatter ? sum : in.counts[static_cast<size_t>(own)], "in");
    check_elements(to, scatter ? in.counts[static_cast<size_t>(own)] : sum, "out");
  }

  void check_elements(const Buffer& b, int64_t needed, const char* which) const {
    require(elements(b) == needed, std::string(which) + " has " + std::to_string(elements(b)) +
                                       " elements, but the counts say " + std::to_string(needed));
  }

  const EntryPlace& p_;
  size_t at_ = 0;
};

void verify_buffers(const Program& program, const std::string& where) {
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& b = program.buffers[i];
    const int64_t room = b.region == Region::persistent ? program.persistent_bytes : program.scratch_bytes;
    const std::string name = where + ": b" + std::to_string(i) + " (" + b.tensor + ") ";
    if (b.offset < 0 || b.offset % size_of(b.dtype) != 0)
      throw InternalError(name + "lies at " + std::to_string(b.offset) + ", where its type cannot lie");
    if (b.bytes < 0 || b.offset + b.bytes > room) {
      throw InternalError(name + "ends at " + std::to_string(b.offset + b.bytes) + " of " +
                          std::to_string(room) + " bytes of its region");
    }
    const int64_t needed = b.box.volume() * size_of(b.dtype);
    if (!b.tensor.empty() && b.bytes != needed) {
      throw InternalError(name + "has " + std::to_string(b.bytes) + " bytes, but its box needs " +
                          std::to_string(needed));
    }
  }
}

std::string program_name(int rank) {
  return rank < 0 ? std::string("reference program") : "program of rank " + std::to_string(rank);
}

}  // namespace

void EntryPlace::fail(const std::string& what) const {
  throw InternalError(program_name(rank) + ", entry " + entry.name + ": " + what);
}

void EntryPlace::fail(size_t instruction, const std::string& what) const {
  throw InternalError(program_name(rank) + ", entry " + entry.name + ", " + name(instruction) + ": " + what);
}

std::string EntryPlace::name(size_t instruction) const {
  const Instruction& in = entry.instructions[instruction];
  return "#" + std::to_string(instruction) + " (" + kind_name(in) + (in.op.empty() ? "" : " " + in.op) + ")";
}

std::string EntryPlace::buffer_name(int32_t buffer) const {
  const std::string& tensor = program.buffers[static_cast<size_t>(buffer)].tensor;
  return "b" + std::to_string(buffer) + (tensor.empty() ? "" : " (" + tensor + ")");
}

std::vector<BufferUse> uses(const EntryPlace& place, const Instruction& in) {
  std::vector<BufferUse> out;
  const auto add = [&](size_t operand, bool reads, bool writes) {
    if (operand < in.operands.size() && in.operands[operand] >= 0)
      out.push_back({in.operands[operand], reads, writes});
  };
  switch (in.kind) {
    case InstructionKind::kernel:
      for (size_t i = 0; i < in.operands.size(); ++i)
        add(i, in.call.operands[i].access != Access::out, in.call.operands[i].access != Access::in);
      if (in.workspace >= 0) out.push_back({in.workspace, false, true});
      break;
    case InstructionKind::send:
      add(0, true, false);
      break;
    case InstructionKind::receive:
      add(0, false, true);
      break;
    case InstructionKind::broadcast: {
      const auto& group = place.groups[static_cast<size_t>(in.group)];
      const bool is_root = group[static_cast<size_t>(in.root)] == place.rank;
      add(0, is_root, !is_root);
      break;
    }
    case InstructionKind::all_reduce:
    case InstructionKind::reduce_scatter:
    case InstructionKind::all_gather:
      add(0, true, false);
      add(1, false, true);
      break;
  }
  return out;
}

int64_t place_in_group(const std::vector<int32_t>& group, int rank) {
  const auto at = std::find(group.begin(), group.end(), rank);
  return at == group.end() ? -1 : at - group.begin();
}

void verify_shapes(const EntryPlace& place) { ShapeChecker(place).check(); }

}  // namespace internal

void verify_program(const Program& program, const std::vector<std::vector<int32_t>>& groups, int rank) {
  internal::verify_buffers(program, internal::program_name(rank));
  for (const Entry& entry : program.entries) {
    const internal::EntryPlace place{program, groups, rank, entry};
    internal::verify_shapes(place);
    internal::verify_memory(place);
  }
}

void verify(const Plan& plan) {
  FF_CHECK_EQ(static_cast<int64_t>(plan.program_of.size()), plan.num_devices);
  for (const auto& group : plan.groups) {
    for (const int32_t rank : group) FF_CHECK(rank >= 0 && rank < plan.num_devices) << "in a group: " << rank;
  }
  for (const int32_t program : plan.program_of)
    FF_CHECK(program >= 0 && static_cast<size_t>(program) < plan.programs.size()) << program;
  for (size_t d = 0; d < plan.program_of.size(); ++d)
    verify_program(plan.programs[static_cast<size_t>(plan.program_of[d])], plan.groups, static_cast<int>(d));
  if (plan.reference) verify_program(*plan.reference, plan.groups, -1);
  if (plan.program_of.empty()) return;
  const Program& first = plan.programs[static_cast<size_t>(plan.program_of[0])];
  for (const int32_t p : plan.program_of) {
    const Program& program = plan.programs[static_cast<size_t>(p)];
    FF_CHECK_EQ(program.entries.size(), first.entries.size());
    for (size_t e = 0; e < first.entries.size(); ++e)
      FF_CHECK_EQ(program.entries[e].name, first.entries[e].name);
  }
  for (size_t e = 0; e < first.entries.size(); ++e) internal::verify_messages(plan, e);
}

}  // namespace ff
