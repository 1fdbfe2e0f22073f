// The Builder's graph and how weights begin; written into a file by save().
#include "models/builder_impl.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "compiler/base/check.h"
#include "compiler/base/rng.h"

namespace ff {
namespace {

constexpr int kOpset = 17;
constexpr int kIrVersion = 8;
constexpr int64_t kExternalFrom = int64_t{64} << 20;
constexpr double kSmallDeviation = 0.02;

// FNV-1a: a stream of random numbers for every name.
uint64_t stream_of(const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

std::string values_of(const Weight& weight, uint64_t seed) {
  const auto count = static_cast<size_t>(volume_of(weight.shape));
  const uint64_t stream = stream_of(weight.name);
  std::string bytes(count * sizeof(float), '\0');
  for (size_t i = 0; i < count; ++i) {
    float value = weight.fill;
    if (weight.bound != 0)
      value = static_cast<float>((2 * to_unit(counter_random(seed, stream, i)) - 1) * weight.bound);
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  }
  return bytes;
}

}  // namespace

int64_t volume_of(const std::vector<int64_t>& extents) {
  int64_t n = 1;
  for (int64_t extent : extents) n *= extent;
  return n;
}

Builder::Impl::Impl(BuilderOptions o) : options(std::move(o)) {
  model.set_ir_version(kIrVersion);
  model.set_producer_name("ffmodel");
  auto* opset = model.add_opset_import();
  opset->set_domain("");
  opset->set_version(kOpset);
  graph().set_name(options.name);
}

onnx::NodeProto& Builder::Impl::node(const std::string& op, const std::string& name,
                                     const std::vector<std::string>& inputs, const std::string& output) {
  onnx::NodeProto& n = *graph().add_node();
  n.set_op_type(op);
  n.set_name(name);
  for (const std::string& input : inputs) n.add_input(input);
  n.add_output(output);
  return n;
}

onnx::NodeProto& Builder::Impl::plain(const std::string& op, const std::string& kind,
                                      const std::vector<std::string>& inputs) {
  const std::string name = kind + "_" + std::to_string(++counts[kind]);
  return node(op, name, inputs, name + ".out");
}

void Builder::Impl::ints(onnx::NodeProto& n, const std::string& name, const std::vector<int64_t>& values) {
  auto* a = n.add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::INTS);
  for (int64_t v : values) a->add_ints(v);
}

void Builder::Impl::integer(onnx::NodeProto& n, const std::string& name, int64_t value) {
  auto* a = n.add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::INT);
  a->set_i(value);
}

void Builder::Impl::number(onnx::NodeProto& n, const std::string& name, double value) {
  auto* a = n.add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::FLOAT);
  a->set_f(static_cast<float>(value));
}

std::string Builder::Impl::weight(Weight w, bool trained) {
  const int64_t n = volume_of(w.shape);
  if (trained) parameters += n;
  if (options.light) {
    constant_of_shape(w);
  } else {
    bytes += n * static_cast<int64_t>(sizeof(float));
    weights.push_back(w);
  }
  return w.name;
}

std::string Builder::Impl::added_weight(Weight w) {
  const int64_t n = volume_of(w.shape);
  parameters += n;
  bytes += n * static_cast<int64_t>(sizeof(float));
  weights.push_back(w);
  return w.name;
}

void Builder::Impl::constant_of_shape(const Weight& w) {
  const std::string shape = integers(w.name + ".shape", w.shape);
  onnx::NodeProto& n = node("ConstantOfShape", w.name, {shape}, w.name);
  auto* a = n.add_attribute();
  a->set_name("value");
  a->set_type(onnx::AttributeProto::TENSOR);
  a->mutable_t()->set_data_type(onnx::TensorProto::FLOAT);
  a->mutable_t()->add_dims(1);
  // The standard deviation that the weight would have had: it is not a value that hides a zero.
  const float value = w.bound != 0 ? static_cast<float>(w.bound / std::sqrt(3.0)) : w.fill;
  a->mutable_t()->set_raw_data(&value, sizeof value);
}

std::string Builder::Impl::constant(const std::string& name, int type, const std::vector<int64_t>& shape,
                                    const void* data, size_t size) {
  if (!constants.insert({name, true}).second) return name;
  onnx::TensorProto& t = *graph().add_initializer();
  t.set_name(name);
  t.set_data_type(type);
  for (int64_t extent : shape) t.add_dims(extent);
  t.set_raw_data(data, size);
  return name;
}

std::string Builder::Impl::scalar(const std::string& name, float value) {
  return constant(name, onnx::TensorProto::FLOAT, {}, &value, sizeof value);
}

std::string Builder::Impl::flag(const std::string& name, bool value) {
  return constant(name, onnx::TensorProto::BOOL, {}, &value, sizeof value);
}

std::string Builder::Impl::integer_scalar(const std::string& name, int64_t value) {
  return constant(name, onnx::TensorProto::INT64, {}, &value, sizeof value);
}

std::string Builder::Impl::integers(const std::string& name, const std::vector<int64_t>& values) {
  return constant(name, onnx::TensorProto::INT64, {static_cast<int64_t>(values.size())}, values.data(),
                  values.size() * sizeof(int64_t));
}

std::string Builder::Impl::floats(const std::string& name, const std::vector<int64_t>& shape,
                                  const std::vector<float>& values) {
  return constant(name, onnx::TensorProto::FLOAT, shape, values.data(), values.size() * sizeof(float));
}

double Builder::Impl::bound(int64_t fan_in) const {
  if (options.init == Init::small) return kSmallDeviation * std::sqrt(3.0);
  return std::sqrt((options.init == Init::he ? 6.0 : 1.0) / static_cast<double>(fan_in));
}

double Builder::Impl::bias_bound(int64_t fan_in) const {
  return options.init == Init::torch ? bound(fan_in) : 0;
}

double Builder::Impl::embedding_bound() const {
  return (options.init == Init::small ? kSmallDeviation : 1) * std::sqrt(3.0);
}

Value Builder::Impl::input(const std::string& name, std::vector<int64_t> sample_shape, int type) {
  const Value x{name, std::move(sample_shape)};
  declare(*graph().add_input(), x, type);
  return x;
}

void Builder::Impl::declare(onnx::ValueInfoProto& info, const Value& v, int elements) const {
  info.set_name(v.name);
  auto* type = info.mutable_type()->mutable_tensor_type();
  type->set_elem_type(elements);
  auto* batch = type->mutable_shape()->add_dim();
  if (options.batch > 0) {
    batch->set_dim_value(options.batch);
  } else {
    batch->set_dim_param("batch");
  }
  for (int64_t extent : v.shape) type->mutable_shape()->add_dim()->set_dim_value(extent);
}

// One weight at a time is in memory where they go into a file of their own.
void Builder::save(const std::string& path) const {
  onnx::ModelProto model = impl_->model;
  const bool external = impl_->bytes >= kExternalFrom;
  const std::string data_path = path + ".data";
  std::ofstream data;
  if (external) data.open(data_path, std::ios::binary);
  int64_t offset = 0;
  for (const Weight& weight : impl_->weights) {
    onnx::TensorProto& t = *model.mutable_graph()->add_initializer();
    t.set_name(weight.name);
    t.set_data_type(onnx::TensorProto::FLOAT);
    for (int64_t extent : weight.shape) t.add_dims(extent);
    std::string values = values_of(weight, impl_->options.seed);
    if (!external) {
      t.set_raw_data(std::move(values));
      continue;
    }
    data.write(values.data(), static_cast<std::streamsize>(values.size()));
    t.set_data_location(onnx::TensorProto::EXTERNAL);
    const auto entry = [&](const std::string& key, const std::string& value) {
      auto* e = t.add_external_data();
      e->set_key(key);
      e->set_value(value);
    };
    entry("location", std::filesystem::path(data_path).filename().string());
    entry("offset", std::to_string(offset));
    entry("length", std::to_string(values.size()));
    offset += static_cast<int64_t>(values.size());
  }
  if (external) {
    data.close();
    if (!data) throw RunError(data_path + ": cannot be written");
  }
  std::ofstream out(path, std::ios::binary);
  if (!out || !model.SerializeToOstream(&out) || !out.flush()) throw RunError(path + ": cannot be written");
}

}  // namespace ff
