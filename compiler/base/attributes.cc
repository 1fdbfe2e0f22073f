#include "compiler/base/attributes.h"

#include <array>
#include <charconv>

#include "compiler/base/check.h"

namespace ff {
namespace {

template <typename T>
const T& get(const Attributes::Map& values, std::string_view key) {
  const auto it = values.find(key);
  FF_CHECK(it != values.end()) << "attribute " << key;
  const T* value = std::get_if<T>(&it->second);
  FF_CHECK(value != nullptr) << "attribute " << key << " has type number " << it->second.index();
  return *value;
}

void print(std::string& out, int64_t value) { out += std::to_string(value); }

void print(std::string& out, double value) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  std::string_view text(buffer.data(), static_cast<size_t>(end - buffer.data()));
  out += text;
  if (text.find_first_of(".enia") == std::string_view::npos) out += ".0";  // a real is told from an integer
}

void print(std::string& out, const std::string& value) { out += "'" + value + "'"; }

template <typename T>
void print(std::string& out, const std::vector<T>& values) {
  out += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i) out += ',';
    print(out, values[i]);
  }
  out += ']';
}

}  // namespace

void Attributes::erase(std::string_view key) {
  if (const auto it = values_.find(key); it != values_.end()) values_.erase(it);
}

int64_t Attributes::integer(std::string_view key) const { return get<int64_t>(values_, key); }
double Attributes::real(std::string_view key) const { return get<double>(values_, key); }
const std::string& Attributes::string(std::string_view key) const { return get<std::string>(values_, key); }
const Ints& Attributes::ints(std::string_view key) const { return get<Ints>(values_, key); }
const Reals& Attributes::reals(std::string_view key) const { return get<Reals>(values_, key); }

std::string to_string(const Attributes& attributes) {
  std::string out;
  for (const auto& [key, value] : attributes.values()) {
    if (!out.empty()) out += ' ';
    out += key + "=";
    std::visit([&out](const auto& v) { print(out, v); }, value);
  }
  return out;
}

}  // namespace ff
