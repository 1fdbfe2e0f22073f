// What cells really touch: the pairs (element read, element written) of an op where a change of the one
// changes the other. Found by running kernels on changed values; of access maps it knows the boxes that the
// kernels are given.
//
//   Touched whole(op), halves(op);     // y = x, 4 elements
//   whole.add(rows_0_4);               // {x[0] y[0], x[1] y[1], x[2] y[2], x[3] y[3]}
//   halves.add(rows_0_2);              // {x[0] y[0], x[1] y[1]}: halves.missing(whole) is "x[2] with y[2]"
#pragma once

#include "test/support/cell_kernel.h"
#include "test/support/evaluate.h"

namespace ff::test {

/// An op with the values of all tensors that it reads.
struct ValuedOp {
  const Graph* graph = nullptr;
  OpId id;
  Values values;
  RunContext context;
  int64_t classes = 1;  // integers are in [0, classes)

  const Op& op() const { return graph->op(id); }
  const Tensor& tensor(TensorId t) const { return graph->tensor(t); }
};

class Touched {
 public:
  explicit Touched(const ValuedOp& op);

  /// Adds the pairs of one cell, and what it writes to the result. Returns for each operand the hull of what
  /// the cell touches; of volume 0 where it touches nothing.
  std::vector<Box> add(const Cell& cell);
  /// Adds what one cell writes to the result, and no pairs.
  void run(const Cell& cell, cpu::Flavor flavor);
  /// The first pair of `whole` that is not here; empty if there is none.
  std::string missing(const Touched& whole) const;
  /// Every tensor that the op writes: the sum (or the maximum) of what the cells wrote; NaN where none did.
  const std::map<TensorId, std::vector<double>>& result() const { return result_; }

 private:
  using Elements = std::vector<size_t>;  // of a box, as indices into its tensor
  struct Trial;                          // a cell's kernel with its values, and what it gives
  Trial try_cell(const Cell& cell, cpu::Flavor flavor);
  void combine(TensorId id, Combiner combiner, const Elements& at, const std::vector<double>& written);
  std::vector<double> alternatives(TensorId id, double value) const;
  std::string element_name(size_t element) const;

  const ValuedOp& op_;
  std::vector<size_t> first_;  // by tensor: where its elements begin among those of all tensors
  size_t elements_ = 0;
  std::vector<bool> pairs_;  // elements_ x elements_
  std::map<TensorId, std::vector<double>> result_;
};

}  // namespace ff::test
