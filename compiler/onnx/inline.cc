// Nodes that stand for other nodes: calls of functions that the model brings along, If with a condition that
// is known now, Loop with a trip count that is known now. Their bodies take their place.
//
//   y = MyGelu(x)   ->   node "MyGelu_3/erf" (Erf) and the others of the body, which end in the value y
#include <map>

#include "compiler/base/check.h"
#include "compiler/onnx/fold.h"

namespace ff::onnx_import {
namespace {

/// A body that calls itself has no end.
constexpr int kDeepest = 64;
/// An unrolled loop of more turns is a graph that nobody wants.
constexpr int64_t kMostTurns = 4096;

/// No two nodes have the same: what a node without a name makes is its name.
std::string own_name(const onnx::NodeProto& proto) {
  if (!proto.name().empty()) return proto.name();
  return proto.output_size() > 0 ? proto.output(0) : proto.op_type();
}

/// What values and nodes of a body are called where it is put.
class Renaming {
 public:
  explicit Renaming(std::string prefix) : prefix_(std::move(prefix)) {}
  void set(const std::string& inner, const std::string& outer) { names_[inner] = outer; }
  /// A value that the body makes.
  void add_made(const std::string& inner) {
    if (!inner.empty()) names_.try_emplace(inner, prefix_ + inner);
  }
  /// What is not the body's own is the surroundings'.
  std::string value(const std::string& inner) const {
    const auto it = names_.find(inner);
    return it == names_.end() ? inner : it->second;
  }
  std::string node(const onnx::NodeProto& proto) const { return prefix_ + own_name(proto); }

 private:
  std::string prefix_;
  std::map<std::string, std::string> names_;
};

void rename(onnx::GraphProto& graph, Renaming names);

/// A node under its new names, bodies of its own included.
onnx::NodeProto renamed(const onnx::NodeProto& proto, const Renaming& names) {
  onnx::NodeProto out = proto;
  out.set_name(names.node(proto));
  for (auto& in : *out.mutable_input()) in = names.value(in);
  for (auto& made : *out.mutable_output()) made = names.value(made);
  for (auto& a : *out.mutable_attribute()) {
    if (a.has_g()) rename(*a.mutable_g(), names);
  }
  return out;
}

/// Values that a nested body makes hide those of the same name outside of it.
void rename(onnx::GraphProto& graph, Renaming names) {
  for (const auto& input : graph.input()) names.set(input.name(), input.name());
  for (const auto& init : graph.initializer()) names.set(init.name(), init.name());
  for (const auto& node : graph.node()) {
    for (const std::string& made : node.output()) names.set(made, made);
  }
  for (auto& node : *graph.mutable_node()) {
    const std::string name = node.name();
    node = renamed(node, names);
    node.set_name(name);
  }
  for (auto& output : *graph.mutable_output()) output.set_name(names.value(output.name()));
}

using Key = std::pair<std::string, std::string>;  // domain and name

Key key_of(const std::string& domain, const std::string& name) {
  return {domain == "ai.onnx" ? "" : domain, name};
}

/// Defaults of a function's attributes, which older versions of the format lack.
template <typename Function>
void add_defaults(const Function& f, std::map<std::string, onnx::AttributeProto>& given) {
  if constexpr (requires { f.attribute_proto(); }) {
    for (const auto& a : f.attribute_proto()) given.try_emplace(a.name(), a);
  }
}

class Functions {
 public:
  Functions(const onnx::ModelProto& model, std::unordered_map<const onnx::NodeProto*, int64_t>& opsets)
      : opsets_(opsets) {
    for (const auto& f : model.functions()) by_name_[key_of(f.domain(), f.name())] = &f;
  }

  bool none() const { return by_name_.empty(); }

  /// Appends the node, or what it calls. `opset`: of a body that names another than the model; else 0.
  void append(const onnx::NodeProto& node, int64_t opset, int depth,
              google::protobuf::RepeatedPtrField<onnx::NodeProto>& out) {
    const auto it = by_name_.find(key_of(node.domain(), node.op_type()));
    if (it == by_name_.end()) {
      onnx::NodeProto* added = out.Add();
      *added = node;
      if (opset != 0) opsets_[added] = opset;
      return;
    }
    const onnx::FunctionProto& f = *it->second;
    if (depth == kDeepest) throw UserError("function '" + f.name() + "' calls itself");
    Renaming names(own_name(node) + "/");
    for (const auto& body : f.node()) {
      for (const std::string& made : body.output()) names.add_made(made);
    }
    for (int i = 0; i < f.input_size(); ++i)
      names.set(f.input(i), i < node.input_size() ? node.input(i) : "");
    for (int i = 0; i < f.output_size() && i < node.output_size(); ++i) {
      if (!node.output(i).empty()) names.set(f.output(i), node.output(i));
    }
    std::map<std::string, onnx::AttributeProto> given;
    for (const auto& a : node.attribute()) given[a.name()] = a;
    add_defaults(f, given);
    for (const auto& set : f.opset_import()) {
      if (set.domain().empty() || set.domain() == "ai.onnx") opset = set.version();
    }
    for (const auto& body : f.node())
      append(with_attributes(renamed(body, names), given), opset, depth + 1, out);
  }

 private:
  using Given = std::map<std::string, onnx::AttributeProto>;

  /// Attributes that refer to those of the call have their values, or are left out; those of nested bodies
  /// too.
  static onnx::NodeProto with_attributes(const onnx::NodeProto& node, const Given& given) {
    onnx::NodeProto out = node;
    out.clear_attribute();
    for (const auto& a : node.attribute()) {
      const auto it = given.find(a.ref_attr_name());
      if (!a.ref_attr_name().empty() && it == given.end()) continue;
      auto& added = *out.add_attribute();
      added = a.ref_attr_name().empty() ? a : it->second;
      added.set_name(a.name());
      if (!added.has_g()) continue;
      for (auto& inner : *added.mutable_g()->mutable_node()) inner = with_attributes(inner, given);
    }
    return out;
  }

  std::map<Key, const onnx::FunctionProto*> by_name_;
  std::unordered_map<const onnx::NodeProto*, int64_t>& opsets_;
};

}  // namespace

void Importer::expand_functions() {
  Functions functions(model_, opsets_);
  if (functions.none()) return;
  google::protobuf::RepeatedPtrField<onnx::NodeProto> out;
  try {
    for (const auto& node : model_.graph().node()) functions.append(node, 0, 0, out);
  } catch (const UserError& e) {
    throw UserError(path_ + ": " + e.what(), e.hint());
  }
  model_.mutable_graph()->mutable_node()->Swap(&out);
}

void for_each_outer_input(const onnx::GraphProto& body,
                          const std::function<void(const std::string&)>& visit) {
  std::set<std::string> own;
  for (const auto& input : body.input()) own.insert(input.name());
  for (const auto& init : body.initializer()) own.insert(init.name());
  for (const auto& node : body.node()) {
    const auto read = [&](const std::string& name) {
      if (!name.empty() && !own.contains(name)) visit(name);
    };
    for (const std::string& in : node.input()) read(in);
    for (const auto& a : node.attribute()) {
      if (a.has_g()) for_each_outer_input(a.g(), read);
    }
    for (const std::string& made : node.output()) own.insert(made);
  }
  for (const auto& output : body.output()) {
    if (!own.contains(output.name())) visit(output.name());
  }
}

/// Imports a copy of a node's body; returns the names of its outputs.
std::vector<std::string> Importer::import_body(const onnx::GraphProto& graph, const std::string& owner,
                                               const std::string& part,
                                               const std::vector<std::string>& inputs) {
  Renaming names(owner + "/" + part);
  for (int i = 0; i < graph.input_size(); ++i)
    names.set(graph.input(i).name(),
              i < static_cast<int>(inputs.size()) ? inputs[static_cast<size_t>(i)] : "");
  // Every turn of a loop reads the same weights.
  for (const auto& init : graph.initializer()) {
    const std::string name = owner + "/" + init.name();
    names.set(init.name(), name);
    if (!values_.contains(name)) values_[name] = weight_value(init, name);
  }
  for (const auto& node : graph.node()) {
    for (const std::string& made : node.output()) names.add_made(made);
  }
  for (const auto& node : graph.node()) {
    inlined_.push_back(renamed(node, names));
    const onnx::NodeProto& copy = inlined_.back();
    for (const std::string& in : copy.input()) ++readers_[in];
    for (const auto& a : copy.attribute()) {
      if (a.has_g()) for_each_outer_input(a.g(), [&](const std::string& in) { ++readers_[in]; });
    }
  }
  std::vector<std::string> outputs;
  for (const auto& output : graph.output()) {
    outputs.push_back(names.value(output.name()));
    ++readers_[outputs.back()];
  }
  const size_t first = inlined_.size() - static_cast<size_t>(graph.node_size());
  for (size_t i = first, end = inlined_.size(); i < end; ++i) import_node(inlined_[i]);
  return outputs;
}

bool Node::inline_body(const std::string& attribute_name, const std::string& part,
                       const std::vector<std::string>& inputs, std::vector<std::string>& outputs) {
  const auto* body = attribute(attribute_name);
  if (body == nullptr || !body->has_g()) throw UserError("has no graph '" + attribute_name + "'");
  outputs = importer_.import_body(body->g(), name_, part, inputs);
  const auto known = [&](const std::string& out) { return importer_.values_.contains(out); };
  if (std::any_of(outputs.begin(), outputs.end(), known)) return true;
  for (int i = 0; i < output_count(); ++i) inherit(outputs.back(), i);
  return false;
}

void Node::inherit(const std::string& name, int output) {
  if (const auto it = importer_.values_.find(name); it != importer_.values_.end())
    return result(it->second, output);
  if (const auto it = importer_.missing_.find(name); it != importer_.missing_.end())
    importer_.missing_.emplace(proto_.output(output), it->second);
}

const Value& Node::named(const std::string& name) const { return importer_.values_.at(name); }
void Node::name_value(const std::string& name, const Value& value) { importer_.values_[name] = value; }

/// The branch that the condition chooses.
void import_if(Node& node) {
  const auto condition = node.constant(0);
  if (!condition) throw Unsupported("control flow: its condition is not known before the model runs");
  std::vector<std::string> outputs;
  if (!node.inline_body(condition->integer(0) != 0 ? "then_branch" : "else_branch", "", {}, outputs)) return;
  for (int i = 0; i < node.output_count(); ++i) node.inherit(outputs.at(static_cast<size_t>(i)), i);
}

/// Whether a loop's body hands its condition on as it is, or a constant: what is computed anew in every turn
/// is control flow.
bool constant_condition(const onnx::GraphProto& body) {
  if (body.input_size() < 2 || body.output_size() < 1) throw UserError("has a body without a condition");
  std::string out = body.output(0).name();
  for (int i = body.node_size(); i-- > 0;) {
    const auto& node = body.node(i);
    if (std::find(node.output().begin(), node.output().end(), out) == node.output().end()) continue;
    if (node.op_type() == "Constant") return true;
    if (node.op_type() != "Identity" && node.op_type() != "Cast") return false;
    out = node.input(0);
  }
  return true;
}

/// Turn after turn. Values that are scanned (one a turn) are stacked by Unsqueeze and Concat.
void import_loop(Node& node) {
  const auto trips = node.has(0) ? node.constant(0) : std::nullopt;
  if (!trips) throw Unsupported("control flow: its trip count is not known before the model runs");
  const int64_t turns = trips->integer(0);
  if (turns > kMostTurns)
    throw Unsupported("control flow: " + std::to_string(turns) + " turns are too many to unroll");
  const auto* body = node.attribute("body");
  if (body != nullptr && !constant_condition(body->g()))
    throw Unsupported("control flow: its condition is computed in every turn");
  const int carried = node.input_count() - 2;
  bool goes_on = true;
  if (node.has(1)) {
    const auto condition = node.constant(1);
    if (!condition) throw Unsupported("control flow: its condition is not known before the model runs");
    goes_on = condition->integer(0) != 0;
  }
  std::vector<std::string> state;
  for (int i = 0; i < carried; ++i) state.push_back(node.proto().input(i + 2));
  std::vector<std::vector<std::string>> scanned(static_cast<size_t>(node.output_count() - carried));
  for (int64_t turn = 0; turn < turns && goes_on; ++turn) {
    const std::string part = "turn" + std::to_string(turn) + "/";
    const std::string number = node.name() + "/" + part + "number",
                      yes = node.name() + "/" + part + "condition";
    node.name_value(number, Value::of(Constant::of_ints({}, {turn}), number));
    node.name_value(yes, Value::of(generate_integers(DType::boolean, {}, [](int64_t) { return 1; }), yes));
    std::vector<std::string> inputs{number, yes}, outputs;
    inputs.insert(inputs.end(), state.begin(), state.end());
    if (!node.inline_body("body", part, inputs, outputs)) return;
    const Value& next = node.named(outputs.at(0));
    if (next.kind != Value::Kind::constant)
      throw Unsupported("control flow: its condition is not known before the model runs");
    goes_on = next.constant->integer(0) != 0;
    state.assign(outputs.begin() + 1, outputs.begin() + 1 + carried);
    for (size_t i = 0; i < scanned.size(); ++i)
      scanned[i].push_back(outputs.at(static_cast<size_t>(carried) + 1 + i));
  }
  for (int i = 0; i < carried; ++i) node.inherit(state[static_cast<size_t>(i)], i);
  for (size_t i = 0; i < scanned.size(); ++i) {
    if (scanned[i].empty()) throw Unsupported("dynamic shape: a loop without turns has no scanned value");
    node.stack(scanned[i], carried + static_cast<int>(i));
  }
}

void Node::stack(const std::vector<std::string>& names, int output) {
  if (!output_used(output)) return;
  onnx::NodeProto concat;
  concat.set_op_type("Concat");
  concat.set_name(name_ + "/stack" + std::to_string(output));
  concat.add_output(proto_.output(output));
  auto& axis = *concat.add_attribute();
  axis.set_name("axis");
  axis.set_type(onnx::AttributeProto::INT);
  axis.set_i(0);
  std::vector<onnx::NodeProto> nodes;
  for (size_t i = 0; i < names.size(); ++i) {
    onnx::NodeProto unsqueeze;
    const std::string name = concat.name() + "/" + std::to_string(i);
    unsqueeze.set_op_type("Unsqueeze");
    unsqueeze.set_name(name);
    unsqueeze.add_input(names[i]);
    unsqueeze.add_output(name);
    auto& axes = *unsqueeze.add_attribute();
    axes.set_name("axes");
    axes.set_type(onnx::AttributeProto::INTS);
    axes.add_ints(0);
    concat.add_input(name);
    nodes.push_back(std::move(unsqueeze));
  }
  nodes.push_back(std::move(concat));
  for (onnx::NodeProto& made : nodes) {
    for (const std::string& in : made.input()) ++importer_.readers_[in];
    importer_.inlined_.push_back(std::move(made));
    importer_.import_node(importer_.inlined_.back());
  }
}

}  // namespace ff::onnx_import
