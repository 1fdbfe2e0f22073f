#include "compiler/plan/kernel_call.h"

namespace ff {

std::string to_string(const KernelCall& call) {
  constexpr const char* kAccess[] = {"in", "out", "inout"};
  std::string out = call.kernel;
  if (const std::string attributes = to_string(call.attributes); !attributes.empty()) out += " " + attributes;
  for (const Operand& operand : call.operands) {
    out += std::string(" ") + kAccess[static_cast<int>(operand.access)] + " ";
    if (is_absent(operand)) {
      out += "none";
      continue;
    }
    out += std::string(name(operand.dtype)) + ":" + std::string(name(operand.layout)) + ":" +
           to_string(operand.shape);
  }
  return out;
}

}  // namespace ff
