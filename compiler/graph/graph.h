// The graph: ops over tensors, for inference as imported and for training as differentiated. Values only;
// what an op means is in the op table (compiler/ops).
//
// A tensor may have several writers: the gradient of a tensor that two ops read is written by both, and an
// element's value is the sum of what they wrote (no gradient-add ops). A parameter is written by its update
// op, for the next step.
//
// Ops share configs: a backward op runs as its forward op is split (`config_of`). Some ops exist in two
// forms, of which the strategy picks one: `fused`, one kernel, where no dimension it reduces over is split,
// and `staged`, several ops linked by small reduced tensors, where one is (batch normalisation, softmax,
// cross-entropy).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/attributes.h"
#include "compiler/base/box.h"
#include "compiler/base/dtype.h"
#include "compiler/base/ids.h"
#include "compiler/base/view.h"

namespace ff {

enum class TensorKind : uint8_t {
  activation,  // written by an op each step
  input,       // read from data by every device that needs it
  parameter,   // persistent: trained, frozen or state
  gradient,    // like an activation, but elements that nobody writes are zero
};

enum class ParameterRole : uint8_t { trained, frozen, state };

/// Where a parameter's initial value comes from.
struct ParameterSource {
  ParameterRole role = ParameterRole::trained;
  enum class Kind : uint8_t { initializer, fill, inlined } kind = Kind::initializer;
  std::string model_name;  // the initializer's (or Constant node's output's) name in the model; empty if made
                           // by the compiler
  Shape model_shape;       // before the views
  DType model_dtype = DType::f32;
  double fill = 0;
  std::string bytes;  // inlined: little-endian, row-major, of the graph tensor's dtype and shape
  std::vector<View> views;
};

struct Tensor {
  std::string name;
  Shape shape;
  DType dtype = DType::f32;
  Layout layout = Layout::row_major;
  TensorKind kind = TensorKind::activation;
  int batch_axis = -1;     // the axis that counts samples; -1: none
  ParameterSource source;  // parameters only
};

enum class Phase : uint8_t { forward, backward, update };

struct Op {
  std::string name;  // its ONNX node's, else its first output's; parts of a decomposed op are name/part
  std::string type;  // a row of the op table: "Conv", "ConvGradData", ...
  Attributes attributes;
  std::vector<TensorId> inputs;   // an invalid id: an optional input that is not there
  std::vector<TensorId> outputs;  // likewise
  Phase phase = Phase::forward;
  OpId config_of;  // the op whose config this one follows; itself if it has its own
  OpId stage_of;   // for an op of a staged form: the op whose fused form it replaces
};

class Graph {
 public:
  std::string name;
  std::vector<Op> ops;  // in a topological order
  std::vector<Tensor> tensors;
  std::vector<TensorId> inputs;   // data, labels last
  std::vector<TensorId> outputs;  // the model's
  TensorId loss;                  // a scalar; invalid in an inference graph
  int64_t batch = 0;              // samples in a step

  Op& op(OpId id) { return ops[id.index()]; }
  const Op& op(OpId id) const { return ops[id.index()]; }
  Tensor& tensor(TensorId id) { return tensors[id.index()]; }
  const Tensor& tensor(TensorId id) const { return tensors[id.index()]; }

  TensorId add_tensor(Tensor tensor);
  /// Appends an op; `config_of` defaults to the op itself.
  OpId add_op(Op op);
};

/// Checks ids, order (an activation is written before it is read), and that configs are followed one step
/// only. Throws InternalError naming the op.
void verify(const Graph& graph);

/// Canonical text: inputs, parameters, ops in order, a line each. Equal graphs, equal text.
std::string to_string(const Graph& graph);

}  // namespace ff
