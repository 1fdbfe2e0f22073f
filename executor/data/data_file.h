// A data file: samples along axis 0, elements in C order, memory-mapped where the format allows.
//
//   auto file = open_data_file("train-images-idx3-ubyte.gz");
//   file->shape()      // {60000, 28, 28}
//   file->samples()    // 60000
//   file->sample(7)    // the 784 bytes of image 7
//
// Formats are told apart by content: NumPy's .npy (versions 1 to 3) and IDX, either of them plain (mapped:
// only the pages that are read cost memory) or gzipped (decompressed into memory once).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/base/box.h"
#include "executor/data/element_type.h"

namespace ff {

class DataFile {
 public:
  /// The bytes of a file; the header has been read, elements begin at `offset`.
  struct Header {
    Shape shape;
    ElementType type;
    size_t offset = 0;
  };

  virtual ~DataFile() = default;
  const std::string& path() const { return path_; }
  /// The whole file's shape; axis 0 is samples.
  const Shape& shape() const { return header_.shape; }
  ElementType type() const { return header_.type; }
  int64_t samples() const { return header_.shape[0]; }
  int64_t elements_per_sample() const { return elements_per_sample_; }
  /// The first element of a sample, in the file's own type and byte order.
  const std::byte* sample(int64_t index) const {
    return data_ + index * elements_per_sample_ * header_.type.bytes;
  }

 protected:
  DataFile() = default;
  void describe(std::string path, Header header, const std::byte* bytes);

 private:
  std::string path_;
  Header header_;
  int64_t elements_per_sample_ = 0;
  const std::byte* data_ = nullptr;
};

/// Opens an .npy or IDX file. UserError, naming the file, if it is missing, of neither format, truncated, in
/// Fortran order, of a type that is not read here, or without a sample axis.
std::unique_ptr<DataFile> open_data_file(const std::string& path);

/// A file that backs one input of the model.
struct NamedFile {
  std::string input;
  const DataFile* file = nullptr;
};

/// The number of samples that all files have. UserError, naming two files and their counts, if they differ.
int64_t common_samples(const std::vector<NamedFile>& files);

}  // namespace ff
