#include "test/support/cell_kernel.h"

#include <cstring>

#include "compiler/base/check.h"
#include "executor/kernels/cpu/class_rows.h"

namespace ff::test {
namespace {

/// Calls body with a pointer of the type's element.
template <typename Body>
void with_type(DType type, void* data, Body&& body) {
  switch (type) {
    case DType::f64:
      return body(static_cast<double*>(data));
    case DType::f32:
      return body(static_cast<float*>(data));
    case DType::i64:
      return body(static_cast<int64_t*>(data));
    case DType::i32:
      return body(static_cast<int32_t*>(data));
    case DType::u8:
    case DType::boolean:
      return body(static_cast<uint8_t*>(data));
    default:
      FF_CHECK(false) << "no values of type " << name(type);
  }
}

void write(DType type, const std::vector<int64_t>& at, const std::vector<double>& values, void* data) {
  with_type(type, data, [&](auto* out) {
    for (size_t i = 0; i < at.size(); ++i)
      out[at[i]] = static_cast<std::remove_pointer_t<decltype(out)>>(values[i]);
  });
}

std::vector<double> read(DType type, const std::vector<int64_t>& at, void* data) {
  std::vector<double> values(at.size());
  with_type(type, data, [&](auto* in) {
    for (size_t i = 0; i < at.size(); ++i) values[i] = static_cast<double>(in[at[i]]);
  });
  return values;
}

}  // namespace

std::vector<size_t> elements_of(const Box& box, const Shape& shape) {
  std::vector<size_t> out{0};
  if (box.empty()) return {};
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    std::vector<size_t> finer;
    for (size_t before : out) {
      const Range r = box[static_cast<int>(axis)];
      for (int64_t i = r.lo; i < r.hi; ++i)
        finer.push_back(before * static_cast<size_t>(shape[axis]) + static_cast<size_t>(i));
    }
    out = std::move(finer);
  }
  return out;
}

void CellKernel::Buffer::resize(int64_t size) {
  constexpr size_t kAlignment = 64;
  bytes.resize(static_cast<size_t>(size) + kAlignment);
  const auto address = reinterpret_cast<uintptr_t>(bytes.data());
  data = bytes.data() + (kAlignment - address % kAlignment) % kAlignment;
}

CellKernel::CellKernel(const Graph& graph, OpId id, Cell cell, cpu::Flavor flavor) : cell_(std::move(cell)) {
  const Op& op = graph.op(id);
  call_ = kernel_of(graph, op, cell_);
  ids_ = op.inputs;
  ids_.insert(ids_.end(), op.outputs.begin(), op.outputs.end());
  FF_CHECK_EQ(call_.operands.size(), ids_.size()) << op.name;
  kernel_ = cpu::make_kernel(call_, flavor);
  workspace_.resize(kernel_->workspace_bytes());
  buffers_.resize(ids_.size());
  pointers_.resize(ids_.size(), nullptr);
  offsets_.resize(ids_.size());
  for (size_t i = 0; i < ids_.size(); ++i) {
    const Operand& operand = call_.operands[i];
    if (is_absent(operand)) continue;
    buffers_[i].resize(operand.bytes());
    pointers_[i] = buffers_[i].data;
    offsets_[i] = cpu::row_offsets(operand, -1);
  }
}

bool CellKernel::reads(size_t operand) const {
  return pointers_[operand] != nullptr && call_.operands[operand].access != Access::out;
}

bool CellKernel::writes(size_t operand) const {
  return pointers_[operand] != nullptr && call_.operands[operand].access != Access::in;
}

std::vector<std::vector<double>> CellKernel::run(const std::vector<std::vector<double>>& given,
                                                 const RunContext& context) {
  for (size_t i = 0; i < ids_.size(); ++i) {
    const Operand& operand = call_.operands[i];
    if (reads(i)) {
      FF_CHECK_EQ(given[i].size(), offsets_[i].size()) << "operand " << i << ", " << to_string(operand.shape);
      write(operand.dtype, offsets_[i], given[i], pointers_[i]);
    } else if (pointers_[i] != nullptr) {
      std::memset(pointers_[i], 0xff, static_cast<size_t>(operand.bytes()));
    }
  }
  kernel_->run(pointers_, workspace_.data, context);
  std::vector<std::vector<double>> out(ids_.size());
  for (size_t i = 0; i < ids_.size(); ++i) {
    if (writes(i)) out[i] = read(call_.operands[i].dtype, offsets_[i], pointers_[i]);
  }
  return out;
}

}  // namespace ff::test
