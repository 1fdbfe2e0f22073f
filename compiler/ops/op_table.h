// The op table: one row an op type, forward, backward and update alike; rows stand in one file an op family.
//
// A row says: the types of the outputs, the iteration space with its access maps, the gradient, the staged
// form, the work of a cell, and the kernel call of a cell. Everything else (partition, communication, cost,
// memory, lowering) follows from these.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/ops/op_space.h"
#include "compiler/plan/kernel_call.h"

namespace ff {

struct TensorType {
  Shape shape;
  DType dtype = DType::f32;
};

/// One cell of an op: the block of each iteration dimension, and the boxes of the operands (inputs, then
/// outputs; that of an absent operand is empty with rank 1).
struct Cell {
  std::vector<Range> blocks;
  std::vector<Box> boxes;
};

/// Floating-point operations and bytes moved to and from memory by one cell.
struct Work {
  double flops = 0;
  double bytes = 0;
};

/// Where a gradient rule puts its ops. `gradient_of(t)` is the gradient tensor of a forward tensor, made when
/// first asked for (an invalid id if t takes part in no path from a trained parameter to the loss: then leave
/// that op out).
class GradientBuilder {
 public:
  virtual ~GradientBuilder() = default;
  virtual const Graph& graph() const = 0;
  /// The gradient arriving at an output of the op; invalid if nothing arrives.
  virtual TensorId output_gradient(TensorId output) = 0;
  /// The tensor that the gradient of an input is to be written to; invalid if it is not needed.
  virtual TensorId input_gradient(TensorId input) = 0;
  /// Makes `dy` the gradient of an input of the same shape without a copy, or says false: another op reads
  /// the input too, or it is a parameter. True also where no gradient is needed.
  virtual bool pass_gradient(TensorId input, TensorId dy) = 0;
  /// A gradient between two backward ops of this rule: shape, type, layout and batch axis of `like`.
  virtual TensorId temporary(std::string_view part, TensorId like) = 0;
  /// Appends a backward op; it follows the forward op's config.
  virtual void emit(std::string_view part, std::string type, Attributes attributes,
                    std::vector<TensorId> inputs, std::vector<TensorId> outputs) = 0;
};

/// Where a staged form puts its ops: `temporary` makes a tensor between stages.
class StageBuilder {
 public:
  virtual ~StageBuilder() = default;
  virtual const Graph& graph() const = 0;
  virtual TensorId temporary(std::string_view part, TensorType type) = 0;
  virtual void emit(std::string_view part, std::string type, Attributes attributes,
                    std::vector<TensorId> inputs, std::vector<TensorId> outputs) = 0;
};

struct OpDef {
  std::string_view type;
  std::string_view
      family;  // of the roofline: conv, matmul, pool, norm, elementwise, copy, reduce, update, loss
  /// Output types from the inputs' types and the attributes. Throws UserError("...") without the node's name,
  /// which the caller adds.
  std::vector<TensorType> (*infer)(const Graph&, const Op&) = nullptr;
  OpSpace (*space)(const Graph&, const Op&) = nullptr;
  /// Emits backward ops; null: not differentiable (a gradient that is needed through it is an error naming
  /// the op).
  void (*gradient)(const Op&, GradientBuilder&) = nullptr;
  /// The names of the dimensions whose split needs the staged form, and the emitter of it; null: one form
  /// only.
  std::vector<std::string_view> stage_dims;
  void (*stages)(const Op&, StageBuilder&) = nullptr;
  Work (*work)(const Graph&, const Op&, const Cell&) = nullptr;  // null: no flops, the bytes of the operands
  /// Null: kernel `type`, the op's attributes, the boxes' shapes.
  KernelCall (*kernel)(const Graph&, const Op&, const Cell&) = nullptr;
  bool row_major = false;  // its operands are no images: they lie in rows, whatever they are computed from
  bool forward_in_eval =
      true;  // false: no part of eval_step although its phase is forward (the update of running statistics)
};

/// The row of a type; InternalError if there is none.
const OpDef& op_def(std::string_view type);
/// The row, or null.
const OpDef* find_op_def(std::string_view type);
std::span<const OpDef> all_op_defs();

// What the rest of the compiler calls.

/// The op's space, with the Sample role given to dimensions that run along a batch axis (Tensor::batch_axis
/// of its operands) and taken from those that do not.
OpSpace space_of(const Graph& graph, OpId op);
/// The boxes of a cell with these blocks.
Cell cell_of(const Graph& graph, const Op& op, const OpSpace& space, std::span<const Range> blocks);
Work work_of(const Graph& graph, const Op& op, const Cell& cell);
KernelCall kernel_of(const Graph& graph, const Op& op, const Cell& cell);
/// The call of a row without a `kernel` of its own: the op's attributes, the boxes' shapes. A tensor that is
/// an input and an output is passed once, inout, at the input's place; the output's place is absent.
KernelCall default_call(const Graph& graph, const Op& op, const Cell& cell);

}  // namespace ff
