#include "compiler/plan/entry_inputs.h"

#include <algorithm>
#include <set>

namespace ff {
namespace {

bool is_part(const Buffer& part, const Buffer& whole) {
  return part.tensor == whole.tensor && part.region == whole.region && part.origin == Origin::computed &&
         part.offset >= whole.offset && part.offset + part.bytes <= whole.offset + whole.bytes;
}

}  // namespace

std::vector<int32_t> input_buffers(const Program& program, const Entry& entry) {
  std::set<int32_t> touched;
  std::set<int32_t> written;
  for (const Instruction& in : entry.instructions) {
    for (size_t i = 0; i < in.operands.size(); ++i) {
      touched.insert(in.operands[i]);
      const bool kernel_writes = i < in.call.operands.size() && in.call.operands[i].access != Access::in;
      if (in.kind == InstructionKind::receive || kernel_writes) written.insert(in.operands[i]);
    }
  }
  touched.insert(entry.outputs.begin(), entry.outputs.end());
  std::vector<int32_t> out;
  for (size_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& whole = program.buffers[b];
    if (whole.origin != Origin::input) continue;
    const auto reads = [&](int32_t r) {
      if (r == static_cast<int32_t>(b)) return true;
      return r >= 0 && !written.contains(r) && is_part(program.buffers[static_cast<size_t>(r)], whole);
    };
    if (std::any_of(touched.begin(), touched.end(), reads)) out.push_back(static_cast<int32_t>(b));
  }
  return out;
}

}  // namespace ff
