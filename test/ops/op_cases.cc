#include "test/ops/op_cases.h"

#include <cmath>
#include <random>

#include "compiler/base/check.h"

namespace ff::test {

OneOp::OneOp(std::string type, Attributes attributes, const std::vector<Input>& inputs,
             const std::vector<size_t>& in_place) {
  std::vector<TensorId> ids;
  for (const Input& in : inputs) {
    Tensor t;
    t.name = in.name, t.shape = in.shape, t.dtype = in.dtype, t.kind = TensorKind::input;
    ids.push_back(in.name.empty() ? TensorId() : graph.add_tensor(std::move(t)));
  }
  if (in_place.empty()) {
    op = add_op(graph, "y", std::move(type), std::move(attributes), std::move(ids));
    return;
  }
  std::vector<TensorId> outputs;
  for (size_t i : in_place) outputs.push_back(ids[i]);
  op = graph.add_op({.name = "y",
                     .type = std::move(type),
                     .attributes = std::move(attributes),
                     .inputs = std::move(ids),
                     .outputs = std::move(outputs),
                     .phase = Phase::update,
                     .config_of = {},
                     .stage_of = {}});
}

std::vector<double> random_values(const Shape& shape, unsigned seed, double scale) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, scale);
  std::vector<double> values(static_cast<size_t>(volume(shape)));
  for (double& v : values) v = normal(random);
  return values;
}

Values random_inputs(const OneOp& c, unsigned seed) {
  Values values;
  for (TensorId id : c.graph.op(c.op).inputs) {
    if (!id.valid()) continue;
    const Tensor& t = c.graph.tensor(id);
    if (is_float(t.dtype)) values[t.name] = random_values(t.shape, seed++);
  }
  return values;
}

Values random_inputs(const OpCase& c, unsigned seed) {
  Values values = random_inputs(c.op, seed * 100);
  std::mt19937 random(seed);
  for (auto& [name, floats] : values) {
    for (double& v : floats) v = c.scale * (c.positive ? 0.5 + 1 / (1 + std::exp(-v)) : v);
  }
  for (TensorId id : c.op.graph.op(c.op.op).inputs) {
    if (!id.valid() || is_float(c.op.graph.tensor(id).dtype)) continue;
    std::vector<double>& labels = values[c.op.graph.tensor(id).name];
    for (int64_t i = volume(c.op.graph.tensor(id).shape); i > 0; --i)
      labels.push_back(static_cast<double>(random() % static_cast<unsigned>(c.classes)));
  }
  return values;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  FF_CHECK_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(a[i] - b[i]);
    largest = std::isnan(d) ? INFINITY : std::max(largest, d);
  }
  return largest;
}

namespace {

constexpr int64_t kYes = 1;
constexpr const char* kGaps = "taps apart, or past the border, leave out elements of the box";
constexpr const char* kPadding = "windows of padding alone touch nothing but the bias";
constexpr const char* kUnread = "rows that no window reads belong to a cell, so that all is read whole";
constexpr const char* kWeights = "class weights are read whole";

void add_conv(std::vector<OpCase>& out) {
  const auto conv = [&](const Shape& x, const Shape& w, Attributes attributes, std::string inexact = {}) {
    out.push_back({.op = {"Conv", std::move(attributes), {{"x", x}, {"w", w}, {"b", {w[0]}}}},
                   .wanted = {0, 1, 2},
                   .inexact = std::move(inexact)});
  };
  conv({2, 2, 4, 4}, {2, 2, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}});
  conv({1, 2, 5, 4}, {2, 2, 3, 2}, {{"strides", Ints{2, 1}}, {"pads", Ints{0, 1, 2, 0}}});
  conv({1, 2, 6, 5}, {2, 2, 2, 2}, {{"dilations", Ints{2, 3}}});
  conv({1, 1, 5, 4}, {2, 1, 2, 2}, {{"dilations", Ints{2, 2}}, {"pads", Ints{1, 0, 2, 1}}}, kGaps);
  conv({2, 4, 4, 3}, {6, 2, 2, 2}, {{"group", int64_t{2}}});
  conv({2, 3, 4, 4}, {3, 1, 3, 3},
       {{"group", int64_t{3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}});
  conv({1, 2, 4, 3}, {4, 1, 2, 3}, {{"group", int64_t{2}}, {"dilations", Ints{3, 1}}});
  conv({2, 2, 4, 4}, {3, 2, 1, 1}, {{"strides", Ints{2, 2}}}, kUnread);
  conv({1, 2, 3, 2}, {2, 2, 1, 1}, {{"pads", Ints{1, 1, 2, 0}}}, kPadding);
  conv({2, 2, 7}, {3, 2, 3}, {{"strides", Ints{2}}});
  conv({1, 2, 3, 3, 3}, {2, 2, 2, 2, 2}, {{"pads", Ints{0, 1, 0, 0, 0, 0}}});
  conv({1, 2, 4, 4}, {3, 2, 2, 2}, {{"relu", kYes}, {"pads", Ints{1, 0, 0, 0}}});
  conv({1, 4, 3, 3}, {4, 2, 2, 2}, {{"relu", kYes}, {"group", int64_t{2}}});
  out.push_back({.op = {"Conv", {}, {{"x", {1, 2, 3, 3}}, {"w", {2, 2, 2, 2}}}}, .wanted = {0, 1}});
}

void add_pool(std::vector<OpCase>& out) {
  const auto pool = [&](const Shape& x, const Ints& kernel, Attributes attributes, std::string inexact = {}) {
    attributes.set("kernel_shape", kernel);
    out.push_back({.op = {"MaxPool", attributes, {{"x", x}}},
                   .wanted = {0},
                   .classes = volume(kernel),
                   .inexact = inexact});
    for (int64_t with_pads : {0, 1}) {
      attributes.set("count_include_pad", with_pads);
      out.push_back({.op = {"AveragePool", attributes, {{"x", x}}}, .wanted = {0}, .inexact = inexact});
    }
  };
  pool({2, 2, 4, 4}, {2, 2}, {{"strides", Ints{2, 2}}});
  pool({1, 2, 4, 5}, {3, 3}, {{"pads", Ints{1, 1, 1, 1}}});
  pool({1, 2, 5, 3}, {3, 2}, {{"strides", Ints{2, 1}}, {"pads", Ints{2, 0, 0, 1}}});
  pool({1, 2, 6, 5}, {3, 3}, {{"strides", Ints{2, 2}}, {"ceil_mode", kYes}});
  pool({1, 1, 6, 4}, {3, 2}, {{"strides", Ints{2, 3}}, {"ceil_mode", kYes}, {"pads", Ints{1, 1, 1, 0}}});
  pool({1, 2, 5, 4}, {2, 2}, {{"dilations", Ints{3, 2}}});
  pool({1, 2, 5, 4}, {2, 2}, {{"dilations", Ints{2, 2}}, {"pads", Ints{1, 1, 0, 1}}}, kGaps);
  pool({1, 2, 6, 6}, {3, 3}, {{"strides", Ints{2, 2}}}, kUnread);
  pool({2, 2, 7}, {3}, {{"strides", Ints{2}}});
  pool({1, 1, 3, 4, 3}, {2, 2, 2}, {{"strides", Ints{1, 2, 1}}});
  for (const Shape& x : {Shape{2, 3, 3, 4}, Shape{2, 2, 5}})
    out.push_back({.op = {"GlobalAveragePool", {}, {{"x", x}}}, .wanted = {0}});
}

void add_normalization(std::vector<OpCase>& out) {
  for (const Shape& x : {Shape{2, 3, 2, 3}, Shape{6, 3}, Shape{2, 2, 3}}) {
    for (int64_t relu : {0, 1}) {
      const Attributes attributes{{"epsilon", 1e-3}, {"relu", relu}};
      const std::vector<Input> inputs{{"x", x}, {"scale", {x[1]}}, {"bias", {x[1]}}};
      out.push_back({.op = {"BatchNorm", attributes, inputs}, .wanted = {0, 1, 2}});
      std::vector<Input> frozen = inputs;
      frozen.push_back({"mean", {x[1]}}), frozen.push_back({"var", {x[1]}});
      out.push_back(
          {.op = {"BatchNormInference", attributes, frozen}, .wanted = {0, 1, 2}, .positive = true});
    }
  }
  for (const auto& [x, groups] : {std::pair{Shape{4, 3, 2, 3}, 2}, {Shape{6, 3}, 3}, {Shape{4, 2, 3}, 4}}) {
    for (int64_t relu : {0, 1}) {
      // Of few elements each: a large epsilon keeps finite differences exact.
      const Attributes attributes{{"epsilon", 0.1}, {"relu", relu}, {"groups", int64_t{groups}}};
      out.push_back({.op = {"BatchNorm", attributes, {{"x", x}, {"scale", {x[1]}}, {"bias", {x[1]}}}},
                     .wanted = {0, 1, 2}});
    }
  }
  for (const Shape& batch : {Shape{3}, Shape{2, 3}}) {
    out.push_back({.op = {"BatchNormRunning",
                          {{"momentum", 0.75}},
                          {{"mean", batch}, {"var", batch}, {"all_mean", {3}}, {"all_var", {3}}},
                          {2, 3}},
                   .wanted = {}});
  }
  for (const auto& [channels, size] : {std::pair{7, 3}, {6, 2}, {5, 4}, {3, 5}, {4, 1}}) {
    const Attributes attributes{{"size", int64_t{size}}, {"alpha", 0.7}, {"beta", 0.75}, {"bias", 1.5}};
    out.push_back({.op = {"LRN", attributes, {{"x", {1, channels, 2, 2}}}}, .wanted = {0}});
  }
}

void add_shape(std::vector<OpCase>& out) {
  const auto add = [&](const char* type, const Attributes& attributes, const std::vector<Input>& inputs) {
    OpCase c{.op = {type, attributes, inputs}, .wanted = {}};
    for (size_t i = 0; i < inputs.size(); ++i) c.wanted.push_back(i);
    out.push_back(std::move(c));
  };
  add("Pad", {{"pads", Ints{0, 0, 1, 2, 0, 0, 3, 0}}, {"value", 0.5}}, {{"x", {2, 2, 2, 3}}});
  add("Pad", {{"pads", Ints{1, -1, 0, 2}}, {"value", -1.0}}, {{"x", {3, 4}}});
  add("Pad", {{"pads", Ints{-2, 0, 4, -1}}}, {{"x", {5, 3}}});
  add("Slice", {{"starts", Ints{0, 1, 2}}, {"ends", Ints{2, 4, 7}}, {"steps", Ints{1, 1, 2}}},
      {{"x", {2, 5, 8}}});
  add("Slice", {{"starts", Ints{1, 0}}, {"ends", Ints{6, 7}}, {"steps", Ints{3, 2}}}, {{"x", {6, 7}}});
  add("Concat", {{"axis", int64_t{1}}}, {{"a", {2, 2, 2}}, {"b", {2, 1, 2}}, {"c", {2, 4, 2}}});
  add("Concat", {{"axis", int64_t{0}}}, {{"a", {1, 3}}, {"b", {3, 3}}});
  add("Reshape", {{"shape", Ints{2, 12}}}, {{"x", {2, 3, 2, 2}}});
  add("Reshape", {{"shape", Ints{4, 1, 6}}}, {{"x", {2, 2, 3, 2}}});
  add("Reshape", {{"shape", Ints{6, 2}}}, {{"x", {4, 3}}});
  add("Reshape", {{"shape", Ints{3, 2, 2, 1}}}, {{"x", {3, 4}}});
  add("Transpose", {{"perm", Ints{2, 0, 1}}}, {{"x", {2, 3, 4}}});
  add("Transpose", {{"perm", Ints{0, 2, 3, 1}}}, {{"x", {2, 3, 2, 2}}});
}

Shape transposed_if(bool yes, Shape s) {
  if (yes) std::swap(s[s.size() - 1], s[s.size() - 2]);
  return s;
}

void add_matmul(std::vector<OpCase>& out) {
  for (int64_t ta : {0, 1}) {
    for (int64_t tb : {0, 1}) {
      const auto add = [&](const Shape& a, const Shape& b, int64_t relu) {
        out.push_back({.op = {"MatMul",
                              {{"trans_a", ta}, {"trans_b", tb}, {"relu", relu}},
                              {{"a", transposed_if(ta != 0, a)},
                               {"b", transposed_if(tb != 0, b)},
                               {"bias", {b.back()}}}},
                       .wanted = {0, 1, 2}});
      };
      add({3, 4}, {4, 5}, 0);
      add({2, 3, 2}, {2, 4}, 0);
      add({2, 1, 2, 3}, {3, 3, 2}, 0);
      add({1, 2, 3}, {2, 3, 2}, 0);
      add({3, 4}, {4, 3}, 1);
    }
  }
  out.push_back({.op = {"MatMul", {}, {{"a", {2, 3}}, {"b", {3, 2}}}}, .wanted = {0, 1}});
}

void add_losses(std::vector<OpCase>& out) {
  for (const char* type : {"Softmax", "LogSoftmax"}) {
    for (int64_t axis : {0, 1, -1})
      out.push_back({.op = {type, {{"axis", axis}}, {{"x", {3, 4, 2}}}}, .wanted = {0}});
  }
  const auto labelled = [&](const char* type, Attributes attributes, bool weighted, std::string inexact) {
    attributes.set("axis", kYes);
    attributes.set("scale", 1.0 / 6);
    out.push_back({.op = {type,
                          std::move(attributes),
                          {{"x", {3, 4, 2}},
                           {"labels", {3, 2}, DType::i64},
                           {weighted ? "weights" : "", {4}},
                           {weighted ? "count" : "", {}}}},
                   .wanted = {0},
                   .classes = weighted ? 4 : 5,  // one that is no score's is ignored
                   .positive = true,
                   .inexact = std::move(inexact)});
  };
  for (const char* type : {"SoftmaxCrossEntropy", "NegativeLogLikelihood"}) {
    for (double smoothing : {0.0, 0.1}) {
      labelled(type, {{"label_smoothing", smoothing}, {"ignore_index", int64_t{4}}}, false, {});
      labelled(type, {{"label_smoothing", smoothing}, {"ignore_index", kYes}}, true, kWeights);
    }
  }
  for (bool weighted : {false, true}) {
    out.push_back({.op = {"LossCount",
                          {{"ignore_index", kYes}, {"float64", kYes}},
                          {{"labels", {4, 2}, DType::i64}, {weighted ? "weights" : "", {3}}}},
                   .wanted = {},
                   .classes = 3,
                   .inexact = weighted ? kWeights : ""});
  }
  for (const char* type : {"MeanSquaredError", "BinaryCrossEntropy"})
    out.push_back({.op = {type, {{"scale", 0.25}}, {{"x", {3, 4}}, {"target", {3, 4}}}}, .wanted = {0}});
}

void add_updates(std::vector<OpCase>& out) {
  const auto update = [&](const char* type, const std::vector<std::string>& state) {
    std::vector<Input> inputs{{"w", {3, 4}}, {"g", {3, 4}}};
    std::vector<size_t> in_place{0};
    for (const std::string& name : state) {
      in_place.push_back(inputs.size());
      inputs.push_back({name, {3, 4}});
    }
    out.push_back({.op = {type, {}, inputs, in_place}, .wanted = {}, .positive = true});
  };
  update("Sgd", {});
  update("Momentum", {"velocity"});
  update("Adam", {"exp_avg", "exp_avg_sq"});
  update("AdamW", {"exp_avg", "exp_avg_sq"});
}

}  // namespace

std::vector<OpCase> op_cases() {
  std::vector<OpCase> out;
  for (auto* add : {add_conv, add_pool, add_normalization, add_elementwise, add_reductions, add_shape,
                    add_matmul, add_losses, add_updates, add_indexing, add_recurrent, add_image_ops})
    add(out);
  return out;
}

}  // namespace ff::test
