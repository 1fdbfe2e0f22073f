#include "test/e2e/random_nets.h"

#include <algorithm>

#include "compiler/ops/op_table.h"
#include "test/support/evaluate.h"

namespace ff::test {
namespace {

class Net {
 public:
  Net(Rng& rng, bool wide) : rng_(rng), wide_(wide) {
    graph_.name = "random";
    graph_.batch = 3 + rng_.below(4);
    Tensor image;
    image.name = "image";
    image.shape = {graph_.batch, 2 + rng_.below(3), 6 + rng_.below(5), 6 + rng_.below(5)};
    image.kind = TensorKind::input;
    image.batch_axis = 0;
    const bool tokens = wide_ && rng_.below(5) == 0;
    if (tokens) {
      image.name = "tokens";
      image.shape.pop_back();
      image.dtype = DType::i64;
    }
    x_ = graph_.add_tensor(image);
    graph_.inputs = {x_};
    if (tokens)
      x_ = op("Gather", {{"axis", int64_t{0}}}, {parameter({3 + rng_.below(9), 6 + rng_.below(5)}), x_});
  }

  Graph build() {
    const int64_t layers = 2 + rng_.below(4);
    for (int64_t i = 0; i < layers; ++i) image_layer();
    head();
    graph_.outputs = {x_};
    return std::move(graph_);
  }

 private:
  const Shape& shape() const { return graph_.tensor(x_).shape; }

  TensorId parameter(Shape s, ParameterRole role = ParameterRole::trained) {
    Tensor t;
    t.name = "p" + std::to_string(parameters_++);
    t.shape = std::move(s);
    t.kind = TensorKind::parameter;
    t.source.role = role;
    return graph_.add_tensor(std::move(t));
  }

  TensorId op(const std::string& type, Attributes attributes, std::vector<TensorId> inputs) {
    const OpId id =
        add_op(graph_, type + std::to_string(count_++), type, std::move(attributes), std::move(inputs));
    for (TensorId out : graph_.op(id).outputs) {
      Tensor& t = graph_.tensor(out);
      if (!t.shape.empty() && t.shape[0] == graph_.batch && t.shape.size() > 1) t.batch_axis = 0;
    }
    return graph_.op(id).outputs[0];
  }

  TensorId conv(TensorId x, int64_t channels) {
    const Shape s = graph_.tensor(x).shape;
    const int64_t k = 1 + rng_.below(3);
    const int64_t pad = rng_.below(k);
    return op("Conv",
              {{"strides", Ints{1, 1}},
               {"pads", Ints{pad, k - 1 - pad, k - 1 - pad, pad}},
               {"dilations", Ints{1, 1}},
               {"group", int64_t{1}}},
              {x, parameter({channels, s[1], k, k}), rng_.below(2) ? parameter({channels}) : TensorId()});
  }

  void batch_norm() {
    const int64_t c = shape()[1];
    Attributes attributes{{"epsilon", 1e-5}};
    if (shape()[0] % 2 == 0 && rng_.below(3) == 0) attributes.set("groups", int64_t{2});
    const OpId id = add_op(graph_, "BatchNorm" + std::to_string(count_++), "BatchNorm", attributes,
                           {x_, parameter({c}), parameter({c})});
    const Op bn = graph_.op(id);
    graph_.tensor(bn.outputs[0]).batch_axis = 0;
    const TensorId mean = parameter({c}, ParameterRole::state);
    const TensorId variance = parameter({c}, ParameterRole::state);
    Op running;
    running.name = bn.name + "/running";
    running.type = "BatchNormRunning";
    running.attributes = {{"momentum", 0.9}, {"count", volume(shape()) / c}};
    running.inputs = {bn.outputs[1], bn.outputs[2], mean, variance};
    running.outputs = {mean, variance};
    running.phase = Phase::update;
    graph_.add_op(std::move(running));
    x_ = bn.outputs[0];
  }

  /// The largest half along the last axis of what no two elements of can tie.
  std::vector<TensorId> top_half() {
    const Shape s = shape();
    x_ = op("Add", {}, {x_, parameter({s[1], s[2], s[3]})});
    op("TopK", {{"axis", int64_t{3}}, {"k", (s[3] + 1) / 2}, {"largest", rng_.below(2)}}, {x_});
    return graph_.ops.back().outputs;
  }

  /// A layer of an op that indexes or moves.
  void index_layer() {
    const Shape s = shape();
    const Ints ones(4, 1);
    switch (rng_.below(8)) {
      case 0:
        if (s[2] < 4) return;
        x_ = op("Slice", {{"starts", Ints{0, 0, 1, 0}}, {"ends", s}, {"steps", Ints{1, 1, 2, 1}}}, {x_});
        break;
      case 1: {  // the channels' two parts in the other order
        const TensorId a =
            op("Slice", {{"starts", Ints{0, 0, 0, 0}}, {"ends", Ints{s[0], 1, s[2], s[3]}}, {"steps", ones}},
               {x_});
        const TensorId b = op("Slice", {{"starts", Ints{0, 1, 0, 0}}, {"ends", s}, {"steps", ones}}, {x_});
        x_ = op("Concat", {{"axis", int64_t{1}}}, {b, a});
        break;
      }
      case 2:
        x_ =
            op("CumSum",
               {{"axis", 1 + rng_.below(3)}, {"exclusive", rng_.below(2)}, {"reverse", rng_.below(2)}}, {x_});
        x_ = op("Tanh", {}, {x_});
        break;
      case 3:
        x_ = op("Trilu", {{"upper", rng_.below(2)}, {"k", rng_.below(3) - 1}}, {x_});
        break;
      case 4:
        x_ =
            op("Mul", {}, {x_, op("Expand", {{"shape", Ints{s[1], s[2], s[3]}}}, {parameter({s[1], 1, 1})})});
        break;
      case 5: {  // others' elements where the largest are
        const std::vector<TensorId> top = top_half();
        const TensorId others = op("Tanh", {}, {conv(x_, s[1])});
        const Shape o = graph_.tensor(others).shape;
        if (o != s) break;
        x_ = op("Add", {}, {top[0], op("GatherElements", {{"axis", int64_t{3}}}, {others, top[1]})});
        break;
      }
      case 6: {  // the largest squashed
        const std::vector<TensorId> top = top_half();
        x_ = op("ScatterElements",
                {{"axis", int64_t{3}}, {"reduction", std::string(rng_.below(2) ? "add" : "none")}},
                {x_, top[1], op("Tanh", {}, {top[0]})});
        break;
      }
      default: {  // a code for the largest channel
        x_ = op("Add", {}, {x_, parameter({s[1], s[2], s[3]})});
        const TensorId largest = op("ArgMax", {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}}, {x_});
        const TensorId code = op("Gather", {{"axis", int64_t{0}}}, {parameter({s[1], s[1]}), largest});
        x_ = op("Add", {}, {x_, op("Transpose", {{"perm", Ints{0, 3, 1, 2}}}, {code})});
        break;
      }
    }
  }

  void resize(const std::string& mode, const Ints& sizes) {
    const Shape s = shape();
    x_ = op("Resize",
            {{"sizes", sizes},
             {"mode", mode},
             {"rounding", std::string("round_prefer_floor")},
             {"result_shift", 0.5},
             {"from", Reals{static_cast<double>(s[2]), static_cast<double>(s[3])}},
             {"to", Reals{static_cast<double>(sizes[0]), static_cast<double>(sizes[1])}},
             {"shifts", Reals{0.5, 0.5}},
             {"coefficient", -0.75},
             {"exclude_outside", int64_t{0}}},
            {x_});
  }

  /// A layer that makes the image larger or smaller.
  void sampling_layer() {
    const Shape s = shape();
    switch (rng_.below(5)) {
      case 0: {
        if (s[2] * s[3] > 80) return;
        const int64_t k = 1 + rng_.below(3), more = rng_.below(2);
        const Ints extents{(s[2] - 1) * 2 + k + more, s[3] + k - 1};
        x_ = op("ConvTranspose", {{"strides", Ints{2, 1}}, {"output_shape", extents}},
                {x_, parameter({s[1], 2 + rng_.below(3), k, k})});
        break;
      }
      case 1:
        if (s[2] * s[3] <= 80) resize("nearest", {2 * s[2], s[3]});
        break;
      case 2:
        resize(rng_.below(2) ? "linear" : "cubic", {std::max<int64_t>(3, s[2] - 2), s[3] + 1});
        break;
      case 3:
        if (s[2] < 4 || s[3] < 4) return;
        x_ = op("LpPool",
                {{"p", 2 + rng_.below(2)},
                 {"kernel_shape", Ints{2, 3}},
                 {"strides", Ints{1, 2}},
                 {"pads", Ints{1, 0, 0, 1}},
                 {"dilations", Ints{1, 1}}},
                {x_});
        break;
      default: {  // space to depth
        if (s[2] % 2 != 0 || s[3] < 4) return;
        x_ = op("Reshape", {{"shape", Ints{s[0], s[1], s[2] / 2, 2, s[3]}}}, {x_});
        x_ = op("Transpose", {{"perm", Ints{0, 3, 1, 2, 4}}}, {x_});
        x_ = op("Reshape", {{"shape", Ints{s[0], 2 * s[1], s[2] / 2, s[3]}}}, {x_});
        break;
      }
    }
  }

  TensorId reduced(const std::string& type, TensorId x, const Ints& axes, double scale = 1) {
    Attributes attributes{{"axes", axes}};
    if (type == "ReduceSum") attributes.set("scale", scale);
    return op(type, attributes, {x});
  }

  /// A layer of functions, choices, reductions or normalised positions. Choices are between values that meet
  /// where the choice changes: rounding decides nothing.
  void elementwise_layer() {
    const Shape s = shape();
    switch (rng_.below(8)) {
      case 0: {
        constexpr const char* kFunctions[] = {"Gelu", "Softplus", "Mish", "HardSwish",
                                              "Erf",  "Softsign", "Atan", "Sin"};
        x_ = op(kFunctions[rng_.below(8)], {}, {x_});
        break;
      }
      case 1: {  // what is positive, and the other way round a slope
        const TensorId scaled = op("Mul", {}, {x_, parameter({s[3]})});
        const TensorId zero = op("Sub", {}, {x_, x_});
        x_ = op("Where", {},
                {op("Greater", {}, {x_, zero}), x_,
                 op("Min", {}, {op("Abs", {}, {scaled}), op("Abs", {}, {x_})})});
        break;
      }
      case 2:
        x_ = op(rng_.below(2) ? "Max" : "Min", {}, {x_, parameter({s[2], 1})});
        break;
      case 3:
        x_ = op("PRelu", {}, {x_, parameter({s[1], 1, 1})});
        break;
      case 4: {  // what is left of a mean
        const Ints axes = rng_.below(2) ? Ints{1, 3} : Ints{0, 2};
        const double count =
            static_cast<double>(s[static_cast<size_t>(axes[0])] * s[static_cast<size_t>(axes[1])]);
        x_ = op("Sub", {}, {x_, reduced("ReduceSum", x_, axes, 1 / count)});
        break;
      }
      case 5: {  // over the largest
        const TensorId large = reduced(
            "ReduceMax", op("Add", {}, {op("Abs", {}, {x_}), op("Exp", {}, {parameter({s[1], s[2], s[3]})})}),
            {3});
        x_ = op("Div", {}, {x_, large});
        break;
      }
      case 6:
        x_ = op("LayerNorm", {{"axis", int64_t{3}}, {"epsilon", 1e-2}},
                {x_, parameter({s[3]}), parameter({s[3]})});
        break;
      default:
        x_ = op("RMSNorm", {{"axis", int64_t{2}}, {"epsilon", 1e-2}}, {x_, parameter({s[2], s[3]})});
        break;
    }
  }

  void image_layer() {
    if (wide_ && rng_.below(4) == 0) return index_layer();
    if (wide_ && rng_.below(4) == 0) return elementwise_layer();
    if (wide_ && rng_.below(4) == 0) return sampling_layer();
    const Shape s = shape();
    const bool small = s[2] < 4 || s[3] < 4;
    switch (rng_.below(11)) {
      case 0:
      case 1:
        x_ = conv(x_, 2 + rng_.below(4));
        break;
      case 2:
        x_ = conv(x_, 2 + rng_.below(4));
        x_ = op("Relu", {}, {x_});
        break;
      case 3:
        batch_norm();
        break;
      case 4:
        batch_norm();
        x_ = op("Relu", {}, {x_});
        break;
      case 5:
        if (small) return;
        x_ = op(rng_.below(2) ? "MaxPool" : "AveragePool",
                {{"kernel_shape", Ints{2, 3}},
                 {"strides", Ints{2, 2}},
                 {"pads", Ints{0, 1, 1, 0}},
                 {"dilations", Ints{1, 1}},
                 {"ceil_mode", rng_.below(2)},
                 {"count_include_pad", rng_.below(2)}},
                {x_});
        break;
      case 6: {  // residual
        const TensorId branch = op("Tanh", {}, {conv(x_, s[1])});
        if (graph_.tensor(branch).shape == s) x_ = op("Add", {}, {x_, branch});
        break;
      }
      case 7: {
        const TensorId a = conv(x_, 2);
        if (graph_.tensor(a).shape[2] == s[2] && graph_.tensor(a).shape[3] == s[3])
          x_ = op("Concat", {{"axis", int64_t{1}}}, {a, x_});
        break;
      }
      case 8:
        x_ = op("LRN", {{"size", int64_t{3}}, {"alpha", 0.1}, {"beta", 0.75}, {"bias", 1.0}}, {x_});
        break;
      case 9:
        x_ = op("Mul", {}, {x_, parameter({s[1], 1, 1})});
        break;
      default:
        x_ = op("Pad", {{"pads", Ints{0, 0, 1, 0, 0, 0, 0, 1}}, {"value", 0.5}}, {x_});
        break;
    }
  }

  /// A recurrent layer over the rows of the channels, as steps.
  void recurrent_layer() {
    const Shape s = shape();
    x_ = op("Reshape", {{"shape", Ints{s[0], s[1] * s[2], s[3]}}}, {x_});
    x_ = op("Transpose", {{"perm", Ints{1, 0, 2}}}, {x_});
    constexpr const char* kTypes[] = {"LSTM", "GRU", "RNN"};
    constexpr const char* kDirections[] = {"forward", "reverse", "bidirectional"};
    const int64_t type = rng_.below(3), direction = rng_.below(3), hidden = 2 + rng_.below(3);
    const int64_t d = direction == 2 ? 2 : 1, gates = (type == 0 ? 4 : type == 1 ? 3 : 1) * hidden;
    Attributes attributes{{"direction", std::string(kDirections[direction])}};
    if (type == 1) attributes.set("linear_before_reset", rng_.below(2));
    if (type == 2) attributes.set("activation", std::string("Tanh"));
    std::vector<TensorId> inputs{x_,
                                 parameter({d, gates, s[3]}),
                                 parameter({d, gates, hidden}),
                                 rng_.below(2) ? parameter({d, 2 * gates}) : TensorId(),
                                 TensorId(),
                                 TensorId()};
    if (type == 0)
      inputs.insert(inputs.end(), {TensorId(), rng_.below(2) ? parameter({d, 3 * hidden}) : TensorId()});
    const TensorId y = op(kTypes[type], attributes, inputs);
    x_ = op("Transpose", {{"perm", Ints{2, 0, 1, 3}}}, {y});
  }

  void head() {
    if (wide_ && rng_.below(3) == 0) recurrent_layer();
    if (rng_.below(3) == 0) x_ = op("GlobalAveragePool", {}, {x_});
    const Shape s = shape();
    x_ = op("Reshape", {{"shape", Ints{s[0], s[1] * s[2] * s[3]}}}, {x_});
    if (rng_.below(2)) {
      const int64_t hidden = 3 + rng_.below(4);
      x_ = op("MatMul", {{"trans_a", int64_t{0}}, {"trans_b", int64_t{1}}},
              {x_, parameter({hidden, shape()[1]}), parameter({hidden})});
      x_ = rng_.below(2) ? op("Relu", {}, {x_}) : op("Sigmoid", {}, {x_});
      if (rng_.below(2)) x_ = op("Dropout", {{"ratio", 0.3}, {"op_key", int64_t{77}}}, {x_});
    }
    const int64_t classes = 3 + rng_.below(4);
    x_ = op("MatMul", {{"trans_a", int64_t{0}}, {"trans_b", int64_t{0}}},
            {x_, parameter({shape()[1], classes}), parameter({classes})});
    if (rng_.below(4) == 0) x_ = op(rng_.below(2) ? "Softmax" : "LogSoftmax", {{"axis", int64_t{1}}}, {x_});
  }

  Rng& rng_;
  bool wide_;
  Graph graph_;
  TensorId x_;
  int parameters_ = 0;
  int count_ = 0;
};

}  // namespace

Graph random_net(Rng& rng, bool wide) { return Net(rng, wide).build(); }

RandomTraining random_training(Rng& rng, bool wide) {
  RandomTraining out;
  out.net = random_net(rng, wide);
  // Squared errors are not bounded: a small rate keeps the nets from running away.
  const bool squares = rng.below(4) == 0;
  out.options.losses = {parse_loss(squares ? "mse" : "softmax-cross-entropy")};
  out.learning_rate = squares ? 1e-5 : 1e-2;
  constexpr const char* kOptimizers[] = {"sgd", "momentum", "adam", "adamw"};
  out.options.optimizer = kOptimizers[rng.below(4)];
  return out;
}

Strategy random_strategy(const Problem& problem, Rng& rng) {
  const int devices = problem.num_devices();
  Strategy out;
  out.configs.resize(problem.graph().ops.size());
  for (OpId leader : problem.leaders()) {
    Config& config = out.configs[leader.index()];
    const auto& dims = problem.space(leader).dims;
    config.degrees.assign(dims.size(), 1);
    int64_t cells = 1;
    for (int64_t tries = rng.below(4); tries > 0 && !dims.empty(); --tries) {
      const auto d = static_cast<size_t>(rng.below(static_cast<int64_t>(dims.size())));
      const int64_t limit = std::min<int64_t>({problem.max_degree(leader, d), 4, 12 / cells});
      if (config.degrees[d] > 1 || limit < 2) continue;
      config.degrees[d] = static_cast<int32_t>(1 + rng.below(limit));
      cells *= config.degrees[d];
    }
    config.replicas = rng.below(3) == 0 ? 2 : 1;
    const int64_t kind = rng.below(3);
    const int64_t base = rng.below(devices);
    for (int64_t c = 0; c < config.num_cells(); ++c) {
      config.devices.push_back(DeviceId(kind == 0 ? rng.below(devices) : (base + c * kind) % devices));
    }
  }
  return out;
}

}  // namespace ff::test
