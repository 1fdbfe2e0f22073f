// Small graphs of one op, for every op of the op table: what gradients and regions are tested on. A new op
// has its cases here; every_op_test.cc fails without them.
//
//   const OneOp c("MatMul", {}, {{"a", {2, 3}}, {"b", {3, 4}}});
//   evaluate(c.graph, random_inputs(c)).at("y");                  // 2x4
#pragma once

#include <string>
#include <vector>

#include "test/support/evaluate.h"

namespace ff::test {

struct Input {
  std::string name;  // empty: absent
  Shape shape;
  DType dtype = DType::f64;
};

/// A graph of one op over the given inputs. `in_place`: the inputs that it writes; none: it writes "y",
/// "y/1",
/// ...
struct OneOp {
  Graph graph;
  OpId op;

  OneOp(std::string type, Attributes attributes, const std::vector<Input>& inputs,
        const std::vector<size_t>& in_place = {});
  TensorId input(size_t i) const { return graph.op(op).inputs[i]; }
};

struct OpCase {
  OneOp op;
  std::vector<size_t> wanted;  // the inputs whose gradients there are
  int64_t classes = 1;         // integers of the op are in [0, classes)
  bool positive = false;       // floats are in [0.5, 1.5), not around 0
  size_t arriving = 1;         // gradients arrive at so many of the op's outputs
  double scale = 1;            // of floats
  std::string inexact = {};    // why boxes are larger than what cells touch; empty: they are not

  const std::string& type() const { return op.graph.op(op.op).type; }
};

/// At least one case of every op that no rule makes: those that rules make (gradients, stages) follow.
std::vector<OpCase> op_cases();
/// Those of elementwise ops and of reductions, of elementwise_cases.cc.
void add_elementwise(std::vector<OpCase>& out);
void add_reductions(std::vector<OpCase>& out);
/// Those of recurrent layers, of recurrent_cases.cc.
void add_recurrent(std::vector<OpCase>& out);
/// Those of ops that index, of index_cases.cc.
void add_indexing(std::vector<OpCase>& out);
/// Those of ops on images, but for the oldest, of image_cases.cc.
void add_image_ops(std::vector<OpCase>& out);

std::vector<double> random_values(const Shape& shape, unsigned seed, double scale = 1);
/// Values of the float inputs; each has a seed of its own.
Values random_inputs(const OneOp& c, unsigned seed = 1);
/// Values of all inputs, as the case wants them.
Values random_inputs(const OpCase& c, unsigned seed);

/// Infinite if one is NaN where the other is not that.
double largest_difference(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace ff::test
