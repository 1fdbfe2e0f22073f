#include "compiler/base/hash.h"

#include <array>
#include <cstring>
#include <fstream>

#include "compiler/base/check.h"
#include "compiler/base/rng.h"

namespace ff {

uint64_t hash_bytes(std::string_view bytes, uint64_t seed) {
  constexpr uint64_t kPrime = 0x100000001B3ULL;
  uint64_t hash = 0xCBF29CE484222325ULL ^ mix64(seed) ^ bytes.size();
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, 8);
    hash = (hash ^ word) * kPrime;
    hash ^= hash >> 29;
  }
  for (; i < bytes.size(); ++i) hash = (hash ^ static_cast<unsigned char>(bytes[i])) * kPrime;
  return mix64(hash);
}

uint64_t hash_files(const std::vector<std::string>& paths) {
  uint64_t hash = 0;
  std::vector<char> block(1 << 20);
  for (const std::string& path : paths) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw UserError(path + ": cannot be read");
    while (in) {
      in.read(block.data(), static_cast<std::streamsize>(block.size()));
      hash = hash_bytes({block.data(), static_cast<size_t>(in.gcount())}, hash);
    }
  }
  return hash;
}

std::string to_hex(uint64_t hash) {
  std::string out(16, '0');
  for (size_t i = 16; i-- > 0; hash >>= 4) out[i] = "0123456789abcdef"[hash & 15];
  return out;
}

}  // namespace ff
