// Files that the tests write byte by byte, so that readers are not checked against our own writer.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "compiler/base/check.h"

namespace ff {

/// A folder of its own that goes when the test ends.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ff-data-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() { std::filesystem::remove_all(path_); }
  std::string write(const std::string& name, const std::string& bytes) const {
    const std::string path = (path_ / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::string path(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// An .npy file as NumPy's format document lays it out.
inline std::string npy(int version, const std::string& descr, const std::string& fortran,
                       const std::string& shape, const std::string& elements) {
  std::string header =
      "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
  const size_t lengths = version == 1 ? 2 : 4;
  while ((8 + lengths + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  for (size_t i = 0; i < lengths; ++i) file += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return file + header + elements;
}

/// An IDX file: two zero bytes, type, rank, extents as big-endian 32-bit numbers, elements.
inline std::string idx(int type, const std::vector<int>& extents, const std::string& elements) {
  std::string file(2, '\0');
  file += static_cast<char>(type);
  file += static_cast<char>(extents.size());
  for (int extent : extents) {
    for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(extent >> shift & 0xff);
  }
  return file + elements;
}

inline std::string gzipped(const TempFolder& folder, const std::string& name, const std::string& bytes) {
  const std::string path = folder.path(name);
  gzFile out = ::gzopen(path.c_str(), "wb");
  ::gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size()));
  ::gzclose(out);
  return path;
}

/// The message of the UserError that `body` throws; a test that expects one fails on the text otherwise.
template <typename F>
std::string user_error(F&& body) {
  try {
    body();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no UserError";
}

}  // namespace ff
