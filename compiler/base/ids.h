// Strong ids: indices into vectors that cannot be mixed up. `OpId` into Graph::ops, `DeviceId` into
// Machine::devices, ...
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>

namespace ff {

template <typename Tag>
struct Id {
  int32_t value = -1;

  constexpr Id() = default;
  constexpr explicit Id(int64_t v) : value(static_cast<int32_t>(v)) {}
  constexpr bool valid() const { return value >= 0; }
  constexpr size_t index() const { return static_cast<size_t>(value); }
  friend constexpr auto operator<=>(Id, Id) = default;
  friend std::ostream& operator<<(std::ostream& out, Id id) { return out << id.value; }
};

using OpId = Id<struct OpTag>;
using TensorId = Id<struct TensorTag>;
using DeviceId = Id<struct DeviceTag>;
using LinkId = Id<struct LinkTag>;
using TaskId = Id<struct TaskTag>;

}  // namespace ff

template <typename Tag>
struct std::hash<ff::Id<Tag>> {
  size_t operator()(ff::Id<Tag> id) const { return std::hash<int32_t>()(id.value); }
};
