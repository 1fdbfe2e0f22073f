// The memory of one entry: a sweep over its instructions that holds, per region, what each byte was written
// through last and which asynchronous instructions still read or write which bytes.
#include <algorithm>
#include <map>

#include "compiler/plan/entry_inputs.h"
#include "compiler/plan/verify.h"
#include "compiler/plan/verify_internal.h"

namespace ff::internal {
namespace {

/// Which buffer each byte of a region was written through last.
class Contents {
 public:
  void write(int64_t begin, int64_t end, int32_t buffer) {
    if (begin >= end) return;
    cut(begin);
    cut(end);
    ranges_.erase(ranges_.lower_bound(begin), ranges_.lower_bound(end));
    ranges_[begin] = {end, buffer};
  }

  /// Calls `look(begin, end, buffer)` for the ranges of [begin, end) in order; buffer -1 where nothing was
  /// written.
  template <typename Look>
  void read(int64_t begin, int64_t end, const Look& look) const {
    auto it = ranges_.upper_bound(begin);
    if (it != ranges_.begin() && std::prev(it)->second.end > begin) --it;
    while (begin < end) {
      if (it == ranges_.end() || it->first >= end) return look(begin, end, -1);
      if (it->first > begin) look(begin, it->first, -1);
      look(std::max(begin, it->first), std::min(end, it->second.end), it->second.buffer);
      begin = it->second.end;
      ++it;
    }
  }

 private:
  struct Written {
    int64_t end;
    int32_t buffer;
  };

  void cut(int64_t at) {
    auto it = ranges_.upper_bound(at);
    if (it == ranges_.begin()) return;
    --it;
    if (it->first >= at || it->second.end <= at) return;
    ranges_[at] = it->second;
    it->second.end = at;
  }

  std::map<int64_t, Written> ranges_;
};

/// Byte ranges in use by instructions in flight.
class InFlight {
 public:
  void add(int64_t begin, int64_t end, size_t instruction) {
    if (begin >= end) return;
    longest_ = std::max(longest_, end - begin);
    ranges_.emplace(begin, Use{end, instruction});
  }
  void remove(int64_t begin, size_t instruction) {
    for (auto [it, last] = ranges_.equal_range(begin); it != last; ++it) {
      if (it->second.instruction != instruction) continue;
      ranges_.erase(it);
      return;
    }
  }
  /// An instruction that uses a byte of [begin, end), or -1.
  int64_t find(int64_t begin, int64_t end) const {
    for (auto it = ranges_.lower_bound(begin - longest_); it != ranges_.end() && it->first < end; ++it) {
      if (it->second.end > begin) return static_cast<int64_t>(it->second.instruction);
    }
    return -1;
  }

 private:
  struct Use {
    int64_t end;
    size_t instruction;
  };
  std::multimap<int64_t, Use> ranges_;
  int64_t longest_ = 0;
};

class MemoryChecker {
 public:
  explicit MemoryChecker(const EntryPlace& place)
      : p_(place), begun_(place.program.buffers.size()), in_flight_(place.entry.instructions.size()) {}

  void check() {
    fill();
    for (size_t i = 0; i < p_.entry.instructions.size(); ++i) step(i);
    for (size_t b = 0; b < p_.program.buffers.size(); ++b) {
      if (p_.program.buffers[b].origin == Origin::parameter)
        check_contents(static_cast<int32_t>(b), "at its end, parameter ", {});
    }
    for (const int32_t output : p_.entry.outputs) check_contents(output, "at its end, output ", {});
  }

 private:
  struct RegionState {
    Contents contents;
    InFlight readers, writers;
  };

  const Buffer& buffer(int32_t index) const { return p_.program.buffers[static_cast<size_t>(index)]; }
  RegionState& region(const Buffer& b) { return regions_[static_cast<size_t>(b.region)]; }

  /// Parameters, and the inputs that the entry reads, are there before its first instruction.
  void fill() {
    std::vector<int32_t> filled = input_buffers(p_.program, p_.entry);
    for (size_t b = 0; b < p_.program.buffers.size(); ++b) {
      if (p_.program.buffers[b].origin == Origin::parameter) filled.push_back(static_cast<int32_t>(b));
    }
    for (const int32_t b : filled) {
      const Buffer& one = buffer(b);
      region(one).contents.read(one.offset, one.offset + one.bytes, [&](int64_t, int64_t, int32_t other) {
        if (other < 0 || (buffer(other).offset == one.offset && same_box(buffer(other), one))) return;
        p_.fail(p_.buffer_name(b) + " overlaps " + p_.buffer_name(other) +
                ", and both are filled from outside");
      });
      region(one).contents.write(one.offset, one.offset + one.bytes, b);
    }
  }

  /// Whether what was written through one buffer can be read through the other: parts of one tensor that
  /// share elements.
  static bool shows(const Buffer& a, const Buffer& b) {
    return !a.tensor.empty() && a.tensor == b.tensor && a.box.rank() == b.box.rank() &&
           !intersect(a.box, b.box).empty();
  }
  static bool same_box(const Buffer& a, const Buffer& b) { return a.tensor == b.tensor && a.box == b.box; }

  void step(size_t at) {
    const Instruction& in = p_.entry.instructions[at];
    for (const int32_t wait : in.waits) complete(static_cast<size_t>(wait));
    const std::vector<BufferUse> used = uses(p_, in);
    check_itself(at, in, used);
    for (const BufferUse& use : used) check_order(at, use);
    for (const BufferUse& use : used) {
      if (use.reads && !begins(in, use)) check_contents(use.buffer, "reads ", at);
    }
    for (const BufferUse& use : used) {
      const Buffer& b = buffer(use.buffer);
      RegionState& state = region(b);
      if (use.writes) {
        state.contents.write(b.offset, b.offset + b.bytes, use.buffer);
        begun_[static_cast<size_t>(use.buffer)] = true;
      }
      if (!is_asynchronous(in)) continue;
      (use.writes ? state.writers : state.readers).add(b.offset, b.offset + b.bytes, at);
    }
    in_flight_[at] = is_asynchronous(in);
  }

  /// The first of the copies that together fill a buffer keeps what it does not write, which is nothing yet.
  bool begins(const Instruction& in, const BufferUse& use) const {
    return use.writes && in.kind == InstructionKind::kernel && in.call.kernel == "CopyBox" &&
           !begun_[static_cast<size_t>(use.buffer)];
  }

  void complete(size_t at) {
    if (!in_flight_[at]) return;
    in_flight_[at] = false;
    for (const BufferUse& use : uses(p_, p_.entry.instructions[at])) {
      const Buffer& b = buffer(use.buffer);
      (use.writes ? region(b).writers : region(b).readers).remove(b.offset, at);
    }
  }

  /// Operands of one instruction may share bytes only as one buffer; an all-gather's own part lies in its
  /// place.
  void check_itself(size_t at, const Instruction& in, const std::vector<BufferUse>& used) const {
    for (size_t i = 0; i < used.size(); ++i) {
      for (size_t j = i + 1; j < used.size(); ++j) {
        const Buffer &a = buffer(used[i].buffer), &b = buffer(used[j].buffer);
        if (!used[i].writes && !used[j].writes) continue;
        if (used[i].buffer == used[j].buffer || a.region != b.region) continue;
        if (a.offset >= b.offset + b.bytes || b.offset >= a.offset + a.bytes) continue;
        if (in.kind == InstructionKind::all_gather && in_its_place(in, a, b)) continue;
        p_.fail(at, p_.buffer_name(used[i].buffer) + " overlaps " + p_.buffer_name(used[j].buffer) +
                        " in one instruction");
      }
    }
  }

  bool in_its_place(const Instruction& in, const Buffer& from, const Buffer& to) const {
    const int64_t own = place_in_group(p_.groups[static_cast<size_t>(in.group)], p_.rank);
    int64_t before = 0;
    for (int64_t i = 0; i < own; ++i) before += in.counts[static_cast<size_t>(i)];
    return from.offset == to.offset + before * size_of(to.dtype);
  }

  void check_order(size_t at, const BufferUse& use) {
    const Buffer& b = buffer(use.buffer);
    const RegionState& state = region(b);
    const int64_t end = b.offset + b.bytes;
    const char* const does = use.writes ? "writes " : "reads ";
    if (const int64_t writer = state.writers.find(b.offset, end); writer >= 0)
      fail_order(at, does, use.buffer, writer, " writes it");
    if (!use.writes) return;
    if (const int64_t reader = state.readers.find(b.offset, end); reader >= 0)
      fail_order(at, does, use.buffer, reader, " reads it");
  }

  [[noreturn]] void fail_order(size_t at, const char* does, int32_t b, int64_t other,
                               const char* other_does) const {
    const auto index = static_cast<size_t>(other);
    p_.fail(at, does + p_.buffer_name(b) + " while " + p_.name(index) + other_does + "; a wait for #" +
                    std::to_string(other) + " is missing");
  }

  /// Every byte was written last through this buffer, or another one of its tensor.
  void check_contents(int32_t b, const std::string& does, std::optional<size_t> at) {
    const Buffer& one = buffer(b);
    region(one).contents.read(
        one.offset, one.offset + one.bytes, [&](int64_t begin, int64_t end, int32_t other) {
          if (other == b) return;
          if (other >= 0 && shows(buffer(other), one)) return;
          std::string what = does + p_.buffer_name(b) + ", whose bytes " +
                             std::to_string(begin - one.offset) + " to " + std::to_string(end - one.offset);
          what += other < 0 ? " nothing has written in this entry"
                            : " " + p_.buffer_name(other) + " has overwritten";
          if (at) p_.fail(*at, what);
          p_.fail(what);
        });
  }

  const EntryPlace& p_;
  RegionState regions_[2];
  std::vector<bool> begun_;      // buffers that an instruction has written
  std::vector<bool> in_flight_;  // instructions
};

}  // namespace

void verify_memory(const EntryPlace& place) { MemoryChecker(place).check(); }

}  // namespace ff::internal
