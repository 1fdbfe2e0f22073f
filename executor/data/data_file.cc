#include "executor/data/data_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "compiler/base/check.h"
#include "executor/data/npy.h"

namespace ff {
namespace {

// A whole file, mapped read-only.
class Mapping {
 public:
  explicit Mapping(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) throw UserError(path + ": cannot be opened: " + std::strerror(errno));
    struct stat status {};
    if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
      ::close(fd);
      throw UserError(path + ": not a regular file");
    }
    size_ = static_cast<size_t>(status.st_size);
    void* const at = size_ > 0 ? ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd, 0) : nullptr;
    const int error = errno;
    ::close(fd);
    if (at == MAP_FAILED) throw RunError(path + ": cannot be mapped: " + std::strerror(error));
    data_ = static_cast<const std::byte*>(at);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

std::vector<std::byte> gunzip(const std::string& path) {
  gzFile in = ::gzopen(path.c_str(), "rb");
  if (in == nullptr) throw UserError(path + ": cannot be opened: " + std::strerror(errno));
  ::gzbuffer(in, 1U << 18);
  std::vector<std::byte> bytes;
  constexpr size_t kChunk = size_t{1} << 22;
  int got = 0;
  do {
    const size_t have = bytes.size();
    bytes.resize(have + kChunk);
    got = ::gzread(in, bytes.data() + have, kChunk);
    bytes.resize(have + static_cast<size_t>(got > 0 ? got : 0));
  } while (got > 0);
  int code = Z_OK;
  const std::string message = ::gzerror(in, &code);
  const int closed = ::gzclose(in);
  if (got < 0 || code != Z_OK || closed != Z_OK) {
    throw UserError(path + ": the gzip data are damaged or truncated" +
                    (code != Z_OK ? " (" + message + ")" : std::string()));
  }
  return bytes;
}

// IDX: two zero bytes, a type, a rank, the extents as big-endian 32-bit numbers (as MNIST's pages define it).
bool parse_idx_header(std::span<const std::byte> bytes, DataFile::Header& header) {
  if (bytes.size() < 4 || bytes[0] != std::byte{0} || bytes[1] != std::byte{0}) return false;
  switch (std::to_integer<int>(bytes[2])) {
    case 0x08:
      header.type = {'u', 1, false};
      break;
    case 0x09:
      header.type = {'i', 1, false};
      break;
    case 0x0B:
      header.type = {'i', 2, true};
      break;
    case 0x0C:
      header.type = {'i', 4, true};
      break;
    case 0x0D:
      header.type = {'f', 4, true};
      break;
    case 0x0E:
      header.type = {'f', 8, true};
      break;
    default:
      return false;
  }
  const auto rank = std::to_integer<size_t>(bytes[3]);
  if (rank == 0 || bytes.size() < 4 + 4 * rank) return false;
  for (size_t axis = 0; axis < rank; ++axis) {
    int64_t extent = 0;
    for (size_t i = 0; i < 4; ++i) extent = extent << 8 | std::to_integer<int64_t>(bytes[4 + 4 * axis + i]);
    header.shape.push_back(extent);
  }
  header.offset = 4 + 4 * rank;
  return true;
}

DataFile::Header parse_header(const std::string& path, std::span<const std::byte> bytes) {
  DataFile::Header header;
  if (is_npy(bytes)) {
    header = parse_npy_header(path, bytes);
  } else if (!parse_idx_header(bytes, header)) {
    throw UserError(path + ": neither a NumPy .npy nor an IDX file", "convert it with numpy.save");
  }
  if (header.shape.empty()) throw UserError(path + ": a scalar, without an axis of samples");
  if (header.shape.size() > static_cast<size_t>(kMaxRank)) {
    throw UserError(path + ": rank " + std::to_string(header.shape.size()) + " is above the largest, " +
                    std::to_string(kMaxRank));
  }
  int64_t need = header.type.bytes;
  for (int64_t extent : header.shape) {
    if (__builtin_mul_overflow(need, extent, &need)) {
      throw UserError(path + ": the header's shape " + to_string(header.shape) + " is too large to be true");
    }
  }
  const auto have = static_cast<int64_t>(bytes.size() - header.offset);
  if (have < need) {
    throw UserError(path + ": truncated: " + to_string(header.shape) + " " + name(header.type) + " takes " +
                    std::to_string(need) + " bytes, the file has " + std::to_string(have));
  }
  return header;
}

class MappedFile : public DataFile {
 public:
  explicit MappedFile(const std::string& path) : mapping_(path) {
    describe(path, parse_header(path, mapping_.bytes()), mapping_.bytes().data());
  }

 private:
  Mapping mapping_;
};

class InflatedFile : public DataFile {
 public:
  explicit InflatedFile(const std::string& path) : bytes_(gunzip(path)) {
    describe(path, parse_header(path, bytes_), bytes_.data());
  }

 private:
  std::vector<std::byte> bytes_;
};

bool is_gzip(const std::string& path) {
  const Mapping mapping(path);
  const std::span<const std::byte> bytes = mapping.bytes();
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

}  // namespace

void DataFile::describe(std::string path, Header header, const std::byte* bytes) {
  path_ = std::move(path);
  header_ = std::move(header);
  elements_per_sample_ = volume(Shape(header_.shape.begin() + 1, header_.shape.end()));
  data_ = bytes + header_.offset;
}

std::unique_ptr<DataFile> open_data_file(const std::string& path) {
  if (is_gzip(path)) return std::make_unique<InflatedFile>(path);
  return std::make_unique<MappedFile>(path);
}

int64_t common_samples(const std::vector<NamedFile>& files) {
  FF_CHECK(!files.empty());
  const NamedFile& first = files.front();
  for (const NamedFile& other : files) {
    if (other.file->samples() == first.file->samples()) continue;
    throw UserError(first.file->path() + " has " + std::to_string(first.file->samples()) + " samples for '" +
                        first.input + "', " + other.file->path() + " has " +
                        std::to_string(other.file->samples()) + " for '" + other.input + "'",
                    "give files of the same samples, in the same order");
  }
  return first.file->samples();
}

}  // namespace ff
