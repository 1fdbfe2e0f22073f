// Layers of images.
#include "models/builder.h"

#include "compiler/base/check.h"
#include "models/builder_impl.h"

namespace ff {
namespace {

int64_t windows(int64_t extent, int64_t kernel, int64_t stride, int64_t pad) {
  return (extent + 2 * pad - kernel) / stride + 1;
}

}  // namespace

Builder::Builder(BuilderOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Builder::~Builder() = default;
int64_t Builder::parameters() const { return impl_->parameters; }

Value Builder::input(std::vector<int64_t> sample_shape, const std::string& name) {
  return impl_->input(name, std::move(sample_shape), onnx::TensorProto::FLOAT);
}

Value Builder::integer_input(const std::string& name, std::vector<int64_t> sample_shape) {
  return impl_->input(name, std::move(sample_shape), onnx::TensorProto::INT64);
}

void Builder::output(const Value& x, const std::string& name) {
  const Value out{name, x.shape};
  onnx::GraphProto& graph = impl_->graph();
  onnx::NodeProto& last = *graph.mutable_node(graph.node_size() - 1);
  FF_CHECK_EQ(last.output(0), x.name) << "the output is not the last layer's";
  last.set_output(0, out.name);
  impl_->declare(*graph.add_output(), out, onnx::TensorProto::FLOAT);
}

Value Builder::conv(const std::string& name, const Value& x, const ConvOptions& o) {
  const int64_t in = x.shape[0] / o.groups;
  const double bound = impl_->bound(in * o.kernel.h * o.kernel.w);
  std::vector<std::string> inputs{
      x.name, impl_->weight({name + ".weight", {o.out, in, o.kernel.h, o.kernel.w}, bound}, true)};
  if (o.bias) {
    const double within = impl_->bias_bound(in * o.kernel.h * o.kernel.w);
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

Value Builder::conv_transpose(const std::string& name, const Value& x, const ConvOptions& o) {
  FF_CHECK_EQ(o.groups, 1) << "conv_transpose " << name;
  // PyTorch's fan-in of a transposed convolution: its weight is [in, out, h, w], and it takes axis 1.
  const int64_t fan_in = o.out * o.kernel.h * o.kernel.w;
  std::vector<std::string> inputs{
      x.name,
      impl_->weight({name + ".weight", {x.shape[0], o.out, o.kernel.h, o.kernel.w}, impl_->bound(fan_in)})};
  if (o.bias) inputs.push_back(impl_->weight({name + ".bias", {o.out}, impl_->bias_bound(fan_in)}));
  onnx::NodeProto& n = impl_->node("ConvTranspose", name, inputs, name + ".out");
  Impl::ints(n, "kernel_shape", {o.kernel.h, o.kernel.w});
  Impl::ints(n, "strides", {o.stride.h, o.stride.w});
  Impl::ints(n, "pads", {o.pad.h, o.pad.w, o.pad.h, o.pad.w});
  Impl::ints(n, "dilations", {1, 1});
  Impl::integer(n, "group", 1);
  return {n.output(0),
          {o.out, (x.shape[1] - 1) * o.stride.h - 2 * o.pad.h + o.kernel.h,
           (x.shape[2] - 1) * o.stride.w - 2 * o.pad.w + o.kernel.w}};
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

Value Builder::relu(const Value& x) { return {impl_->plain("Relu", "relu", {x.name}).output(0), x.shape}; }

Value Builder::relu6(const Value& x) {
  const std::string low = impl_->scalar("relu6.min", 0);
  const std::string high = impl_->scalar("relu6.max", 6);
  return {impl_->plain("Clip", "relu6", {x.name, low, high}).output(0), x.shape};
}

Value Builder::tanh(const Value& x) { return {impl_->plain("Tanh", "tanh", {x.name}).output(0), x.shape}; }

Value Builder::sigmoid(const Value& x) {
  return {impl_->plain("Sigmoid", "sigmoid", {x.name}).output(0), x.shape};
}

Value Builder::add(const Value& a, const Value& b) {
  FF_CHECK(a.shape == b.shape) << "add " << a.name << " and " << b.name;
  return {impl_->plain("Add", "add", {a.name, b.name}).output(0), a.shape};
}

Value Builder::concat(const std::vector<Value>& parts, size_t axis) {
  std::vector<std::string> names;
  std::vector<int64_t> shape = parts.front().shape;
  shape[axis] = 0;
  for (const Value& part : parts) {
    names.push_back(part.name);
    shape[axis] += part.shape[axis];
  }
  onnx::NodeProto& n = impl_->plain("Concat", "concat", names);
  Impl::integer(n, "axis", static_cast<int64_t>(axis) + 1);
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
  return {n.output(0), {volume_of(x.shape)}};
}

Value Builder::dropout(const Value& x, double ratio) {
  if (ratio == 0) return x;
  const std::string r = impl_->scalar("dropout.ratio", static_cast<float>(ratio));
  const std::string mode = impl_->flag("dropout.training_mode", true);
  return {impl_->plain("Dropout", "dropout", {x.name, r, mode}).output(0), x.shape};
}

}  // namespace ff
