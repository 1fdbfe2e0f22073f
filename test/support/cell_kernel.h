// One cell of an op, run by its kernel, which sees the cell's boxes and nothing else.
//
//   CellKernel half(graph, op, cell_of(graph, op, space, blocks));    // rows [0, 2) of y = x + 1, x [4]
//   half.run({{1, 2}, {}});                                           // {{}, {2, 3}}: by operand
#pragma once

#include <memory>
#include <vector>

#include "compiler/ops/op_table.h"
#include "executor/kernels/cpu/registry.h"

namespace ff::test {

/// The elements of a box as indices into a tensor of `shape`, all in logical order.
std::vector<size_t> elements_of(const Box& box, const Shape& shape);

class CellKernel {
 public:
  CellKernel(const Graph& graph, OpId op, Cell cell, cpu::Flavor flavor = cpu::Flavor::fast);

  /// The op's inputs, then its outputs.
  size_t operands() const { return ids_.size(); }
  TensorId tensor(size_t operand) const { return ids_[operand]; }
  const Box& box(size_t operand) const { return cell_.boxes[operand]; }
  /// An operand that is there and whose box is not empty. One that is an input and an output is both, at the
  /// input's place.
  bool reads(size_t operand) const;
  bool writes(size_t operand) const;

  /// `given`: by operand, the values of the boxes that are read, in the logical order of their dimensions.
  /// The values of the boxes that are written: NaN (integers: -1) where nothing was.
  std::vector<std::vector<double>> run(const std::vector<std::vector<double>>& given,
                                       const RunContext& context = {});

 private:
  /// 64-byte aligned memory.
  struct Buffer {
    std::vector<std::byte> bytes;
    void* data = nullptr;
    void resize(int64_t size);
  };

  Cell cell_;
  std::vector<TensorId> ids_;
  KernelCall call_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<Buffer> buffers_;
  std::vector<void*> pointers_;
  std::vector<std::vector<int64_t>> offsets_;  // of each element of a box in its buffer
  Buffer workspace_;
};

}  // namespace ff::test
