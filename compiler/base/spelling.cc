#include "compiler/base/spelling.h"

#include <algorithm>

#include "compiler/base/check.h"

namespace ff {

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] =
          std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1] ? 1U : 0U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

std::string nearest(const std::string& word, const std::vector<std::string>& words) {
  FF_CHECK(!words.empty());
  return *std::min_element(words.begin(), words.end(), [&](const std::string& a, const std::string& b) {
    return edit_distance(word, a) < edit_distance(word, b);
  });
}

std::vector<std::string> nearest_few(const std::string& word, std::vector<std::string> words, size_t count) {
  const auto rank = [&](const std::string& one) {
    return std::pair(one.find(word) == std::string::npos, edit_distance(word, one));
  };
  std::stable_sort(words.begin(), words.end(),
                   [&](const std::string& a, const std::string& b) { return rank(a) < rank(b); });
  words.resize(std::min(words.size(), count));
  return words;
}

}  // namespace ff
