// Which weights become parameters of the graph, and which of these are trained: by how ops use them, also
// through what only moves their elements.

#include <algorithm>
#include <cmath>

#include "compiler/base/check.h"
#include "compiler/base/model_data.h"
#include "compiler/onnx/importer.h"

namespace ff::onnx_import {
namespace {

/// Values of this size mark a mask, not a weight.
constexpr double kMaskMagnitude = 1e4;

}  // namespace

TensorId Importer::materialize(Value& value, Use use) {
  switch (value.kind) {
    case Value::Kind::tensor:
      strengthen(value.tensor, use);
      return value.tensor;
    case Value::Kind::weight:
      return materialize_weight(*value.weight, use);
    case Value::Kind::constant: {
      // A folded value that an op reads as data: a frozen parameter of its own.
      auto weight = std::make_shared<Weight>();
      const Constant& c = *value.constant;
      weight->name = unique(tensor_names_, value.name.empty() ? "constant" : value.name);
      weight->shape = c.shape;
      weight->dtype = c.dtype;
      weight->source.kind = ParameterSource::Kind::inlined;
      weight->source.bytes = c.bytes(c.dtype);
      weight->source.model_shape = c.shape;
      weight->source.model_dtype = c.dtype;
      value = Value::of(weight);
      return materialize_weight(*weight, Use::data);
    }
    case Value::Kind::unknown:
      break;
  }
  FF_CHECK(false) << "a value without a kind";
  return {};
}

TensorId Importer::materialize_weight(Weight& weight, Use use) {
  if (!weight.tensor.valid()) {
    Tensor t;
    t.name = weight.name;
    tensor_names_.insert(t.name);
    t.shape = weight.shape;
    t.dtype = weight.dtype == DType::f16 || weight.dtype == DType::bf16 ? DType::f32 : weight.dtype;
    t.kind = TensorKind::parameter;
    t.source = weight.source;
    weight.tensor = result_.graph.add_tensor(std::move(t));
    uses_[weight.tensor.value] = use;
  }
  strengthen(weight.tensor, use);
  return weight.tensor;
}

/// Statistics stay frozen and state stays state; otherwise the strongest use of a parameter decides. A use of
/// a parameter's parts, however moved about, is a use of the parameter.
void Importer::strengthen(TensorId tensor, Use use) {
  if (const auto it = moved_.find(tensor.value); it != moved_.end()) {
    for (TensorId source : it->second) strengthen(source, use);
  }
  const auto it = uses_.find(tensor.value);
  if (it == uses_.end()) return;
  Use& strongest = it->second;
  if (use == Use::statistics || use == Use::state || (strongest < Use::statistics && use == Use::weight))
    strongest = use;
  if (use == Use::elementwise && strongest == Use::data) strongest = use;
}

/// What only moves the elements of parameters is those parameters to who reads it.
void Importer::note_moves(const Op& op) {
  static const std::set<std::string_view> moves{"Concat", "Expand",  "Gather", "Identity",
                                                "Pad",    "Reshape", "Slice",  "Transpose"};
  if (!moves.contains(op.type)) return;
  std::vector<TensorId> sources;
  for (TensorId id : op.inputs) {
    if (!is_float(result_.graph.tensor(id).dtype)) continue;  // indices
    if (!uses_.contains(id.value) && !moved_.contains(id.value)) return;
    sources.push_back(id);
  }
  moved_[op.outputs.at(0).value] = std::move(sources);
}

bool Importer::is_mask(const Weight& weight) const {
  const auto it = tensors_.find(weight.source.model_name);
  if (it == tensors_.end()) return false;
  Initializer data;
  read_initializer(*it->second, path_, data);
  const int64_t n = volume(data.shape);
  for (int64_t i = 0; i < n; ++i) {
    const double v = element_as_double(data.bytes, data.dtype, i);
    if (!(std::abs(v) < kMaskMagnitude)) return true;
  }
  return false;
}

/// A number that is not trained is part of the graph: passes look at it.
void Importer::inline_number(Tensor& t) {
  ParameterSource& source = t.source;
  const auto it = tensors_.find(source.model_name);
  if (source.kind != ParameterSource::Kind::initializer || !source.views.empty() || it == tensors_.end()) return;
  Initializer data;
  read_initializer(*it->second, path_, data);
  source.kind = ParameterSource::Kind::inlined;
  source.bytes = Constant::of_bytes(data.shape, data.dtype, data.bytes).bytes(t.dtype);
}

void Importer::decide_roles() {
  const auto any = [](const std::vector<std::string>& patterns, const std::string& name) {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const std::string& p) { return matches(p, name); });
  };
  for (auto& [id, use] : uses_) {
    Tensor& t = result_.graph.tensor(TensorId(id));
    ParameterSource& source = t.source;
    source.role = ParameterRole::frozen;
    if (use == Use::state) {
      source.role = ParameterRole::state;
      continue;
    }
    if (use == Use::statistics || !is_float(t.dtype) || source.kind == ParameterSource::Kind::inlined)
      continue;
    bool train = use == Use::weight || (use == Use::elementwise && !t.shape.empty() &&
                                        source.kind == ParameterSource::Kind::initializer);
    if (train && use == Use::elementwise) {
      Weight probe;
      probe.source = source;
      train = !is_mask(probe);
    }
    if (any(options_.train, t.name)) train = true;
    if (any(options_.freeze, t.name)) train = false;
    if (train) source.role = ParameterRole::trained;
    if (!train && t.shape.empty()) inline_number(t);
  }
}

}  // namespace ff::onnx_import
