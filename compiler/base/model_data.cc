#include "compiler/base/model_data.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cmath>

namespace ff {
namespace fs = std::filesystem;

MappedFile::MappedFile(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw UserError(path.string() + ": " + std::strerror(errno));
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd);
    throw UserError(path.string() + ": not a file");
  }
  size_ = static_cast<size_t>(status.st_size);
  if (size_ > 0) {
    data_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data_ == MAP_FAILED) data_ = nullptr;
  }
  ::close(fd);
  if (size_ > 0 && data_ == nullptr) throw RunError(path.string() + ": cannot be mapped into memory");
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

namespace {

// A varint at `at`, which is moved past it; false where the bytes end first.
bool read_varint(std::string_view bytes, size_t& at, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && at < bytes.size(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes[at++]);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// The byte where a model's top-level field goes past the end of the file, if the bytes before look like a
// model's.
std::optional<uint64_t> cut_end(std::string_view bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    uint64_t key = 0;
    uint64_t length = 0;
    if (!read_varint(bytes, at, key)) return std::nullopt;
    const uint64_t field = key >> 3;
    // ModelProto: ir_version 1, producer 2 to 4, model_version 5, doc 6, graph 7, opsets 8, metadata 14,
    // training 20, functions 25, configuration 26.
    const bool known = (field >= 1 && field <= 8) || field == 14 || field == 20 || field == 25 || field == 26;
    if (!known || ((key & 7) != 0 && (key & 7) != 2)) return std::nullopt;
    if (!read_varint(bytes, at, length)) return std::nullopt;
    if ((key & 7) == 0) continue;
    if (length > bytes.size() - at) return at + length;
    at += length;
  }
  return std::nullopt;
}

}  // namespace

void throw_not_a_model(const std::string& file, std::string_view bytes) {
  const std::string size = std::to_string(bytes.size()) + " bytes";
  if (bytes.empty()) throw UserError(file + ": the file is empty");
  if (bytes.starts_with("version https://git-lfs")) {
    throw UserError(file + ": a pointer of Git LFS (" + size + "), not an ONNX file", "git lfs pull");
  }
  if (const auto end = cut_end(bytes)) {
    throw UserError(file + ": truncated ONNX file: it has " + size + ", its contents go on to byte " +
                    std::to_string(*end));
  }
  throw UserError(file + ": not an ONNX file (" + size + ")");
}

std::optional<DType> dtype_of_onnx(int type) {
  switch (type) {
    case 1:
      return DType::f32;
    case 2:
      return DType::u8;
    case 6:
      return DType::i32;
    case 7:
      return DType::i64;
    case 9:
      return DType::boolean;
    case 10:
      return DType::f16;
    case 11:
      return DType::f64;
    case 16:
      return DType::bf16;
    default:
      return std::nullopt;
  }
}

int onnx_type_of(DType type) {
  for (int i = 1; i <= 16; ++i) {
    if (dtype_of_onnx(i) == type) return i;
  }
  return 0;
}

std::string onnx_type_name(int type) {
  constexpr std::array<const char*, 17> kNames = {
      "undefined", "float32", "uint8",   "int8",   "uint16", "int16",     "int32",      "int64",   "string",
      "bool",      "float16", "float64", "uint32", "uint64", "complex64", "complex128", "bfloat16"};
  if (type >= 0 && type < static_cast<int>(kNames.size())) return kNames[static_cast<size_t>(type)];
  return "number " + std::to_string(type);
}

fs::path external_path(const std::string& model, const std::string& name, const std::string& location) {
  const auto refuse = [&] {
    throw UserError(model + ": initializer '" + name + "': its external data '" + location +
                        "' is outside the model's folder",
                    "put the data file beside the model");
  };
  if (location.empty())
    throw UserError(model + ": initializer '" + name + "': its external data names no file");
  const fs::path relative(location);
  if (relative.is_absolute()) refuse();
  for (const fs::path& part : relative) {
    if (part == "..") refuse();
  }
  const fs::path folder = fs::weakly_canonical(fs::absolute(model).parent_path());
  const fs::path target = fs::weakly_canonical(folder / relative);
  const fs::path inside = target.lexically_relative(folder);
  if (inside.empty() || *inside.begin() == "..") refuse();
  return target;
}

std::string_view map_external(const std::string& model, const std::string& name, const ExternalData& data,
                              int64_t needed, std::shared_ptr<MappedFile>& file) {
  const fs::path path = external_path(model, name, data.location);
  const std::string where = model + ": initializer '" + name + "': ";
  if (!fs::is_regular_file(path))
    throw UserError(where + "its external data '" + data.location + "' is not there");
  if (!file) file = std::make_shared<MappedFile>(path);
  const std::string_view all = file->bytes();
  const int64_t length = data.length < 0 ? needed : data.length;
  if (length != needed) {
    throw UserError(where + std::to_string(length) + " bytes of external data, but its shape needs " +
                    std::to_string(needed));
  }
  const auto size = static_cast<int64_t>(all.size());
  if (data.offset < 0 || data.offset > size || length > size - data.offset) {
    throw UserError(where + "its external data is bytes " + std::to_string(data.offset) + " to " +
                    std::to_string(data.offset + length) + " of '" + data.location + "', which has " +
                    std::to_string(size) + " bytes");
  }
  return all.substr(static_cast<size_t>(data.offset), static_cast<size_t>(length));
}

namespace {

template <typename T>
T load(std::string_view bytes, int64_t i) {
  T value;
  std::memcpy(&value, bytes.data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void store(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

double half_to_double(uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1F;
  const int mantissa = bits & 0x3FF;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return mantissa == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(mantissa + 1024, exponent - 25);
}

uint16_t double_to_half(double value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7E00;
  if (magnitude >= 65520) return sign | 0x7C00;
  if (magnitude < std::ldexp(1, -14))
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(magnitude, 24))));
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = m * 2^exponent, m in [0.5, 1)
  const auto mantissa =
      static_cast<int>(std::nearbyint(std::ldexp(magnitude, 11 - exponent)));  // [1024, 2048]
  return static_cast<uint16_t>(sign + ((exponent + 14) << 10) + (mantissa - 1024));
}

uint16_t float_to_bfloat(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

}  // namespace

double element_as_double(std::string_view bytes, DType type, int64_t i) {
  switch (type) {
    case DType::f64:
      return load<double>(bytes, i);
    case DType::f32:
      return load<float>(bytes, i);
    case DType::bf16:
      return std::bit_cast<float>(static_cast<uint32_t>(load<uint16_t>(bytes, i)) << 16);
    case DType::f16:
      return half_to_double(load<uint16_t>(bytes, i));
    case DType::i64:
      return static_cast<double>(load<int64_t>(bytes, i));
    case DType::i32:
      return load<int32_t>(bytes, i);
    case DType::u8:
    case DType::boolean:
      return load<uint8_t>(bytes, i);
  }
  return 0;
}

void append_element(std::string& bytes, DType type, double value) {
  switch (type) {
    case DType::f64:
      return store(bytes, value);
    case DType::f32:
      return store(bytes, static_cast<float>(value));
    case DType::bf16:
      return store(bytes, float_to_bfloat(static_cast<float>(value)));
    case DType::f16:
      return store(bytes, double_to_half(value));
    case DType::i64:
      return store(bytes, static_cast<int64_t>(value));
    case DType::i32:
      return store(bytes, static_cast<int32_t>(value));
    case DType::u8:
    case DType::boolean:
      return store(bytes, static_cast<uint8_t>(value));
  }
}

}  // namespace ff
