// What the elements of a data file are: more types than a model's input may have, so that files are read as
// they are.
//
//   ElementType u1{'u', 1};      // numpy's "|u1", IDX's 0x08
//   name(u1)                     // "uint8"
#pragma once

#include <cstdint>
#include <string>

namespace ff {

/// NumPy's kind letter ('f' float, 'i' signed, 'u' unsigned, 'b' boolean) and size.
struct ElementType {
  char kind = 'f';
  int bytes = 4;
  bool big_endian = false;

  bool is_float() const { return kind == 'f'; }
  friend bool operator==(const ElementType&, const ElementType&) = default;
};

/// NumPy's name: "float32", "uint8", "bool".
std::string name(const ElementType& type);
/// Parses NumPy's "<f4", ">i8", "|u1"; false if there is no such type here.
bool parse_descr(const std::string& descr, ElementType& type);

}  // namespace ff
