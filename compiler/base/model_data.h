// Bytes of an ONNX model's initializers, wherever they stand: raw, in typed fields, or in a file beside the
// model. Templates over the protobuf messages, so that this room needs no protos; the importer and the
// executor's weight reader share them.
//
//   Initializer w = initializer_bytes(tensor_proto, "net/model.onnx");   // shape, dtype, little-endian
//   row-major bytes
//
// External data must lie inside the model's folder ("../x", an absolute path or a link that leads out is
// refused), and its offset and length inside the file; the file is mapped, not read.
#pragma once

#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/base/box.h"
#include "compiler/base/check.h"
#include "compiler/base/dtype.h"

namespace ff {

/// A file mapped for reading. Throws UserError if it cannot be opened.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();
  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

/// What a parse of a model failed on: the message says whether the file is cut short, and names it with its
/// size.
[[noreturn]] void throw_not_a_model(const std::string& file, std::string_view bytes);

/// The type of an ONNX element type number (TensorProto.DataType); none for those that no buffer has.
std::optional<DType> dtype_of_onnx(int type);
/// The name of an ONNX element type number: "int8".
std::string onnx_type_name(int type);
int onnx_type_of(DType type);

struct ExternalData {
  std::string location;
  int64_t offset = 0;
  int64_t length = -1;  // to the end of what the shape needs
};

/// The file of external data of initializer `name` of `model`, checked against the model's folder.
std::filesystem::path external_path(const std::string& model, const std::string& name,
                                    const std::string& location);
/// Maps it and returns its bytes, checked against the size of the file and of the initializer.
std::string_view map_external(const std::string& model, const std::string& name, const ExternalData& data,
                              int64_t needed, std::shared_ptr<MappedFile>& file);

struct Initializer {
  Shape shape;
  DType dtype = DType::f32;
  std::string_view bytes;
  std::string owned;                 // what `bytes` refers to, if it was in typed fields
  std::shared_ptr<MappedFile> file;  // or in a file
};

template <typename TensorProto>
ExternalData external_data(const TensorProto& proto) {
  ExternalData data;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") data.location = entry.value();
    if (entry.key() == "offset") data.offset = std::strtoll(entry.value().c_str(), nullptr, 10);
    if (entry.key() == "length") data.length = std::strtoll(entry.value().c_str(), nullptr, 10);
  }
  return data;
}

template <typename TensorProto>
bool is_external(const TensorProto& proto) {
  return proto.data_location() == TensorProto::EXTERNAL;
}

namespace internal {
template <typename To, typename Values>
void append_as(const Values& values, std::string& out) {
  for (const auto& value : values) {
    const To v = static_cast<To>(value);
    out.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
}
}  // namespace internal

/// The bytes of the typed fields, as ONNX lays them out: 16-bit floats and small integers stand in
/// int32_data.
template <typename TensorProto>
std::string typed_bytes(const TensorProto& proto, DType type) {
  std::string out;
  switch (type) {
    case DType::f32:
      internal::append_as<float>(proto.float_data(), out);
      break;
    case DType::f64:
      internal::append_as<double>(proto.double_data(), out);
      break;
    case DType::i64:
      internal::append_as<int64_t>(proto.int64_data(), out);
      break;
    case DType::i32:
      internal::append_as<int32_t>(proto.int32_data(), out);
      break;
    case DType::bf16:
    case DType::f16:
      internal::append_as<uint16_t>(proto.int32_data(), out);
      break;
    case DType::u8:
    case DType::boolean:
      internal::append_as<uint8_t>(proto.int32_data(), out);
      break;
  }
  return out;
}

/// Shape, type and bytes of an initializer of the model at path `model`. Throws UserError naming file and
/// initializer where it has no data, data of another size, or a type that no buffer has.
template <typename TensorProto>
void read_initializer(const TensorProto& proto, const std::string& model, Initializer& out) {
  const std::string where = model + ": initializer '" + proto.name() + "'";
  const auto type = dtype_of_onnx(proto.data_type());
  if (!type)
    throw UserError(where + " has type " + onnx_type_name(proto.data_type()) + ", which is not supported");
  out.dtype = *type;
  out.shape = Shape(proto.dims().begin(), proto.dims().end());
  const int64_t needed = volume(out.shape) * size_of(*type);
  if (is_external(proto)) {
    out.bytes = map_external(model, proto.name(), external_data(proto), needed, out.file);
    return;
  }
  if (proto.has_raw_data()) {
    out.bytes = proto.raw_data();
  } else {
    out.owned = typed_bytes(proto, *type);
    out.bytes = out.owned;
  }
  if (out.bytes.empty() && needed > 0)
    throw UserError(where + " (" + to_string(out.shape) + ") carries no data");
  if (static_cast<int64_t>(out.bytes.size()) != needed) {
    throw UserError(where + ": " + std::to_string(out.bytes.size()) + " bytes of data, but its shape " +
                    to_string(out.shape) + " needs " + std::to_string(needed));
  }
}

/// Element `i` of little-endian bytes, as a double (integers above 2^53 lose bits).
double element_as_double(std::string_view bytes, DType type, int64_t i);
/// Appends a value as an element of a type, rounding to nearest even.
void append_element(std::string& bytes, DType type, double value);

}  // namespace ff
