// Typed attributes of ops and of kernels, by name. Kept in name order, so that text and bytes are canonical.
//
//   Attributes a{{"strides", Ints{2, 2}}, {"group", int64_t{1}}};
//   a.ints("strides");              // {2, 2}
//   a.integer("group", 1);          // 1, the default if it is not there
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ff {

using Ints = std::vector<int64_t>;
using Reals = std::vector<double>;
using Attribute = std::variant<int64_t, double, std::string, Ints, Reals>;

class Attributes {
 public:
  using Map = std::map<std::string, Attribute, std::less<>>;

  Attributes() = default;
  Attributes(std::initializer_list<Map::value_type> values) : values_(values) {}

  bool has(std::string_view key) const { return values_.contains(key); }
  void set(std::string key, Attribute value) { values_.insert_or_assign(std::move(key), std::move(value)); }
  void erase(std::string_view key);
  const Map& values() const { return values_; }

  /// The attribute's value; a missing one or one of another type is a bug (InternalError naming the key).
  int64_t integer(std::string_view key) const;
  double real(std::string_view key) const;
  const std::string& string(std::string_view key) const;
  const Ints& ints(std::string_view key) const;
  const Reals& reals(std::string_view key) const;

  /// The value, or the default if there is none under this key.
  int64_t integer(std::string_view key, int64_t otherwise) const {
    return has(key) ? integer(key) : otherwise;
  }
  double real(std::string_view key, double otherwise) const { return has(key) ? real(key) : otherwise; }
  std::string string(std::string_view key, std::string_view otherwise) const {
    return has(key) ? string(key) : std::string(otherwise);
  }
  Ints ints(std::string_view key, const Ints& otherwise) const { return has(key) ? ints(key) : otherwise; }

  friend bool operator==(const Attributes&, const Attributes&) = default;

 private:
  Map values_;
};

/// "group=1 pads=[0,0,1,1] ratio=0.5 mode='sum'", in name order; reals round-trip.
std::string to_string(const Attributes& attributes);

}  // namespace ff
