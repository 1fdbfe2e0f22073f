// The importer's state, and one node as a translation rule sees it. A rule reads attributes and inputs, emits
// ops and says what the node's outputs are:
//
//   void import_relu(Node& node) { node.result(node.emit("Relu", {}, {node.operand(0)})); }
//
// Rules throw Unsupported for what they cannot translate; the importer collects these and goes on with the
// next node.
#pragma once

#include <onnx/onnx_pb.h>

#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>
#include <unordered_map>

#include "compiler/onnx/import.h"
#include "compiler/onnx/value.h"

namespace ff::onnx_import {

/// A node that cannot be translated, and why.
class Unsupported : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What an op does with an operand, which decides whether a weight there is trained.
enum class Use : uint8_t {
  data,         // frozen
  weight,       // trained: convolution, matmul, normalisation
  elementwise,  // trained if its rank is 1 or more and it is an initializer
  statistics,   // frozen, whatever --train says
  state,        // updated by an op of its own
};

class Importer {
 public:
  Importer(std::string path, const ImportOptions& options);
  ImportedModel run();

 private:
  friend class Node;

  void parse();
  void check_opsets();
  void refuse_old_nodes();
  void expand_functions();
  std::vector<const onnx::NodeProto*> needed_nodes();
  void import_inputs();
  void import_input(const onnx::ValueInfoProto& info);
  int64_t bind_dim(const onnx::ValueInfoProto& info, int axis, int batch_axis);
  void note_missing_data();
  void import_initializers();
  void import_node(const onnx::NodeProto& proto);
  std::vector<std::string> import_body(const onnx::GraphProto& graph, const std::string& owner,
                                       const std::string& part, const std::vector<std::string>& inputs);
  bool misses_input(const onnx::NodeProto& proto);
  void refuse_missing_outputs();
  void refuse(const onnx::NodeProto& proto, const std::string& reason);
  void import_outputs();
  void inline_number(Tensor& t);
  void decide_roles();
  bool is_mask(const Weight& weight) const;
  void throw_if_unsupported();

  Value weight_value(const onnx::TensorProto& proto, const std::string& name);
  TensorId materialize(Value& value, Use use);
  TensorId materialize_weight(Weight& weight, Use use);
  void strengthen(TensorId tensor, Use use);
  void note_moves(const Op& op);
  TensorId add_op(Op op, const std::vector<std::string>& names);
  void propagate_batch(const Op& op);
  std::string unique(std::set<std::string>& taken, const std::string& name);
  std::vector<std::string> output_names() const;
  int64_t opset_of(const onnx::NodeProto& proto) const;

  std::string path_;
  const ImportOptions& options_;
  onnx::ModelProto model_;
  int64_t opset_ = 0;
  std::unordered_map<const onnx::NodeProto*, int64_t> opsets_;  // of nodes whose function names its own
  std::deque<onnx::NodeProto> inlined_;                         // nodes of bodies, under their new names
  ImportedModel result_;
  std::unordered_map<std::string, Value> values_;
  std::unordered_map<std::string, std::string> untyped_;  // initializers of types that are not computed with
  std::unordered_map<std::string, const onnx::TensorProto*>
      tensors_;                                   // initializers and Constant nodes by name
  std::unordered_map<std::string, int> readers_;  // how many nodes read a name
  std::set<std::string> wanted_outputs_;
  std::map<std::string, int64_t> bound_dims_;
  std::map<std::string, UnsupportedNode> missing_;  // values that are not computed, and what depends on them
  std::unordered_map<int32_t, Use> uses_;           // the strongest use of a parameter, by tensor
  std::unordered_map<int32_t, std::vector<TensorId>>
      moved_;  // tensors that are parameters moved about: of which
  std::set<std::string> op_names_;
  std::set<std::string> tensor_names_;
  int64_t old_batch_ = 0;  // the fixed batch of the model, if it was replaced
};

class Node {
 public:
  Node(Importer& importer, const onnx::NodeProto& proto);

  int64_t opset() const { return importer_.opset_of(proto_); }
  const ImportOptions& options() const { return importer_.options_; }
  const Graph& graph() const { return importer_.result_.graph; }
  const onnx::NodeProto& proto() const { return proto_; }
  const std::string& name() const { return name_; }
  /// The batch that the model was written for, if --batch replaced it; else 0.
  int64_t old_batch() const { return importer_.old_batch_; }

  bool has_attribute(const std::string& name) const { return attribute(name) != nullptr; }
  const onnx::AttributeProto* attribute(const std::string& name) const;
  int64_t integer(const std::string& name, int64_t otherwise) const;
  double real(const std::string& name, double otherwise) const;
  std::string string(const std::string& name, const std::string& otherwise) const;
  Ints ints(const std::string& name, const Ints& otherwise) const;

  int input_count() const { return proto_.input_size(); }
  int output_count() const { return proto_.output_size(); }
  bool has(int input) const;
  const Value& value(int input) const;
  Shape shape(int input) const;
  DType dtype(int input) const;
  /// The input as a tensor of the graph; invalid if the optional input is not there.
  TensorId operand(int input, Use use = Use::data);
  /// The input's values where they are known now: folded constants, and initializers (through views) of so
  /// many elements at most.
  std::optional<Constant> constant(int input, int64_t largest = 4096) const;
  /// The same; not known is Unsupported, naming the input by `what`.
  Constant required(int input, const std::string& what) const;
  /// Axes or a shape: from the attribute, or from the input in later opsets. None: not given.
  std::optional<Ints> ints_of(const std::string& attribute, int input) const;
  /// A float constant as an operand.
  TensorId scalar(const std::string& part, double value, DType dtype);
  /// A constant as an operand.
  TensorId frozen(const std::string& part, Constant value);

  /// Appends an op and returns its outputs. `part` "" is the node's own op.
  std::vector<TensorId> emit_all(const std::string& part, const std::string& type, Attributes attributes,
                                 std::vector<TensorId> inputs);
  TensorId emit(const std::string& type, Attributes attributes, std::vector<TensorId> inputs,
                const std::string& part = "");
  /// The node's output of this number is the first of an op, which has its name.
  TensorId emit_output(int output, const std::string& type, Attributes attributes,
                       std::vector<TensorId> inputs);
  /// An update op whose outputs are these tensors.
  void emit_update(const std::string& part, const std::string& type, Attributes attributes,
                   std::vector<TensorId> inputs, std::vector<TensorId> outputs);

  /// Imports the graph that an attribute holds, in the node's place; `outputs` are the names of its outputs.
  /// False: something in it was refused.
  bool inline_body(const std::string& attribute_name, const std::string& part,
                   const std::vector<std::string>& inputs, std::vector<std::string>& outputs);
  /// An output is the value of this name, or misses what that misses.
  void inherit(const std::string& name, int output);
  const Value& named(const std::string& name) const;
  void name_value(const std::string& name, const Value& value);
  /// An output that is these values along a new first axis.
  void stack(const std::vector<std::string>& names, int output);

  bool output_used(int output) const;
  /// Whether all that reads the first output are resizes, as their scales.
  bool gives_scales() const;
  void result(TensorId tensor, int output = 0);
  void result(Constant constant, int output = 0);
  void result(const Value& value, int output = 0);
  /// The output is not computed: an error only if an output of the model depends on it.
  void leave_out(int output, const std::string& reason);
  /// The node's output is this tensor of the file: a constant, or a weight.
  void weight(const onnx::TensorProto& proto, const std::string& name);
  /// The result is the input: the same weight or constant under another name, or a copy of a tensor.
  void alias();
  /// The input seen through a view, if it is a weight that nothing else reads.
  bool view(const std::string& kind, Attributes attributes, Shape shape) {
    return view({{kind, std::move(attributes)}}, std::move(shape));
  }
  bool view(const std::vector<View>& views, Shape shape);
  void note(const std::string& text) { importer_.result_.notes.push_back(text); }

 private:
  std::vector<TensorId> append(const std::string& name, const std::string& type, Attributes attributes,
                               std::vector<TensorId> inputs, const std::vector<std::string>& names);

  Importer& importer_;
  const onnx::NodeProto& proto_;
  std::string name_;
};

/// A row of the translation table.
struct NodeRule {
  std::string_view type;
  int64_t since;  // the lowest opset whose meaning the rule knows
  void (*import)(Node&);
};

/// The axes that count samples of inputs that recurrent layers read, by input.
std::map<std::string, int> recurrent_sample_axes(const Graph& graph);

/// Calls `visit` for every value of the surroundings that a body reads.
void for_each_outer_input(const onnx::GraphProto& body, const std::function<void(const std::string&)>& visit);

/// Why an op without a row is refused.
std::string refusal_of(std::string_view type);
/// The row of an op type, or null.
const NodeRule* find_rule(std::string_view type);
/// Folds a node whose inputs are all known now; false if it is none that is folded.
bool fold(Node& node);

/// The opsets whose meaning the rules know.
inline constexpr int64_t kOldestOpset = 7;
inline constexpr int64_t kNewestOpset = 24;

/// "node 'conv1' (Conv)"
std::string node_text(const onnx::NodeProto& proto);
/// Whether a pattern with * and ? matches.
bool matches(std::string_view pattern, std::string_view name);

}  // namespace ff::onnx_import
