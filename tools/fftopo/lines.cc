// Text as people paste it: lines, words and numbers.
#include <algorithm>
#include <cstdio>
#include <sstream>

#include "tools/fftopo/topology.h"

namespace ff {

std::vector<std::string> clean_lines(const std::string& text) {
  std::vector<std::string> lines(1);
  size_t at = text.rfind("\xEF\xBB\xBF", 0) == 0 ? 3 : 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\x1b' && at + 1 < text.size() && text[at + 1] == '[') {
      // A control sequence ends with a letter.
      for (at += 2; at < text.size() && (text[at] < '@' || text[at] > '~');) ++at;
    } else if (c == '\n') {
      lines.emplace_back();
    } else if (c != '\r') {
      lines.back() += c;
    }
  }
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

std::string plain(std::string line) {
  std::replace(line.begin(), line.end(), '|', ' ');
  line.erase(0, std::min(line.find_first_not_of("#> \t"), line.size()));
  return line;
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
  return all;
}

std::string number_text(double value, int digits) {
  if (value >= 1e12) return number_text(value / 1e12, digits) + "e12";
  if (value >= 1e9) return number_text(value / 1e9, digits) + "e9";
  if (value >= 1e6) return number_text(value / 1e6, digits) + "e6";
  char text[32];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

}  // namespace ff
