#include "models/builder.h"

#include <onnx/onnx_pb.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "compiler/base/check.h"
#include "compiler/base/rng.h"

namespace ff {
namespace {

constexpr int kOpset = 17;
constexpr int kIrVersion = 8;
constexpr int64_t kExternalFrom = int64_t{64} << 20;

// FNV-1a: a stream of random numbers for every name.
uint64_t stream_of(const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

int64_t product(const std::vector<int64_t>& extents) {
  int64_t n = 1;
  for (int64_t extent : extents) n *= extent;
  return n;
}

int64_t windows(int64_t extent, int64_t kernel, int64_t stride, int64_t pad) {
  return (extent + 2 * pad - kernel) / stride + 1;
}

// Uniform within `bound`, or all `fill` where the bound is 0.
struct Weight {
  std::string name;
  std::vector<int64_t> shape;
  double bound = 0;
  float fill = 0;
};

std::string values_of(const Weight& weight, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(product(weight.shape)), weight.fill);
  if (weight.bound != 0) {
    const uint64_t stream = stream_of(weight.name);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>((2 * to_unit(counter_random(seed, stream, i)) - 1) * weight.bound);
    }
  }
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

}  // namespace

struct Builder::Impl {
  explicit Impl(BuilderOptions o) : options(std::move(o)) {
    model.set_ir_version(kIrVersion);
    model.set_producer_name("ffmodel");
    auto* opset = model.add_opset_import();
    opset->set_domain("");
    opset->set_version(kOpset);
    graph().set_name(options.name);
  }

  onnx::GraphProto& graph() { return *model.mutable_graph(); }

  onnx::NodeProto& node(const std::string& op, const std::string& name,
                        const std::vector<std::string>& inputs, const std::string& output) {
    onnx::NodeProto& n = *graph().add_node();
    n.set_op_type(op);
    n.set_name(name);
    for (const std::string& input : inputs) n.add_input(input);
    n.add_output(output);
    return n;
  }

  // A layer without weights: named by its kind and a count, as "relu_3".
  onnx::NodeProto& plain(const std::string& op, const std::string& kind,
                         const std::vector<std::string>& inputs) {
    const std::string name = kind + "_" + std::to_string(++counts[kind]);
    return node(op, name, inputs, name + ".out");
  }

  static void ints(onnx::NodeProto& n, const std::string& name, const std::vector<int64_t>& values) {
    auto* a = n.add_attribute();
    a->set_name(name);
    a->set_type(onnx::AttributeProto::INTS);
    for (int64_t v : values) a->add_ints(v);
  }
  static void integer(onnx::NodeProto& n, const std::string& name, int64_t value) {
    auto* a = n.add_attribute();
    a->set_name(name);
    a->set_type(onnx::AttributeProto::INT);
    a->set_i(value);
  }
  static void number(onnx::NodeProto& n, const std::string& name, double value) {
    auto* a = n.add_attribute();
    a->set_name(name);
    a->set_type(onnx::AttributeProto::FLOAT);
    a->set_f(static_cast<float>(value));
  }

  std::string weight(Weight w, bool trained) {
    const int64_t n = product(w.shape);
    if (trained) parameters += n;
    if (options.light) {
      constant_of_shape(w);
    } else {
      bytes += n * static_cast<int64_t>(sizeof(float));
      weights.push_back(w);
    }
    return w.name;
  }

  void constant_of_shape(const Weight& w) {
    onnx::TensorProto& shape = *graph().add_initializer();
    shape.set_name(w.name + ".shape");
    shape.set_data_type(onnx::TensorProto::INT64);
    shape.add_dims(static_cast<int64_t>(w.shape.size()));
    shape.set_raw_data(w.shape.data(), w.shape.size() * sizeof(int64_t));
    onnx::NodeProto& n = node("ConstantOfShape", w.name, {shape.name()}, w.name);
    auto* a = n.add_attribute();
    a->set_name("value");
    a->set_type(onnx::AttributeProto::TENSOR);
    a->mutable_t()->set_data_type(onnx::TensorProto::FLOAT);
    a->mutable_t()->add_dims(1);
    // The standard deviation that the weight would have had: it is not a value that hides a zero.
    const float value = w.bound != 0 ? static_cast<float>(w.bound / std::sqrt(3.0)) : w.fill;
    a->mutable_t()->set_raw_data(&value, sizeof value);
  }

  template <typename T>
  std::string scalar(const std::string& name, int type, T value) {
    if (scalars.insert({name, true}).second) {
      onnx::TensorProto& t = *graph().add_initializer();
      t.set_name(name);
      t.set_data_type(type);
      t.set_raw_data(&value, sizeof value);
    }
    return name;
  }

  double bound(int64_t fan_in) const {
    return std::sqrt((options.init == Init::he ? 6.0 : 1.0) / static_cast<double>(fan_in));
  }

  void declare(onnx::ValueInfoProto& info, const Value& v) const {
    info.set_name(v.name);
    auto* type = info.mutable_type()->mutable_tensor_type();
    type->set_elem_type(onnx::TensorProto::FLOAT);
    auto* batch = type->mutable_shape()->add_dim();
    if (options.batch > 0) {
      batch->set_dim_value(options.batch);
    } else {
      batch->set_dim_param("batch");
    }
    for (int64_t extent : v.shape) type->mutable_shape()->add_dim()->set_dim_value(extent);
  }

  BuilderOptions options;
  onnx::ModelProto model;
  std::vector<Weight> weights;
  std::map<std::string, int> counts;
  std::map<std::string, bool> scalars;
  int64_t parameters = 0;
  int64_t bytes = 0;
};

Builder::Builder(BuilderOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Builder::~Builder() = default;
int64_t Builder::parameters() const { return impl_->parameters; }

Value Builder::input(std::vector<int64_t> sample_shape) {
  const Value x{"image", std::move(sample_shape)};
  impl_->declare(*impl_->graph().add_input(), x);
  return x;
}

void Builder::output(const Value& x) {
  const Value logits{"logits", x.shape};
  onnx::GraphProto& graph = impl_->graph();
  onnx::NodeProto& last = *graph.mutable_node(graph.node_size() - 1);
  FF_CHECK_EQ(last.output(0), x.name) << "the output is not the last layer's";
  last.set_output(0, logits.name);
  impl_->declare(*graph.add_output(), logits);
}

Value Builder::conv(const std::string& name, const Value& x, const ConvOptions& o) {
  const int64_t in = x.shape[0] / o.groups;
  const double bound = impl_->bound(in * o.kernel.h * o.kernel.w);
  std::vector<std::string> inputs{
      x.name, impl_->weight({name + ".weight", {o.out, in, o.kernel.h, o.kernel.w}, bound}, true)};
  if (o.bias) {
    const double within = impl_->options.init == Init::he ? 0 : bound;
    inputs.push_back(impl_->weight({name + ".bias", {o.out}, within}, true));
  }
  onnx::NodeProto& n = impl_->node("Conv", name, inputs, name + ".out");
  Impl::ints(n, "kernel_shape", {o.kernel.h, o.kernel.w});
  Impl::ints(n, "strides", {o.stride.h, o.stride.w});
  Impl::ints(n, "pads", {o.pad.h, o.pad.w, o.pad.h, o.pad.w});
  Impl::ints(n, "dilations", {1, 1});
  Impl::integer(n, "group", o.groups);
  return {n.output(0),
          {o.out, windows(x.shape[1], o.kernel.h, o.stride.h, o.pad.h),
           windows(x.shape[2], o.kernel.w, o.stride.w, o.pad.w)}};
}

Value Builder::batch_norm(const std::string& name, const Value& x, double epsilon) {
  const std::vector<int64_t> channels{x.shape[0]};
  const std::string mean = name + ".running_mean", variance = name + ".running_var";
  onnx::NodeProto& n =
      impl_->node("BatchNormalization", name,
                  {x.name, impl_->weight({name + ".weight", channels, 0, 1}, true),
                   impl_->weight({name + ".bias", channels}, true), impl_->weight({mean, channels}, false),
                   impl_->weight({variance, channels, 0, 1}, false)},
                  name + ".out");
  n.add_output(mean + ".next");
  n.add_output(variance + ".next");
  Impl::number(n, "epsilon", epsilon);
  Impl::number(n, "momentum", 0.9);
  Impl::integer(n, "training_mode", 1);
  return {n.output(0), x.shape};
}

Value Builder::linear(const std::string& name, const Value& x, int64_t features) {
  FF_CHECK_EQ(x.shape.size(), 1u) << "linear " << name;
  const double bound = impl_->bound(x.shape[0]);
  const double within = impl_->options.init == Init::he ? 0 : bound;
  onnx::NodeProto& n =
      impl_->node("Gemm", name,
                  {x.name, impl_->weight({name + ".weight", {features, x.shape[0]}, bound}, true),
                   impl_->weight({name + ".bias", {features}, within}, true)},
                  name + ".out");
  Impl::number(n, "alpha", 1);
  Impl::number(n, "beta", 1);
  Impl::integer(n, "transB", 1);
  return {n.output(0), {features}};
}

Value Builder::relu(const Value& x) { return {impl_->plain("Relu", "relu", {x.name}).output(0), x.shape}; }

Value Builder::relu6(const Value& x) {
  const std::string low = impl_->scalar("relu6.min", onnx::TensorProto::FLOAT, 0.0F);
  const std::string high = impl_->scalar("relu6.max", onnx::TensorProto::FLOAT, 6.0F);
  return {impl_->plain("Clip", "relu6", {x.name, low, high}).output(0), x.shape};
}

Value Builder::tanh(const Value& x) { return {impl_->plain("Tanh", "tanh", {x.name}).output(0), x.shape}; }

Value Builder::add(const Value& a, const Value& b) {
  FF_CHECK(a.shape == b.shape) << "add " << a.name << " and " << b.name;
  return {impl_->plain("Add", "add", {a.name, b.name}).output(0), a.shape};
}

Value Builder::concat(const std::vector<Value>& parts) {
  std::vector<std::string> names;
  std::vector<int64_t> shape = parts.front().shape;
  shape[0] = 0;
  for (const Value& part : parts) {
    names.push_back(part.name);
    shape[0] += part.shape[0];
  }
  onnx::NodeProto& n = impl_->plain("Concat", "concat", names);
  Impl::integer(n, "axis", 1);
  return {n.output(0), shape};
}

Value Builder::max_pool(const Value& x, const PoolOptions& o) {
  onnx::NodeProto& n = impl_->plain("MaxPool", "max_pool", {x.name});
  Impl::ints(n, "kernel_shape", {o.kernel, o.kernel});
  Impl::ints(n, "strides", {o.stride, o.stride});
  Impl::ints(n, "pads", {o.pad, o.pad, o.pad, o.pad});
  return {n.output(0),
          {x.shape[0], windows(x.shape[1], o.kernel, o.stride, o.pad),
           windows(x.shape[2], o.kernel, o.stride, o.pad)}};
}

Value Builder::average_pool(const Value& x, const PoolOptions& o) {
  onnx::NodeProto& n = impl_->plain("AveragePool", "average_pool", {x.name});
  Impl::ints(n, "kernel_shape", {o.kernel, o.kernel});
  Impl::ints(n, "strides", {o.stride, o.stride});
  Impl::ints(n, "pads", {o.pad, o.pad, o.pad, o.pad});
  Impl::integer(n, "count_include_pad", 1);
  return {n.output(0),
          {x.shape[0], windows(x.shape[1], o.kernel, o.stride, o.pad),
           windows(x.shape[2], o.kernel, o.stride, o.pad)}};
}

Value Builder::global_average_pool(const Value& x) {
  return {impl_->plain("GlobalAveragePool", "global_average_pool", {x.name}).output(0), {x.shape[0], 1, 1}};
}

Value Builder::flatten(const Value& x) {
  onnx::NodeProto& n = impl_->plain("Flatten", "flatten", {x.name});
  Impl::integer(n, "axis", 1);
  return {n.output(0), {product(x.shape)}};
}

Value Builder::dropout(const Value& x, double ratio) {
  if (ratio == 0) return x;
  const std::string r = impl_->scalar("dropout.ratio", onnx::TensorProto::FLOAT, static_cast<float>(ratio));
  const std::string mode = impl_->scalar("dropout.training_mode", onnx::TensorProto::BOOL, true);
  return {impl_->plain("Dropout", "dropout", {x.name, r, mode}).output(0), x.shape};
}

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
