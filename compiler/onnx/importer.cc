#include "compiler/onnx/importer.h"

#include <algorithm>
#include <cstring>

#include "compiler/base/check.h"
#include "compiler/base/model_data.h"
#include "compiler/ops/op_table.h"

namespace ff::onnx_import {
std::string node_text(const onnx::NodeProto& proto) {
  const std::string name = !proto.name().empty()     ? proto.name()
                           : proto.output_size() > 0 ? proto.output(0)
                                                     : "?";
  return "node '" + name + "' (" + proto.op_type() + ")";
}

bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] == '*')
    return matches(pattern.substr(1), name) || (!name.empty() && matches(pattern, name.substr(1)));
  return !name.empty() && (pattern[0] == '?' || pattern[0] == name[0]) &&
         matches(pattern.substr(1), name.substr(1));
}

Importer::Importer(std::string path, const ImportOptions& options)
    : path_(std::move(path)), options_(options) {}

ImportedModel Importer::run() {
  result_.file = path_;
  parse();
  check_opsets();
  expand_functions();
  const auto nodes = needed_nodes();
  import_initializers();
  import_inputs();
  for (const onnx::NodeProto* node : nodes) import_node(*node);
  refuse_missing_outputs();
  throw_if_unsupported();
  if (result_.unsupported.empty()) import_outputs();
  decide_roles();
  return std::move(result_);
}

void Importer::parse() {
  const MappedFile file(path_);
  const std::string_view bytes = file.bytes();
  if (!model_.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || !model_.has_graph() ||
      model_.graph().node_size() == 0) {
    throw_not_a_model(path_, bytes);
  }
  result_.graph.name = model_.graph().name();
}

void Importer::check_opsets() {
  for (const auto& set : model_.opset_import()) {
    if (set.domain().empty() || set.domain() == "ai.onnx") opset_ = set.version();
  }
  if (opset_ == 0) throw UserError(path_ + ": names no version of the standard operator set");
  if (opset_ < kOldestOpset) refuse_old_nodes();
  if (opset_ > kNewestOpset) {
    result_.notes.push_back("opset " + std::to_string(opset_) + " is newer than " +
                            std::to_string(kNewestOpset) +
                            ", the newest that is known here; nodes are read with the meaning of that one");
  }
}

/// Of an older opset only nodes are read that have not changed since.
void Importer::refuse_old_nodes() {
  for (const auto& node : model_.graph().node()) {
    const NodeRule* rule = find_rule(node.op_type());
    if (rule != nullptr && rule->since <= opset_) continue;
    throw UserError(path_ + ": opset " + std::to_string(opset_) + " is older than " +
                        std::to_string(kOldestOpset) + ", and " + node_text(node) +
                        " may mean something else there",
                    "export the model again with opset 17");
  }
}

std::vector<std::string> Importer::output_names() const {
  if (!options_.outputs.empty()) return options_.outputs;
  std::vector<std::string> names;
  for (const auto& info : model_.graph().output()) names.push_back(info.name());
  return names;
}

/// A function of another opset is read with the meaning of that one.
int64_t Importer::opset_of(const onnx::NodeProto& proto) const {
  const auto it = opsets_.find(&proto);
  return it == opsets_.end() ? opset_ : it->second;
}

/// What a node reads, its bodies included.
static void for_each_input(const onnx::NodeProto& node,
                           const std::function<void(const std::string&)>& visit) {
  for (const std::string& in : node.input()) visit(in);
  for (const auto& a : node.attribute()) {
    if (a.has_g()) for_each_outer_input(a.g(), visit);
  }
}

/// The nodes that the wanted outputs depend on, in the file's order (which ONNX says is topological).
std::vector<const onnx::NodeProto*> Importer::needed_nodes() {
  std::unordered_map<std::string, int> producer;
  const auto& nodes = model_.graph().node();
  for (int i = 0; i < nodes.size(); ++i) {
    for (const std::string& out : nodes[i].output()) producer.emplace(out, i);
  }
  std::vector<std::string> stack = output_names();
  for (const std::string& name : stack) {
    wanted_outputs_.insert(name);
    if (!producer.contains(name) && !options_.outputs.empty()) {
      throw UserError(path_ + ": no node produces '" + name + "', which --output names");
    }
  }
  std::vector<bool> needed(static_cast<size_t>(nodes.size()), false);
  while (!stack.empty()) {
    const auto it = producer.find(stack.back());
    stack.pop_back();
    if (it == producer.end() || needed[static_cast<size_t>(it->second)]) continue;
    needed[static_cast<size_t>(it->second)] = true;
    for_each_input(nodes[it->second], [&](const std::string& in) { stack.push_back(in); });
  }
  std::vector<const onnx::NodeProto*> out;
  for (int i = 0; i < nodes.size(); ++i) {
    if (!needed[static_cast<size_t>(i)]) continue;
    out.push_back(&nodes[i]);
    for_each_input(nodes[i], [&](const std::string& in) { ++readers_[in]; });
  }
  return out;
}

Value Importer::weight_value(const onnx::TensorProto& proto, const std::string& name) {
  const auto type = dtype_of_onnx(proto.data_type());
  if (!type) throw Unsupported("a value of type " + onnx_type_name(proto.data_type()));
  tensors_[name] = &proto;
  const Shape shape(proto.dims().begin(), proto.dims().end());
  if (!is_float(*type)) {
    Initializer data;
    read_initializer(proto, path_, data);
    return Value::of(Constant::of_bytes(shape, *type, data.bytes), name);
  }
  auto weight = std::make_shared<Weight>();
  weight->name = name;
  weight->shape = shape;
  weight->dtype = *type;
  weight->source.model_name = name;
  weight->source.model_shape = shape;
  weight->source.model_dtype = *type;
  return Value::of(std::move(weight));
}

/// A file without its weights can be listed and planned for, not trained.
void Importer::note_missing_data() {
  std::string first;
  int count = 0;
  for (const auto& proto : model_.graph().initializer()) {
    const bool typed = proto.float_data_size() > 0 || proto.int32_data_size() > 0 ||
                       proto.int64_data_size() > 0 || proto.double_data_size() > 0 ||
                       proto.uint64_data_size() > 0;
    if (!readers_.contains(proto.name()) || typed || !proto.raw_data().empty() ||
        proto.external_data_size() > 0 || volume(Shape(proto.dims().begin(), proto.dims().end())) == 0)
      continue;
    if (count++ == 0) first = proto.name();
  }
  if (count == 0) return;
  result_.notes.push_back(std::to_string(count) + " initializer" + (count > 1 ? "s carry" : " carries") +
                          " no data, the first is '" + first + "': this file cannot be trained");
}

void Importer::import_initializers() {
  note_missing_data();
  for (const auto& proto : model_.graph().initializer()) {
    if (!readers_.contains(proto.name())) continue;
    if (dtype_of_onnx(proto.data_type())) {
      values_[proto.name()] = weight_value(proto, proto.name());
    } else {
      untyped_[proto.name()] = onnx_type_name(proto.data_type());
    }
  }
}

void Importer::import_inputs() {
  for (const auto& info : model_.graph().input()) {
    if (values_.contains(info.name()) || !readers_.contains(info.name())) continue;
    import_input(info);
  }
}

int64_t Importer::bind_dim(const onnx::ValueInfoProto& info, int axis, int batch_axis) {
  const auto& dim = info.type().tensor_type().shape().dim(axis);
  const bool fixed = dim.has_dim_value() && dim.dim_value() > 0;
  const std::string name = dim.dim_param();
  if (axis == batch_axis && options_.batch > 0) {
    if (fixed && dim.dim_value() != options_.batch) {
      old_batch_ = dim.dim_value();
      result_.notes.push_back("input '" + info.name() + "': the fixed batch " + std::to_string(old_batch_) +
                              " becomes " + std::to_string(options_.batch));
    }
    return options_.batch;
  }
  if (fixed) return dim.dim_value();
  if (const auto it = options_.dims.find(name); it != options_.dims.end()) return it->second;
  const std::string where = path_ + ": input '" + info.name() + "': dimension " + std::to_string(axis) +
                            (name.empty() ? "" : " ('" + name + "')") + " has no size";
  if (axis == batch_axis) throw UserError(where, "give the number of samples a step: --batch 32");
  throw UserError(where, "give it: --dim " + (name.empty() ? std::string("NAME") : name) + "=N");
}

void Importer::import_input(const onnx::ValueInfoProto& info) {
  const auto type = dtype_of_onnx(info.type().tensor_type().elem_type());
  if (!info.type().has_tensor_type() || !type) {
    throw UserError(path_ + ": input '" + info.name() + "' is no tensor of a supported type");
  }
  const auto it = options_.batch_axes.find(info.name());
  const int rank = info.type().tensor_type().shape().dim_size();
  const int axis = it != options_.batch_axes.end() ? it->second : rank > 0 ? 0 : -1;
  Tensor t;
  t.name = info.name();
  t.dtype = *type == DType::f16 || *type == DType::bf16 ? DType::f32 : *type;  // computed as floats
  t.kind = TensorKind::input;
  t.batch_axis = axis;
  for (int d = 0; d < rank; ++d) t.shape.push_back(bind_dim(info, d, axis));
  if (axis >= 0 && result_.graph.batch == 0) result_.graph.batch = t.shape.at(static_cast<size_t>(axis));
  tensor_names_.insert(t.name);
  const TensorId id = result_.graph.add_tensor(std::move(t));
  result_.graph.inputs.push_back(id);
  values_[info.name()] = Value::of(id);
}

void Importer::refuse(const onnx::NodeProto& proto, const std::string& reason) {
  const std::string name = !proto.name().empty()     ? proto.name()
                           : proto.output_size() > 0 ? proto.output(0)
                                                     : "?";
  result_.unsupported.push_back({name, proto.op_type(), reason});
}

/// Hands on what is missing.
bool Importer::misses_input(const onnx::NodeProto& proto) {
  for (const std::string& in : proto.input()) {
    const auto it = missing_.find(in);
    if (it == missing_.end()) continue;
    for (const std::string& out : proto.output()) missing_.emplace(out, it->second);
    return true;
  }
  return false;
}

void Importer::refuse_missing_outputs() {
  for (const std::string& name : output_names()) {
    const auto it = missing_.find(name);
    if (it == missing_.end() || values_.contains(name)) continue;
    const bool again = std::any_of(result_.unsupported.begin(), result_.unsupported.end(),
                                   [&](const UnsupportedNode& u) { return u.node == it->second.node; });
    if (!again) result_.unsupported.push_back(it->second);
  }
}

void Importer::import_node(const onnx::NodeProto& proto) {
  if (!proto.domain().empty() && proto.domain() != "ai.onnx") {
    return refuse(proto, "operator of domain '" + proto.domain() + "'");
  }
  const NodeRule* rule = find_rule(proto.op_type());
  bool known = true;
  for (const std::string& in : proto.input()) known &= in.empty() || values_.contains(in);
  if (!known && rule == nullptr) return refuse(proto, refusal_of(proto.op_type()));
  for (const std::string& in : proto.input()) {
    if (const auto it = untyped_.find(in); it != untyped_.end())
      return refuse(proto, "initializer '" + in + "' has type " + it->second + ", which is not supported");
  }
  if (!known) {  // behind one that was refused
    misses_input(proto);
    return;
  }
  Node node(*this, proto);
  try {
    if (fold(node)) return;
    if (rule == nullptr) throw Unsupported(refusal_of(proto.op_type()));
    if (node.opset() < rule->since) throw Unsupported("in opset " + std::to_string(node.opset()));
    rule->import(node);
  } catch (const Unsupported& e) {
    refuse(proto, e.what());
  } catch (const UserError& e) {
    if (std::string_view(e.what()).starts_with(path_)) throw;  // of a node of a body
    throw UserError(path_ + ": " + node_text(proto) + ": " + e.what(), e.hint());
  }
}

void Importer::throw_if_unsupported() {
  if (result_.unsupported.empty() || options_.allow_unsupported) return;
  std::string text = path_ + ": " + std::to_string(result_.unsupported.size()) + " unsupported node" +
                     (result_.unsupported.size() > 1 ? "s" : "") + ":";
  for (const UnsupportedNode& u : result_.unsupported)
    text += "\n  node '" + u.node + "' (" + u.type + "): " + u.reason;
  throw UserError(text, "train up to a value before them with --output NAME");
}

void Importer::import_outputs() {
  for (const std::string& name : output_names()) {
    const auto it = values_.find(name);
    if (it == values_.end() || it->second.kind != Value::Kind::tensor) {
      result_.notes.push_back("output '" + name + "' does not depend on any input and is left out");
      continue;
    }
    result_.graph.outputs.push_back(it->second.tensor);
  }
  if (result_.graph.outputs.empty()) throw UserError(path_ + ": no output depends on an input");
}

std::string Importer::unique(std::set<std::string>& taken, const std::string& name) {
  std::string out = name;
  for (int i = 1; !taken.insert(out).second; ++i) out = name + "#" + std::to_string(i);
  return out;
}

void Importer::propagate_batch(const Op& op) {
  Graph& graph = result_.graph;
  const OpSpace space = op_def(op.type).space(graph, op);
  std::vector<bool> sample(space.dims.size(), false);
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (!op.inputs[i].valid()) continue;
    const int axis = graph.tensor(op.inputs[i]).batch_axis;
    if (axis < 0 || static_cast<size_t>(axis) >= space.inputs[i].axes.size()) continue;
    if (const int dim = space.inputs[i].axes[static_cast<size_t>(axis)].dim; dim >= 0)
      sample[static_cast<size_t>(dim)] = true;
  }
  for (size_t o = 0; o < op.outputs.size(); ++o) {
    if (!op.outputs[o].valid()) continue;
    Tensor& t = graph.tensor(op.outputs[o]);
    if (t.kind != TensorKind::activation) continue;
    for (size_t axis = 0; axis < space.outputs[o].axes.size(); ++axis) {
      const int dim = space.outputs[o].axes[axis].dim;
      if (dim >= 0 && sample[static_cast<size_t>(dim)] && t.batch_axis < 0)
        t.batch_axis = static_cast<int>(axis);
    }
  }
}

/// Adds an op with outputs of the inferred types, named by `names` ("" : not wanted). Returns the first
/// output.
TensorId Importer::add_op(Op op, const std::vector<std::string>& names) {
  Graph& graph = result_.graph;
  op.name = unique(op_names_, op.name);
  const auto types = op_def(op.type).infer(graph, op);
  for (size_t o = 0; o < types.size(); ++o) {
    Tensor t;
    t.name = unique(tensor_names_,
                    o < names.size() && !names[o].empty() ? names[o] : op.name + ":" + std::to_string(o));
    t.shape = types[o].shape;
    t.dtype = types[o].dtype;
    op.outputs.push_back(graph.add_tensor(std::move(t)));
  }
  const TensorId first = op.outputs.at(0);
  note_moves(op);
  const OpId id = graph.add_op(std::move(op));
  propagate_batch(graph.op(id));
  return first;
}

}  // namespace ff::onnx_import
