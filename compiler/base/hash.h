// A 64-bit hash for "is this the same file?": not against malice.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ff {

/// FNV-1a over 8-byte words, mixed; the same on every platform.
uint64_t hash_bytes(std::string_view bytes, uint64_t seed = 0);
/// Of the files' contents, in order. UserError naming a file that cannot be read.
uint64_t hash_files(const std::vector<std::string>& paths);
/// 16 hexadecimal digits.
std::string to_hex(uint64_t hash);

}  // namespace ff
