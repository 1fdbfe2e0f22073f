#include <algorithm>

#include "compiler/base/check.h"
#include "compiler/base/model_data.h"
#include "compiler/onnx/fold.h"
#include "compiler/ops/op_table.h"

namespace ff::onnx_import {

Node::Node(Importer& importer, const onnx::NodeProto& proto) : importer_(importer), proto_(proto) {
  name_ = !proto.name().empty() ? proto.name() : proto.output_size() > 0 ? proto.output(0) : proto.op_type();
}

const onnx::AttributeProto* Node::attribute(const std::string& name) const {
  for (const auto& a : proto_.attribute()) {
    if (a.name() == name) return &a;
  }
  return nullptr;
}

int64_t Node::integer(const std::string& name, int64_t otherwise) const {
  const auto* a = attribute(name);
  return a != nullptr ? a->i() : otherwise;
}

double Node::real(const std::string& name, double otherwise) const {
  const auto* a = attribute(name);
  return a != nullptr ? static_cast<double>(a->f()) : otherwise;
}

std::string Node::string(const std::string& name, const std::string& otherwise) const {
  const auto* a = attribute(name);
  return a != nullptr ? a->s() : otherwise;
}

Ints Node::ints(const std::string& name, const Ints& otherwise) const {
  const auto* a = attribute(name);
  return a != nullptr ? Ints(a->ints().begin(), a->ints().end()) : otherwise;
}

bool Node::has(int input) const { return input < proto_.input_size() && !proto_.input(input).empty(); }

const Value& Node::value(int input) const {
  FF_CHECK(has(input)) << node_text(proto_) << " input " << input;
  return importer_.values_.at(proto_.input(input));
}

Shape Node::shape(int input) const {
  const Value& v = value(input);
  if (v.kind == Value::Kind::tensor) return graph().tensor(v.tensor).shape;
  return v.kind == Value::Kind::constant ? v.constant->shape : v.weight->shape;
}

DType Node::dtype(int input) const {
  const Value& v = value(input);
  if (v.kind == Value::Kind::tensor) return graph().tensor(v.tensor).dtype;
  return v.kind == Value::Kind::constant ? v.constant->dtype : v.weight->dtype;
}

TensorId Node::operand(int input, Use use) {
  if (!has(input)) return {};
  return importer_.materialize(importer_.values_.at(proto_.input(input)), use);
}

std::optional<Constant> Node::constant(int input, int64_t largest) const {
  if (!has(input)) return std::nullopt;
  const Value& v = value(input);
  if (v.kind == Value::Kind::constant) return *v.constant;
  if (v.kind != Value::Kind::weight || volume(v.weight->source.model_shape) > largest) return std::nullopt;
  if (v.weight->source.kind == ParameterSource::Kind::fill) {
    Constant c{.dtype = v.weight->dtype, .shape = v.weight->shape, .ints = {}, .reals = {}};
    c.reals.assign(static_cast<size_t>(volume(c.shape)), v.weight->source.fill);
    return c;
  }
  if (v.weight->source.kind == ParameterSource::Kind::inlined)  // folded, and read as data before
    return Constant::of_bytes(v.weight->shape, v.weight->dtype, v.weight->source.bytes);
  Initializer data;
  read_initializer(*importer_.tensors_.at(v.weight->source.model_name), importer_.path_, data);
  return viewed(Constant::of_bytes(data.shape, data.dtype, data.bytes), v.weight->source.views);
}

Constant Node::required(int input, const std::string& what) const {
  auto c = constant(input);
  if (!c) throw Unsupported(what + " is not known before the model runs");
  return *c;
}

std::optional<Ints> Node::ints_of(const std::string& name, int input) const {
  if (has_attribute(name)) return ints(name, {});
  if (!has(input)) return std::nullopt;
  const Constant c = required(input, name);
  Ints out;
  for (int64_t i = 0; i < c.size(); ++i) out.push_back(c.integer(i));
  return out;
}

TensorId Node::scalar(const std::string& part, double value, DType dtype) {
  return frozen(part, Constant::of_real(value, dtype));
}

TensorId Node::frozen(const std::string& part, Constant value) {
  Value v = Value::of(std::move(value), name_ + "/" + part);
  return importer_.materialize(v, Use::data);
}

std::vector<TensorId> Node::append(const std::string& name, const std::string& type, Attributes attributes,
                                   std::vector<TensorId> inputs, const std::vector<std::string>& names) {
  Op op;
  op.name = name;
  op.type = type;
  op.attributes = std::move(attributes);
  op.inputs = std::move(inputs);
  importer_.add_op(std::move(op), names);
  return graph().ops.back().outputs;
}

std::vector<TensorId> Node::emit_all(const std::string& part, const std::string& type, Attributes attributes,
                                     std::vector<TensorId> inputs) {
  std::vector<std::string> names;
  if (part.empty()) names.assign(proto_.output().begin(), proto_.output().end());
  return append(part.empty() ? name_ : name_ + "/" + part, type, std::move(attributes), std::move(inputs),
                names);
}

TensorId Node::emit_output(int output, const std::string& type, Attributes attributes,
                           std::vector<TensorId> inputs) {
  const std::string name = output == 0 ? name_ : name_ + "/output" + std::to_string(output);
  const TensorId y = append(name, type, std::move(attributes), std::move(inputs), {proto_.output(output)})[0];
  result(y, output);
  return y;
}

TensorId Node::emit(const std::string& type, Attributes attributes, std::vector<TensorId> inputs,
                    const std::string& part) {
  return emit_all(part, type, std::move(attributes), std::move(inputs)).at(0);
}

void Node::emit_update(const std::string& part, const std::string& type, Attributes attributes,
                       std::vector<TensorId> inputs, std::vector<TensorId> outputs) {
  Op op;
  op.name = importer_.unique(importer_.op_names_, name_ + "/" + part);
  op.type = type;
  op.attributes = std::move(attributes);
  op.inputs = std::move(inputs);
  op.outputs = std::move(outputs);
  op.phase = Phase::update;
  importer_.result_.graph.add_op(std::move(op));
}

bool Node::output_used(int output) const {
  if (output >= proto_.output_size() || proto_.output(output).empty()) return false;
  return importer_.readers_.contains(proto_.output(output)) ||
         importer_.wanted_outputs_.contains(proto_.output(output));
}

bool Node::gives_scales() const {
  bool read = false;
  for (const auto& reader : importer_.model_.graph().node()) {
    for (int i = 0; i < reader.input_size(); ++i) {
      if (reader.input(i) != proto_.output(0)) continue;
      if (i == 0 || (reader.op_type() != "Resize" && reader.op_type() != "Upsample")) return false;
      read = true;
    }
  }
  return read && !importer_.wanted_outputs_.contains(proto_.output(0));
}

void Node::result(TensorId tensor, int output) { result(Value::of(tensor), output); }
void Node::result(Constant constant, int output) {
  result(Value::of(std::move(constant), proto_.output(output)), output);
}
void Node::result(const Value& value, int output) {
  if (output < proto_.output_size() && !proto_.output(output).empty())
    importer_.values_[proto_.output(output)] = value;
}

void Node::leave_out(int output, const std::string& reason) {
  if (output < proto_.output_size() && !proto_.output(output).empty())
    importer_.missing_.emplace(proto_.output(output), UnsupportedNode{name_, proto_.op_type(), reason});
}

void Node::weight(const onnx::TensorProto& proto, const std::string& name) {
  result(importer_.weight_value(proto, name));
}

void Node::alias() {
  const Value& v = value(0);
  if (v.kind == Value::Kind::tensor) return result(emit("Identity", {}, {v.tensor}));
  if (v.kind == Value::Kind::weight) v.weight->aliased = true;
  result(v);
}

bool Node::view(const std::vector<View>& views, Shape shape) {
  const Value& v = value(0);
  if (v.kind != Value::Kind::weight || v.weight->tensor.valid() || v.weight->aliased ||
      importer_.readers_[proto_.input(0)] != 1) {
    return false;
  }
  auto weight = std::make_shared<Weight>(*v.weight);
  weight->shape = std::move(shape);
  weight->source.views.insert(weight->source.views.end(), views.begin(), views.end());
  result(Value::of(std::move(weight)));
  return true;
}

}  // namespace ff::onnx_import
