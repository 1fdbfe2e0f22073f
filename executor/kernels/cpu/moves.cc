#include "executor/kernels/cpu/moves.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace ff::cpu {
namespace {

struct Axis {
  int64_t extent, source, target;  // strides
};

/// Axes from slowest to fastest in the target, those of one element dropped, neighbours that run on merged.
std::vector<Axis> merge(const Shape& source, const Shape& target, const Shape& extent) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < extent.size(); ++i) {
    if (extent[i] > 1) axes.push_back({extent[i], source[i], target[i]});
  }
  std::stable_sort(axes.begin(), axes.end(),
                   [](const Axis& a, const Axis& b) { return a.target > b.target; });
  std::vector<Axis> out;
  for (const Axis& axis : axes) {
    if (!out.empty() && out.back().source == axis.source * axis.extent &&
        out.back().target == axis.target * axis.extent) {
      out.back() = {out.back().extent * axis.extent, axis.source, axis.target};
    } else {
      out.push_back(axis);
    }
  }
  return out;
}

template <typename T>
void copy_run(const T* source, T* target, const Axis& axis) {
  if (axis.source == 1 && axis.target == 1) {
    std::memcpy(target, source, static_cast<size_t>(axis.extent) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < axis.extent; ++i) target[i * axis.target] = source[i * axis.source];
}

/// Two inner axes of which each is the fast one of a side: in blocks that fit the first cache.
template <typename T>
void copy_plane(const T* source, T* target, const Axis& slow, const Axis& fast) {
  constexpr int64_t kBlock = 16;
  if (slow.source >= fast.source) {
    for (int64_t i = 0; i < slow.extent; ++i)
      copy_run(source + i * slow.source, target + i * slow.target, fast);
    return;
  }
  for (int64_t i = 0; i < slow.extent; i += kBlock) {
    for (int64_t j = 0; j < fast.extent; j += kBlock) {
      for (int64_t a = i; a < std::min(i + kBlock, slow.extent); ++a) {
        for (int64_t b = j; b < std::min(j + kBlock, fast.extent); ++b) {
          target[a * slow.target + b * fast.target] = source[a * slow.source + b * fast.source];
        }
      }
    }
  }
}

template <typename T>
void copy_axes(const T* source, T* target, const Axis* axes, size_t count) {
  if (count == 0) {
    *target = *source;
  } else if (count == 1) {
    copy_run(source, target, axes[0]);
  } else if (count == 2) {
    copy_plane(source, target, axes[0], axes[1]);
  } else {
    for (int64_t i = 0; i < axes[0].extent; ++i) {
      copy_axes(source + i * axes[0].source, target + i * axes[0].target, axes + 1, count - 1);
    }
  }
}

template <typename T>
void move_as(const void* source, void* target, const std::vector<Axis>& axes) {
  copy_axes(static_cast<const T*>(source), static_cast<T*>(target), axes.data(), axes.size());
}

}  // namespace

void move(const void* source, const Shape& source_strides, void* target, const Shape& target_strides,
          const Shape& extent, int64_t element_bytes) {
  if (volume(extent) == 0) return;
  const std::vector<Axis> axes = merge(source_strides, target_strides, extent);
  switch (element_bytes) {
    case 1:
      return move_as<uint8_t>(source, target, axes);
    case 2:
      return move_as<uint16_t>(source, target, axes);
    case 4:
      return move_as<uint32_t>(source, target, axes);
    default:
      return move_as<uint64_t>(source, target, axes);
  }
}

}  // namespace ff::cpu
