// Layers of sequences and features: what transformers, recurrent networks and recommenders are made of.
#include "compiler/base/check.h"
#include "models/builder.h"
#include "models/builder_impl.h"

namespace ff {
namespace {

int64_t axis_in_file(size_t axis) { return static_cast<int64_t>(axis) + 1; }

}  // namespace

Value Builder::linear(const std::string& name, const Value& x, int64_t features, bool bias) {
  const int64_t in = x.shape.back();
  const double bound = impl_->bound(in), within = impl_->bias_bound(in);
  if (x.shape.size() > 1) {
    std::vector<int64_t> shape = x.shape;
    shape.back() = features;
    const std::string weight = impl_->weight({name + ".weight", {in, features}, bound});
    const std::string product = impl_->node("MatMul", name, {x.name, weight}, name + ".product").output(0);
    if (!bias) return {product, shape};
    const std::string added = impl_->added_weight({name + ".bias", {features}, within});
    return {impl_->node("Add", name + ".add", {product, added}, name + ".out").output(0), shape};
  }
  std::vector<std::string> inputs{x.name, impl_->weight({name + ".weight", {features, in}, bound})};
  if (bias) inputs.push_back(impl_->weight({name + ".bias", {features}, within}));
  onnx::NodeProto& n = impl_->node("Gemm", name, inputs, name + ".out");
  Impl::number(n, "alpha", 1);
  Impl::number(n, "beta", 1);
  Impl::integer(n, "transB", 1);
  return {n.output(0), {features}};
}

Value Builder::layer_norm(const std::string& name, const Value& x, double epsilon) {
  const std::vector<int64_t> width{x.shape.back()};
  const std::string scale = impl_->weight({name + ".weight", width, 0, 1});
  const std::string bias = impl_->weight({name + ".bias", width});
  onnx::NodeProto& n = impl_->node("LayerNormalization", name, {x.name, scale, bias}, name + ".out");
  Impl::integer(n, "axis", -1);
  Impl::number(n, "epsilon", epsilon);
  return {n.output(0), x.shape};
}

Value Builder::gelu(const Value& x) {
  const std::string root = impl_->scalar("gelu.root", 1.41421354F), one = impl_->scalar("gelu.one", 1),
                    half = impl_->scalar("gelu.half", 0.5F);
  const std::string name = "gelu_" + std::to_string(++impl_->counts["gelu"]);
  const auto step = [&](const std::string& op, const std::string& part,
                        const std::vector<std::string>& inputs) {
    return impl_->node(op, name + "." + part, inputs, name + "." + part + ".out").output(0);
  };
  const std::string erf = step("Erf", "erf", {step("Div", "div", {x.name, root})});
  const std::string doubled = step("Mul", "mul", {x.name, step("Add", "add", {erf, one})});
  return {step("Mul", "half", {doubled, half}), x.shape};
}

Value Builder::softmax(const Value& x) {
  onnx::NodeProto& n = impl_->plain("Softmax", "softmax", {x.name});
  Impl::integer(n, "axis", -1);
  return {n.output(0), x.shape};
}

Value Builder::scale(const Value& x, double factor, const std::string& what) {
  const std::string by = impl_->scalar(what, static_cast<float>(factor));
  return {impl_->plain("Mul", "scale", {x.name, by}).output(0), x.shape};
}

Value Builder::mean(const Value& x, size_t axis) {
  std::vector<int64_t> shape = x.shape;
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  onnx::NodeProto& n = impl_->plain("ReduceMean", "mean", {x.name});
  Impl::ints(n, "axes", {axis_in_file(axis)});
  Impl::integer(n, "keepdims", 0);
  return {n.output(0), shape};
}

// A 0 keeps the batch, whatever it is.
Value Builder::reshape(const Value& x, std::vector<int64_t> shape) {
  FF_CHECK_EQ(volume_of(shape), volume_of(x.shape)) << "reshape " << x.name;
  std::vector<int64_t> wanted{0};
  wanted.insert(wanted.end(), shape.begin(), shape.end());
  std::string key = "shape";
  for (int64_t extent : shape) key += "." + std::to_string(extent);
  const std::string to = impl_->integers(key, wanted);
  return {impl_->plain("Reshape", "reshape", {x.name, to}).output(0), std::move(shape)};
}

Value Builder::transpose(const Value& x, const std::vector<size_t>& axes) {
  std::vector<int64_t> perm{0}, shape;
  for (size_t axis : axes) {
    perm.push_back(axis_in_file(axis));
    shape.push_back(x.shape.at(axis));
  }
  onnx::NodeProto& n = impl_->plain("Transpose", "transpose", {x.name});
  Impl::ints(n, "perm", perm);
  return {n.output(0), shape};
}

std::vector<Value> Builder::split(const Value& x, int64_t parts) {
  FF_CHECK_EQ(x.shape.back() % parts, 0) << "split " << x.name;
  std::vector<int64_t> shape = x.shape;
  shape.back() /= parts;
  const std::string sizes =
      impl_->integers("split." + std::to_string(parts) + "." + std::to_string(shape.back()),
                      std::vector<int64_t>(static_cast<size_t>(parts), shape.back()));
  onnx::NodeProto& n = impl_->plain("Split", "split", {x.name, sizes});
  Impl::integer(n, "axis", -1);
  const std::string first = n.output(0);
  std::vector<Value> out{{first, shape}};
  for (int64_t i = 1; i < parts; ++i) {
    out.push_back({first + std::to_string(i), shape});
    n.add_output(out.back().name);
  }
  return out;
}

Value Builder::entry(const Value& x, size_t axis, int64_t index) {
  std::vector<int64_t> shape = x.shape;
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  const std::string at = impl_->integer_scalar("index." + std::to_string(index), index);
  onnx::NodeProto& n = impl_->plain("Gather", "entry", {x.name, at});
  Impl::integer(n, "axis", axis_in_file(axis));
  return {n.output(0), shape};
}

Value Builder::entries(const Value& x, size_t axis, const std::vector<int64_t>& indices,
                       const std::string& what) {
  std::vector<int64_t> shape = x.shape;
  shape[axis] = static_cast<int64_t>(indices.size());
  onnx::NodeProto& n = impl_->plain("Gather", "entries", {x.name, impl_->integers(what, indices)});
  Impl::integer(n, "axis", axis_in_file(axis));
  return {n.output(0), shape};
}

Value Builder::matmul(const Value& a, const Value& b) {
  const size_t rank = a.shape.size();
  FF_CHECK(rank >= 2 && b.shape.size() == rank && a.shape[rank - 1] == b.shape[rank - 2])
      << "matmul " << a.name << " and " << b.name;
  std::vector<int64_t> shape = a.shape;
  shape[rank - 1] = b.shape[rank - 1];
  return {impl_->plain("MatMul", "matmul", {a.name, b.name}).output(0), shape};
}

Value Builder::embedding(const std::string& name, const Value& x, int64_t rows, int64_t width) {
  const std::string table = impl_->weight({name + ".weight", {rows, width}, impl_->embedding_bound()});
  onnx::NodeProto& n = impl_->node("Gather", name, {table, x.name}, name + ".out");
  Impl::integer(n, "axis", 0);
  std::vector<int64_t> shape = x.shape;
  shape.push_back(width);
  return {n.output(0), shape};
}

Value Builder::tied_linear(const std::string& embedding, const Value& x, int64_t rows) {
  const std::string turned = embedding + ".tied";
  onnx::NodeProto& n = impl_->node("Transpose", turned, {embedding + ".weight"}, turned + ".weight");
  Impl::ints(n, "perm", {1, 0});
  std::vector<int64_t> shape = x.shape;
  shape.back() = rows;
  return {impl_->plain("MatMul", "matmul", {x.name, turned + ".weight"}).output(0), shape};
}

Value Builder::add_weight(const std::string& name, const Value& x, const std::vector<int64_t>& shape,
                          bool zero) {
  const std::string added = impl_->added_weight({name, shape, zero ? 0 : impl_->embedding_bound()});
  return {impl_->node("Add", name + ".add", {x.name, added}, name + ".out").output(0), x.shape};
}

// The batch is read off x, as exporters do it, so that it may be symbolic.
Value Builder::prepend_weight(const std::string& name, const Value& x) {
  std::vector<int64_t> shape = x.shape, one = x.shape;
  shape[0] += 1;
  one[0] = 1;
  std::vector<int64_t> weight_shape{1};
  weight_shape.insert(weight_shape.end(), one.begin(), one.end());
  const std::string weight = impl_->added_weight({name, weight_shape, impl_->embedding_bound()});
  onnx::NodeProto& batch = impl_->node("Shape", name + ".batch", {x.name}, name + ".batch.out");
  Impl::integer(batch, "start", 0);
  Impl::integer(batch, "end", 1);
  const std::string rest = impl_->integers(name + ".shape", one);
  onnx::NodeProto& to = impl_->node("Concat", name + ".to", {name + ".batch.out", rest}, name + ".to.out");
  Impl::integer(to, "axis", 0);
  impl_->node("Expand", name + ".expand", {weight, name + ".to.out"}, name + ".expand.out");
  onnx::NodeProto& n = impl_->node("Concat", name + ".concat", {name + ".expand.out", x.name}, name + ".out");
  Impl::integer(n, "axis", 1);
  return {n.output(0), shape};
}

Value Builder::mask_future(const Value& x) {
  const int64_t rows = x.shape[x.shape.size() - 2], columns = x.shape.back();
  std::vector<float> mask(static_cast<size_t>(rows * columns));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = row + 1; column < columns; ++column)
      mask[static_cast<size_t>(row * columns + column)] = -1e9F;
  }
  const std::string to = impl_->floats("causal_mask", {rows, columns}, mask);
  return {impl_->plain("Add", "mask", {x.name, to}).output(0), x.shape};
}

// ONNX's LSTM has the steps first and gates in the order input, output, forget, cell; its bias is PyTorch's
// two, one behind the other.
LstmResult Builder::lstm(const std::string& name, const Value& x, int64_t hidden, int64_t layers,
                         const std::vector<LstmState>& initial) {
  FF_CHECK_EQ(x.shape.size(), 2u) << "lstm " << name;
  FF_CHECK(initial.empty() || static_cast<int64_t>(initial.size()) == layers) << "lstm " << name;
  const double bound = impl_->bound(hidden);
  LstmResult out{.name = name, .top = {}, .states = {}, .shape = {x.shape[0], hidden}};
  std::string steps = name + ".steps";
  Impl::ints(impl_->node("Transpose", name + ".steps_first", {x.name}, steps), "perm", {1, 0, 2});
  int64_t in = x.shape[1];
  for (int64_t layer = 0; layer < layers; ++layer, in = hidden) {
    const std::string l = name + ".l" + std::to_string(layer);
    if (layer > 0) {
      steps = l + ".x";
      impl_->node("Squeeze", l + ".squeeze", {out.top, impl_->integers("axes.1", {1})}, steps);
    }
    std::vector<std::string> inputs{steps, impl_->weight({l + ".W", {1, 4 * hidden, in}, bound}),
                                    impl_->weight({l + ".R", {1, 4 * hidden, hidden}, bound}),
                                    impl_->weight({l + ".B", {1, 8 * hidden}, bound})};
    if (!initial.empty()) {
      const LstmState& state = initial[static_cast<size_t>(layer)];
      inputs.insert(inputs.end(), {"", state.hidden, state.cell});
    }
    onnx::NodeProto& n = impl_->node("LSTM", l, inputs, l + ".y");
    n.add_output(l + ".h");
    n.add_output(l + ".c");
    Impl::integer(n, "hidden_size", hidden);
    out.top = l + ".y";
    out.states.push_back({l + ".h", l + ".c"});
  }
  return out;
}

Value Builder::steps(const LstmResult& stack) {
  const std::string squeezed = stack.name + ".y", out = stack.name + ".out";
  impl_->node("Squeeze", stack.name + ".squeeze", {stack.top, impl_->integers("axes.1", {1})}, squeezed);
  Impl::ints(impl_->node("Transpose", stack.name + ".batch_first", {squeezed}, out), "perm", {1, 0, 2});
  return {out, stack.shape};
}

Value Builder::last_step(const LstmResult& stack) {
  const std::string axes = impl_->integers("axes.0", {0});
  return {impl_->plain("Squeeze", "last_step", {stack.states.back().hidden, axes}).output(0),
          {stack.shape.back()}};
}

}  // namespace ff
