// What the programs say to each other in one entry: pairs of messages, sequences of collectives, and whether
// executing all of them in order comes to an end.
#include <algorithm>
#include <map>
#include <tuple>

#include "compiler/base/check.h"
#include "compiler/plan/verify.h"
#include "compiler/plan/verify_internal.h"

namespace ff::internal {
namespace {

/// One instruction of one device.
struct Spot {
  int32_t device = -1;
  int32_t instruction = -1;
};

class MessageChecker {
 public:
  MessageChecker(const Plan& plan, size_t entry) : plan_(plan) {
    for (size_t d = 0; d < plan.program_of.size(); ++d) {
      const Program& program = plan.programs[static_cast<size_t>(plan.program_of[d])];
      places_.push_back({program, plan.groups, static_cast<int>(d), program.entries[entry]});
      partner_.emplace_back(program.entries[entry].instructions.size());
      meeting_.emplace_back(program.entries[entry].instructions.size(), -1);
    }
  }

  void check() {
    pair_messages();
    match_collectives();
    run();
  }

 private:
  const Instruction& at(Spot s) const {
    return places_[static_cast<size_t>(s.device)].entry.instructions[static_cast<size_t>(s.instruction)];
  }
  const Buffer& buffer(Spot s, size_t operand) const {
    return places_[static_cast<size_t>(s.device)]
        .program.buffers[static_cast<size_t>(at(s).operands[operand])];
  }
  [[noreturn]] void fail(Spot s, const std::string& what) const {
    places_[static_cast<size_t>(s.device)].fail(static_cast<size_t>(s.instruction), what);
  }

  template <typename Visit>
  void each(const Visit& visit) const {
    for (size_t d = 0; d < places_.size(); ++d) {
      const size_t count = places_[d].entry.instructions.size();
      for (size_t i = 0; i < count; ++i) visit(Spot{static_cast<int32_t>(d), static_cast<int32_t>(i)});
    }
  }

  void pair_messages() {
    using Key = std::tuple<int32_t, int32_t, int32_t>;  // from, to, tag
    std::map<Key, Spot> sends, receives;
    each([&](Spot s) {
      const Instruction& in = at(s);
      const bool sends_it = in.kind == InstructionKind::send;
      if (!sends_it && in.kind != InstructionKind::receive) return;
      if (in.peer >= static_cast<int32_t>(places_.size())) fail(s, "no rank " + std::to_string(in.peer));
      const Key key = sends_it ? Key{s.device, in.peer, in.tag} : Key{in.peer, s.device, in.tag};
      if (!(sends_it ? sends : receives).emplace(key, s).second)
        fail(s, "a second message of tag " + std::to_string(in.tag) + " between these ranks");
    });
    for (const auto& [key, s] : sends) {
      const auto r = receives.find(key);
      if (r == receives.end())
        fail(s, "no receive of tag " + std::to_string(at(s).tag) + " on rank " + std::to_string(at(s).peer));
      if (buffer(s, 0).bytes != buffer(r->second, 0).bytes) {
        fail(s, "sends " + std::to_string(buffer(s, 0).bytes) + " bytes, but rank " +
                    std::to_string(at(s).peer) + " receives " + std::to_string(buffer(r->second, 0).bytes));
      }
      partner(s) = r->second;
      partner(r->second) = s;
    }
    for (const auto& [key, r] : receives) {
      if (!sends.contains(key))
        fail(r, "no send of tag " + std::to_string(at(r).tag) + " on rank " + std::to_string(at(r).peer));
    }
  }

  Spot& partner(Spot s) {
    return partner_[static_cast<size_t>(s.device)][static_cast<size_t>(s.instruction)];
  }

  /// The k-th collective of a group on one member meets the k-th of every other.
  void match_collectives() {
    std::map<std::pair<int32_t, int32_t>, std::vector<Spot>> sequences;  // of a group and a device
    each([&](Spot s) {
      if (is_collective(at(s))) sequences[{at(s).group, s.device}].push_back(s);
    });
    for (size_t g = 0; g < plan_.groups.size(); ++g) {
      const auto& group = plan_.groups[g];
      if (group.empty()) continue;
      const auto of = [&](int32_t member) -> std::vector<Spot>& {
        return sequences[{static_cast<int32_t>(g), member}];
      };
      const std::vector<Spot>& first = of(group[0]);
      const size_t base = arrived_.size();
      for (const Spot s : first) {
        arrived_.push_back(0);
        group_of_.push_back(at(s).group);
      }
      for (const int32_t member : group) match_member(g, first, of(member), base);
    }
  }

  void match_member(size_t group, const std::vector<Spot>& first, const std::vector<Spot>& own, size_t base) {
    for (size_t k = 0; k < std::max(first.size(), own.size()); ++k) {
      if (k >= own.size() || k >= first.size()) {
        const Spot s = k < own.size() ? own[k] : first[k];
        fail(s, "only some members of group " + std::to_string(group) + " issue this collective");
      }
      if (!same_collective(first[k], own[k])) {
        fail(own[k], "is number " + std::to_string(k) + " of group " + std::to_string(group) +
                         ", where rank " + std::to_string(first[k].device) + " issues " +
                         places_[static_cast<size_t>(first[k].device)].name(
                             static_cast<size_t>(first[k].instruction)));
      }
      meeting_[static_cast<size_t>(own[k].device)][static_cast<size_t>(own[k].instruction)] =
          static_cast<int64_t>(base + k);
    }
  }

  bool same_collective(Spot a, Spot b) const {
    const Instruction &x = at(a), &y = at(b);
    const bool uneven =
        x.kind == InstructionKind::reduce_scatter || x.kind == InstructionKind::all_gather;  // counts say it
    return x.kind == y.kind && x.counts == y.counts && x.root == y.root && x.combine_max == y.combine_max &&
           x.op == y.op && buffer(a, 0).dtype == buffer(b, 0).dtype &&
           (uneven || buffer(a, 0).bytes == buffer(b, 0).bytes);
  }

  // ---- Executing ----

  bool issued(Spot s) const { return s.instruction < next_[static_cast<size_t>(s.device)]; }

  bool complete(Spot s) const {
    const auto d = static_cast<size_t>(s.device), i = static_cast<size_t>(s.instruction);
    if (meeting_[d][i] < 0) return issued(partner_[d][i]);
    const auto m = static_cast<size_t>(meeting_[d][i]);
    return arrived_[m] == plan_.groups[static_cast<size_t>(group_of_[m])].size();
  }

  /// What device `d` waits for, or nothing.
  Spot blocked_by(size_t d) const {
    const Instruction& in = places_[d].entry.instructions[static_cast<size_t>(next_[d])];
    for (const int32_t wait : in.waits) {
      if (const Spot s{static_cast<int32_t>(d), wait}; !complete(s)) return s;
    }
    return {};
  }

  bool ended(size_t d) const { return static_cast<size_t>(next_[d]) == places_[d].entry.instructions.size(); }

  void run() {
    next_.assign(places_.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t d = 0; d < places_.size(); ++d) {
        while (!ended(d) && blocked_by(d).device < 0) {
          const int64_t meeting = meeting_[d][static_cast<size_t>(next_[d])];
          if (meeting >= 0) ++arrived_[static_cast<size_t>(meeting)];
          ++next_[d];
          moved = true;
        }
      }
    }
    std::string stuck;
    for (size_t d = 0; d < places_.size(); ++d) {
      if (ended(d)) continue;
      stuck += (stuck.empty() ? "" : "; ") + std::string("rank ") + std::to_string(d) + " waits at " +
               places_[d].name(static_cast<size_t>(next_[d])) + " for " +
               places_[d].name(static_cast<size_t>(blocked_by(d).instruction));
    }
    if (!stuck.empty()) throw InternalError("entry " + places_[0].entry.name + " never ends: " + stuck);
  }

  const Plan& plan_;
  std::vector<EntryPlace> places_;
  std::vector<std::vector<Spot>> partner_;     // of each device's sends and receives
  std::vector<std::vector<int64_t>> meeting_;  // which collective each device's instruction is; -1 none
  std::vector<size_t> arrived_;                // members that have issued each collective
  std::vector<int32_t> group_of_;
  std::vector<int32_t> next_;
};

}  // namespace

void verify_messages(const Plan& plan, size_t entry) { MessageChecker(plan, entry).check(); }

}  // namespace ff::internal
