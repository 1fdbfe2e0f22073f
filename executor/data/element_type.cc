#include "executor/data/element_type.h"

namespace ff {

std::string name(const ElementType& type) {
  if (type.kind == 'b') return "bool";
  const std::string word = type.kind == 'f' ? "float" : type.kind == 'i' ? "int" : "uint";
  return word + std::to_string(8 * type.bytes);
}

bool parse_descr(const std::string& descr, ElementType& type) {
  if (descr.size() != 3) return false;
  const char order = descr[0], kind = descr[1];
  const int bytes = descr[2] - '0';
  if (order != '<' && order != '>' && order != '|' && order != '=') return false;
  const bool power = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
  const bool known = (kind == 'f' && (bytes == 4 || bytes == 8)) || ((kind == 'i' || kind == 'u') && power) ||
                     (kind == 'b' && bytes == 1);
  if (!known) return false;
  type = {kind, bytes, order == '>' && bytes > 1};
  return true;
}

}  // namespace ff
