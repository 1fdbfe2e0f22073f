#include "executor/runtime/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "compiler/base/check.h"
#include "compiler/base/hash.h"

namespace ff {
namespace {

constexpr std::string_view kMagic("FFCKPT\r\n", 8);
constexpr uint64_t kVersion = 1;

std::string file_in(const std::string& folder) {
  return (std::filesystem::path(folder) / "checkpoint.ff").string();
}

/// Writes bytes to a descriptor and hashes them, a piece at a time.
class Writer {
 public:
  explicit Writer(int fd) : fd_(fd) {}
  bool good() const { return good_; }
  uint64_t hash() const { return hash_; }
  void number(uint64_t value) {
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(value >> (8 * i) & 255);
    piece(bytes);
  }
  void text(const std::string& value) {
    number(value.size());
    piece(value);
  }
  void piece(std::string_view bytes) {
    hash_ = hash_bytes(bytes, hash_);
    while (good_ && !bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      good_ = n >= 0;
      if (good_) bytes.remove_prefix(static_cast<size_t>(n));
    }
  }

 private:
  int fd_;
  uint64_t hash_ = 0;
  bool good_ = true;
};

class Scanner {
 public:
  Scanner(std::string_view bytes, const std::string& path) : bytes_(bytes), path_(path) {}
  uint64_t hash() const { return hash_; }
  std::string_view piece(uint64_t size) {
    if (size > bytes_.size() - at_) throw UserError(path_ + ": the checkpoint is truncated");
    const std::string_view out = bytes_.substr(at_, size);
    at_ += size;
    hash_ = hash_bytes(out, hash_);
    return out;
  }
  uint64_t number() {
    const std::string_view bytes = piece(8);
    uint64_t value = 0;
    for (size_t i = 8; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
  }
  std::string_view text() { return piece(number()); }

 private:
  std::string_view bytes_;
  const std::string& path_;
  size_t at_ = 0;
  uint64_t hash_ = 0;
};

void write_parameter(Writer& out, const Parameter& p, const std::string& value) {
  out.text(p.name);
  out.number(static_cast<uint64_t>(p.kind));
  out.number(static_cast<uint64_t>(p.dtype));
  out.number(p.shape.size());
  for (const int64_t extent : p.shape) out.number(static_cast<uint64_t>(extent));
  out.piece(value);
}

void write_all(Writer& out, const CheckpointPosition& position, const std::vector<Parameter>& parameters,
               const ParameterValues& values) {
  out.piece(kMagic);
  out.number(kVersion);
  out.number(static_cast<uint64_t>(position.step));
  out.number(static_cast<uint64_t>(position.batch));
  out.number(static_cast<uint64_t>(position.samples));
  out.number(position.seed);
  out.number(position.shuffle ? 1 : 0);
  uint64_t count = 0;
  for (const Parameter& p : parameters) count += values.count(p.name);
  out.number(count);
  for (const Parameter& p : parameters) {
    if (const auto value = values.find(p.name); value != values.end()) write_parameter(out, p, value->second);
  }
  out.number(out.hash());
}

}  // namespace

void write_checkpoint(const std::string& folder, const CheckpointPosition& position,
                      const std::vector<Parameter>& parameters, const ParameterValues& values) {
  const std::string path = file_in(folder);
  const auto fail = [&](int error) {
    throw RunError(path + ": the checkpoint cannot be written: " + std::strerror(error));
  };
  std::error_code made;
  std::filesystem::create_directories(folder, made);
  if (made) fail(made.value());
  const std::string temporary = path + ".writing";
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) fail(errno);
  Writer out(fd);
  write_all(out, position, parameters, values);
  int error = out.good() && ::fsync(fd) == 0 ? 0 : errno;
  if (::close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return;
  ::unlink(temporary.c_str());
  fail(error);
}

CheckpointReader::CheckpointReader(const std::string& folder) : path_(file_in(folder)) {
  if (!std::filesystem::exists(path_)) throw UserError(path_ + ": no checkpoint to resume from");
  file_ = std::make_unique<MappedFile>(path_);
  Scanner in(file_->bytes(), path_);
  if (file_->bytes().substr(0, kMagic.size()) != kMagic) throw UserError(path_ + ": not a checkpoint");
  in.piece(kMagic.size());
  if (const uint64_t version = in.number(); version != kVersion)
    throw UserError(path_ + ": checkpoint format " + std::to_string(version) + "; this ffrun reads 1");
  position_.step = static_cast<int64_t>(in.number());
  position_.batch = static_cast<int64_t>(in.number());
  position_.samples = static_cast<int64_t>(in.number());
  position_.seed = in.number();
  position_.shuffle = in.number() != 0;
  const uint64_t count = in.number();
  for (uint64_t i = 0; i < count; ++i) {
    const std::string name(in.text());
    in.number();  // the kind: for readers without a plan
    Record record;
    const uint64_t type = in.number(), rank = in.number();
    if (type > static_cast<uint64_t>(DType::boolean) || rank > kMaxRank)
      throw UserError(path_ + ": the checkpoint is damaged");
    record.dtype = static_cast<DType>(type);
    for (uint64_t axis = 0; axis < rank; ++axis) record.shape.push_back(static_cast<int64_t>(in.number()));
    record.bytes = in.piece(static_cast<uint64_t>(volume(record.shape) * size_of(record.dtype)));
    records_[name] = record;
  }
  const uint64_t hash = in.hash();
  if (in.number() != hash)
    throw UserError(path_ + ": the checkpoint is damaged: its checksum does not match");
}

void CheckpointReader::load(const Parameter& p, const Box& box, void* out) const {
  const auto at = records_.find(p.name);
  if (at == records_.end()) throw UserError(path_ + ": the checkpoint has no '" + p.name + "'");
  const Record& record = at->second;
  if (record.shape != p.shape || record.dtype != p.dtype) {
    throw UserError(path_ + ": '" + p.name + "' is " + std::string(name(record.dtype)) + " " +
                    to_string(record.shape) + ", the plan needs " + std::string(name(p.dtype)) + " " +
                    to_string(p.shape));
  }
  copy_region(const_cast<char*>(record.bytes.data()), p.shape, box, static_cast<char*>(out),
              Layout::row_major, size_of(p.dtype), /*to_whole=*/false);
}

ParameterLoader CheckpointReader::loader() const {
  return [this](const Parameter& p, const Box& box, void* out) { load(p, box, out); };
}

}  // namespace ff
