// Scores seen as rows along the class axis, and what has one value a row: labels, maxima, sums.
//
//   ClassRows<float> x(call.operands[0], operands[0], 1);   // 8x10x4x4, class axis 1: 128 rows of 10
//   RowVector<float> max(call.operands[1], operands[1]);    // 8x4x4: 128 values
//   max[r] = x(r, 0);
//
// Rows are counted in the logical order of the other axes, whatever the layouts of the operands.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "compiler/base/check.h"
#include "executor/kernels/cpu/image.h"
#include "executor/kernels/cpu/vector_math.h"

namespace ff::cpu {

/// The offset of every element with index 0 on `axis` (-1: every element), in logical order.
inline std::vector<int64_t> row_offsets(const Operand& operand, int axis) {
  const Shape strides = dense_strides(operand.shape, operand.layout);
  std::vector<int64_t> offsets{0};
  for (size_t d = 0; d < operand.shape.size(); ++d) {
    if (static_cast<int>(d) == axis) continue;
    std::vector<int64_t> finer;
    finer.reserve(offsets.size() * static_cast<size_t>(operand.shape[d]));
    for (int64_t offset : offsets) {
      for (int64_t i = 0; i < operand.shape[d]; ++i) finer.push_back(offset + i * strides[d]);
    }
    offsets = std::move(finer);
  }
  return offsets;
}

template <typename T>
struct RowVector {
  T* data = nullptr;  // null: absent
  std::vector<int64_t> at;

  RowVector(const Operand& operand, void* buffer) : data(static_cast<T*>(buffer)) {
    if (data != nullptr) at = row_offsets(operand, -1);
  }
  explicit operator bool() const { return data != nullptr; }
  T& operator[](size_t row) const { return data[at[row]]; }
};

template <typename T>
struct ClassRows {
  T* data = nullptr;
  std::vector<int64_t> at;
  int64_t classes = 0, stride = 1;

  ClassRows(const Operand& operand, void* buffer, int axis) : data(static_cast<T*>(buffer)) {
    if (data == nullptr) return;
    at = row_offsets(operand, axis);
    classes = operand.shape[static_cast<size_t>(axis)];
    stride = dense_strides(operand.shape, operand.layout)[static_cast<size_t>(axis)];
  }
  size_t rows() const { return at.size(); }
  T& operator()(size_t row, int64_t c) const { return data[at[row] + c * stride]; }
};

// What softmax and cross-entropy do along a row: plain, or for contiguous floats in vectors.

template <typename T>
bool vectorises(const ClassRows<T>& x) {
  return std::is_same_v<T, float> && x.stride == 1;
}

template <typename T>
T max_of(const ClassRows<T>& x, size_t r) {
  if constexpr (std::is_same_v<T, float>) {
    if (vectorises(x)) return vector_math::max_row(&x(r, 0), x.classes);
  }
  T max = x(r, 0);
  for (int64_t c = 1; c < x.classes; ++c) max = std::max(max, x(r, c));
  return max;
}

/// Of exp(x - max).
template <typename T>
T sum_of(const ClassRows<T>& x, size_t r, T max) {
  if constexpr (std::is_same_v<T, float>) {
    if (vectorises(x)) return vector_math::sum_exp_row(&x(r, 0), max, x.classes);
  }
  T sum = 0;
  for (int64_t c = 0; c < x.classes; ++c) sum += std::exp(x(r, c) - max);
  return sum;
}

/// y = factor * exp(x - shift).
template <typename T>
void exp_of(const ClassRows<T>& x, const ClassRows<T>& y, size_t r, T shift, T factor) {
  if constexpr (std::is_same_v<T, float>) {
    if (vectorises(x) && vectorises(y))
      return vector_math::exp_row(&x(r, 0), shift, factor, x.classes, &y(r, 0));
  }
  for (int64_t c = 0; c < x.classes; ++c) y(r, c) = factor * std::exp(x(r, c) - shift);
}

/// The class axis of a call whose operand `full` has it.
inline int class_axis_of(const KernelCall& call, const Operand& full) {
  const int64_t axis = call.attributes.integer("axis", -1);
  return static_cast<int>(axis < 0 ? axis + static_cast<int64_t>(full.shape.size()) : axis);
}

/// The labels of a cell. `get` refuses one that is no class of the whole.
struct Labels {
  const void* data;
  DType type;
  std::vector<int64_t> at;
  int64_t classes, class_offset, sample_offset, rows_a_sample;
  bool has_ignored;
  int64_t ignored;

  /// `classes` as the call says, else not checked.
  Labels(const KernelCall& call, size_t operand, std::span<void* const> operands)
      : data(operands[operand]),
        type(call.operands[operand].dtype),
        at(row_offsets(call.operands[operand], -1)),
        classes(call.attributes.integer("classes", -1)),
        class_offset(call.attributes.integer("class_offset", 0)),
        sample_offset(call.attributes.integer("sample_offset", 0)),
        has_ignored(call.attributes.has("ignore_index")),
        ignored(call.attributes.integer("ignore_index", 0)) {
    const Shape& shape = call.operands[operand].shape;
    rows_a_sample = shape.empty() || shape[0] == 0 ? 1 : static_cast<int64_t>(at.size()) / shape[0];
  }

  size_t rows() const { return at.size(); }
  bool ignore(int64_t label) const { return has_ignored && label == ignored; }
  int64_t get(size_t row) const {
    const int64_t label = read(at[row]);
    if (!ignore(label) && classes >= 0 && (label < 0 || label >= classes)) {
      const int64_t sample = sample_offset + static_cast<int64_t>(row) / rows_a_sample;
      throw UserError("label " + std::to_string(label) + " of sample " + std::to_string(sample) +
                          " is outside [0, " + std::to_string(classes) + ")",
                      "check the labels; one that marks no class can be given as the index to ignore");
    }
    return label;
  }

 private:
  int64_t read(int64_t offset) const {
    switch (type) {
      case DType::i32:
        return static_cast<const int32_t*>(data)[offset];
      case DType::u8:
        return static_cast<const uint8_t*>(data)[offset];
      default:
        FF_CHECK(type == DType::i64) << "labels of type " << name(type);
        return static_cast<const int64_t*>(data)[offset];
    }
  }
};

}  // namespace ff::cpu
