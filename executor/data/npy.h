// NumPy's .npy format (numpy.lib.format, versions 1.0 to 3.0): reading its header, and writing whole files.
//
//   write_npy("labels.npy", {5}, {'i', 8}, labels.data());
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "executor/data/data_file.h"

namespace ff {

bool is_npy(std::span<const std::byte> bytes);
/// UserError naming `path` if the header is not one that is read here.
DataFile::Header parse_npy_header(const std::string& path, std::span<const std::byte> bytes);

/// Writes an array in C order and little-endian. RunError if the file cannot be written.
void write_npy(const std::string& path, const Shape& shape, const ElementType& type, const void* data);

}  // namespace ff
