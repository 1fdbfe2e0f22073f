#include "executor/data/npy.h"

#include <charconv>
#include <cstring>
#include <fstream>

#include "compiler/base/check.h"

namespace ff {
namespace {

constexpr char kMagic[] = "\x93NUMPY";
constexpr size_t kMagicSize = 6;

// What follows `'key':` in the header, a Python dictionary literal that NumPy itself writes.
std::string value_of(const std::string& path, const std::string& header, const std::string& key) {
  size_t at = header.find("'" + key + "'");
  if (at != std::string::npos) at = header.find(':', at);
  if (at == std::string::npos) throw UserError(path + ": the .npy header has no '" + key + "'");
  at = header.find_first_not_of(' ', at + 1);
  return at == std::string::npos ? std::string() : header.substr(at);
}

Shape parse_shape(const std::string& path, const std::string& text) {
  const size_t end = text.find(')');
  if (text.empty() || text[0] != '(' || end == std::string::npos) {
    throw UserError(path + ": the .npy header's shape is not a tuple");
  }
  Shape shape;
  const char* at = text.data() + 1;
  const char* const last = text.data() + end;
  while (at < last) {
    if (*at == ' ' || *at == ',') {
      ++at;
      continue;
    }
    int64_t extent = 0;
    const auto [next, error] = std::from_chars(at, last, extent);
    if (error != std::errc() || extent < 0)
      throw UserError(path + ": the .npy header's shape is not made of numbers");
    shape.push_back(extent);
    at = next;
  }
  return shape;
}

}  // namespace

bool is_npy(std::span<const std::byte> bytes) {
  return bytes.size() >= kMagicSize && std::memcmp(bytes.data(), kMagic, kMagicSize) == 0;
}

DataFile::Header parse_npy_header(const std::string& path, std::span<const std::byte> bytes) {
  const auto byte = [&](size_t i) { return i < bytes.size() ? std::to_integer<size_t>(bytes[i]) : 0; };
  const size_t version = byte(6);
  if (version < 1 || version > 3) {
    throw UserError(path + ": .npy version " + std::to_string(version) + " is not read (only 1 to 3)");
  }
  const size_t begin = version == 1 ? 10 : 12;
  size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (begin + length > bytes.size()) throw UserError(path + ": truncated inside the .npy header");
  const std::string text(reinterpret_cast<const char*>(bytes.data()) + begin, length);

  DataFile::Header header;
  header.offset = begin + length;
  const std::string descr = value_of(path, text, "descr");
  const size_t close = descr.size() > 1 ? descr.find(descr[0], 1) : std::string::npos;
  const std::string type = close == std::string::npos ? descr : descr.substr(1, close - 1);
  if (!parse_descr(type, header.type)) {
    throw UserError(path + ": elements of type '" + type + "' are not read",
                    "save it as float32, float64, bool or an integer type");
  }
  if (value_of(path, text, "fortran_order").rfind("False", 0) != 0) {
    throw UserError(path + ": the array is in Fortran order (fortran_order: True)",
                    "save numpy.ascontiguousarray(array)");
  }
  header.shape = parse_shape(path, value_of(path, text, "shape"));
  return header;
}

void write_npy(const std::string& path, const Shape& shape, const ElementType& type, const void* data) {
  std::string header = "{'descr': '";
  header += type.bytes == 1 ? '|' : '<';
  header += type.kind + std::to_string(type.bytes) + "', 'fortran_order': False, 'shape': (";
  for (int64_t extent : shape) header += std::to_string(extent) + ", ";
  header += "), }";
  // "(3, )" is not what NumPy writes, but it is a tuple to every reader, as "(3, 4, )" is; "()" is a scalar.
  const size_t unpadded = kMagicSize + 4 + header.size() + 1;
  header.append((64 - unpadded % 64) % 64, ' ');
  header += '\n';
  FF_CHECK_LT(header.size(), 65536u);

  std::ofstream out(path, std::ios::binary);
  out.write(kMagic, kMagicSize);
  const char lengths[] = {1, 0, static_cast<char>(header.size() & 0xff),
                          static_cast<char>(header.size() >> 8)};
  out.write(lengths, sizeof lengths);
  out << header;
  out.write(static_cast<const char*>(data), static_cast<std::streamsize>(volume(shape) * type.bytes));
  out.close();
  if (!out) throw RunError(path + ": cannot be written");
}

}  // namespace ff
