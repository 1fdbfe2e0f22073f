// Names that a user may have meant.
//
//   nearest("resnet5", {"alexnet", "resnet50"})         // "resnet50"
//   nearest_few("conv", {"fc1", "conv2", "conv1"}, 2)   // {"conv2", "conv1"}
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ff {

/// Insertions, deletions, replacements and swaps of neighbours that make one word of the other.
size_t edit_distance(const std::string& a, const std::string& b);

/// The word of `words` (which must not be empty) with the least edit distance from `word`.
std::string nearest(const std::string& word, const std::vector<std::string>& words);

/// At most `count` of them, nearest first; those that contain the word come before the others.
std::vector<std::string> nearest_few(const std::string& word, std::vector<std::string> words, size_t count);

}  // namespace ff
