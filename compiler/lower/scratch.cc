#include "compiler/lower/scratch.h"

#include <algorithm>

#include "compiler/lower/arena.h"

namespace ff {
namespace {

/// After this many instructions a send is waited for, so that its buffer's memory is free again.
constexpr int32_t kSendHorizon = 16;

/// The first and last instruction that touches each buffer, views counted as what they are views of.
std::vector<ArenaRequest> lives_of(const Program& program, size_t first_buffer,
                                   const std::map<int32_t, int32_t>& parents,
                                   const std::vector<int32_t>& complete) {
  const Entry& entry = program.entries.back();
  const auto end = static_cast<int32_t>(entry.instructions.size());
  std::vector<ArenaRequest> lives(program.buffers.size() - first_buffer, {0, end, -1, 0});
  const auto touch = [&](int32_t b, int32_t from, int32_t to) {
    if (b < 0) return;
    while (true) {
      const auto it = parents.find(b);
      if (it == parents.end()) return;  // persistent
      if (it->second < 0) break;
      b = it->second;
    }
    ArenaRequest& life = lives[static_cast<size_t>(b) - first_buffer];
    life.first = std::min(life.first, from);
    life.last = std::max(life.last, to);
  };
  for (int32_t i = 0; i < end; ++i) {
    const Instruction& instruction = entry.instructions[static_cast<size_t>(i)];
    const int32_t last = asynchronous(instruction) ? complete[static_cast<size_t>(i)] : i;
    for (int32_t b : instruction.operands) touch(b, i, last);
    touch(instruction.workspace, i, i);
  }
  for (int32_t b : entry.outputs) touch(b, end, end);
  return lives;
}

}  // namespace

std::vector<int32_t> wait_for_all(Entry& entry) {
  auto& list = entry.instructions;
  const auto n = static_cast<int32_t>(list.size());
  std::vector<int32_t> complete(list.size(), n);
  for (int32_t i = 0; i < n; ++i) {
    auto& waits = list[static_cast<size_t>(i)].waits;
    std::erase_if(waits, [&](int32_t w) { return complete[static_cast<size_t>(w)] < i; });
    for (int32_t w : waits) complete[static_cast<size_t>(w)] = i;
    const int32_t old = i - kSendHorizon;
    if (old >= 0 && asynchronous(list[static_cast<size_t>(old)]) && complete[static_cast<size_t>(old)] == n) {
      const bool later = std::any_of(list.begin() + i, list.end(), [old](const Instruction& x) {
        return std::find(x.waits.begin(), x.waits.end(), old) != x.waits.end();
      });
      if (later) continue;
      waits.push_back(old);
      complete[static_cast<size_t>(old)] = i;
    }
  }
  return complete;
}

void place_scratch(Program& program, size_t first_buffer, const std::map<int32_t, int32_t>& parents,
                   const std::vector<int32_t>& complete) {
  const std::vector<ArenaRequest> lives = lives_of(program, first_buffer, parents, complete);
  const auto end = static_cast<int32_t>(complete.size());
  std::vector<ArenaRequest> requests;
  std::vector<Buffer*> owners;
  for (const auto& [b, parent] : parents) {
    if (parent >= 0) continue;
    Buffer& buffer = program.buffers[static_cast<size_t>(b)];
    ArenaRequest request = lives[static_cast<size_t>(b) - first_buffer];
    if (request.last < 0) request.first = request.last = end;  // an output that nothing reads
    if (buffer.origin == Origin::input) request.first = 0;
    request.bytes = buffer.bytes;
    requests.push_back(request);
    owners.push_back(&buffer);
  }
  program.scratch_bytes = std::max(program.scratch_bytes, plan_arena(requests));
  for (size_t i = 0; i < requests.size(); ++i) owners[i]->offset = requests[i].offset;
  for (const auto& [b, parent] : parents) {
    if (parent >= 0)
      program.buffers[static_cast<size_t>(b)].offset += program.buffers[static_cast<size_t>(parent)].offset;
  }
}

}  // namespace ff
