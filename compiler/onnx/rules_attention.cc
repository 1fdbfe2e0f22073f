// Translation of Attention and RotaryEmbedding (opset 23) to the ops that they are made of.
//
//   Attention q [b, h, l, d], k [b, h, s, d], v [b, h, s, e]:
//     MatMul(Softmax(MatMul(q * sqrt(scale), k^T * sqrt(scale)) + mask), v)           [b, h, l, e]
#include <cmath>

#include "compiler/onnx/fold.h"
#include "compiler/onnx/rules.h"

namespace ff::onnx_import {
namespace {

/// What a mask adds to scores that do not count. Finite, so that a row of them alone is no NaN.
constexpr double kMasked = -1e30;

/// Builds parts of one node under numbered names.
class Parts {
 public:
  explicit Parts(Node& node) : node_(node) {}
  TensorId emit(const std::string& type, Attributes attributes, std::vector<TensorId> inputs) {
    return node_.emit(type, std::move(attributes), std::move(inputs), "step" + std::to_string(count_++));
  }
  const Shape& shape(TensorId x) const { return node_.graph().tensor(x).shape; }
  TensorId number(const std::string& name, double value) { return node_.scalar(name, value, DType::f32); }
  TensorId reshape(TensorId x, const Shape& to) {
    return shape(x) == to ? x : emit("Reshape", {{"shape", to}}, {x});
  }
  TensorId transpose(TensorId x, const Ints& perm) { return emit("Transpose", {{"perm", perm}}, {x}); }
  TensorId product(TensorId a, TensorId b, bool transposed) {
    return emit("MatMul", {{"trans_a", int64_t{0}}, {"trans_b", int64_t{transposed}}}, {a, b, TensorId()});
  }
  TensorId slice(TensorId x, size_t axis, int64_t begin, int64_t end, int64_t step = 1) {
    Shape starts(shape(x).size(), 0), ends = shape(x), steps(shape(x).size(), 1);
    starts[axis] = begin, ends[axis] = end, steps[axis] = step;
    return emit("Slice", {{"starts", starts}, {"ends", ends}, {"steps", steps}}, {x});
  }

 private:
  Node& node_;
  int count_ = 0;
};

/// [b, l, h * d] as [b, h, l, d]; what has four axes already stays.
TensorId by_heads(Parts& p, TensorId x, int64_t heads) {
  const Shape s = p.shape(x);
  if (s.size() == 4) return x;
  if (heads < 1 || s.size() != 3 || s[2] % heads != 0)
    throw UserError("an operand of shape " + to_string(s) + " has no " + std::to_string(heads) + " heads");
  return p.transpose(p.reshape(x, {s[0], s[1], heads, s[2] / heads}), {0, 2, 1, 3});
}

/// Each head of keys or values for a group of heads of queries.
TensorId repeat_heads(Parts& p, TensorId x, int64_t heads) {
  const Shape s = p.shape(x);
  if (s[1] == heads) return x;
  if (heads % s[1] != 0)
    throw UserError(std::to_string(heads) + " heads of queries are no multiple of " + std::to_string(s[1]) +
                    " of keys");
  x = p.reshape(x, {s[0], s[1], 1, s[2], s[3]});
  x = p.emit("Expand", {{"shape", Shape{s[0], s[1], heads / s[1], s[2], s[3]}}}, {x});
  return p.reshape(x, {s[0], heads, s[2], s[3]});
}

/// What is added to the scores: zero, and kMasked where a mask says no, or a key is later than the query.
TensorId added_mask(Node& node, Parts& p, int64_t queries, int64_t keys) {
  TensorId mask;
  if (node.has(3)) {
    mask = node.operand(3);
    if (node.graph().tensor(mask).dtype == DType::boolean)
      mask = p.emit("Where", {}, {mask, p.number("open", 0), p.number("closed", kMasked)});
  }
  if (node.integer("is_causal", 0) == 0) return mask;
  Constant causal =
      generate(DType::f32, {queries, keys}, [&](int64_t i) { return i % keys > i / keys ? kMasked : 0.0; });
  const TensorId later = node.frozen("causal", std::move(causal));
  return mask.valid() ? p.emit("Add", {}, {mask, later}) : later;
}

}  // namespace

void import_attention(Node& node) {
  for (int i : {4, 5, 6}) {
    if (node.has(i))
      throw Unsupported("keys and values of the past: attention is trained on whole sequences");
  }
  for (int o : {1, 2, 3}) node.leave_out(o, "its output " + std::to_string(o) + " is used");
  Parts p(node);
  const bool three = node.shape(0).size() == 3;
  const TensorId q = by_heads(p, node.operand(0), node.integer("q_num_heads", 0));
  const Shape shape = p.shape(q);
  TensorId k = by_heads(p, node.operand(1), node.integer("kv_num_heads", 0));
  TensorId v = by_heads(p, node.operand(2), node.integer("kv_num_heads", 0));
  k = repeat_heads(p, k, shape[1]);
  v = repeat_heads(p, v, shape[1]);
  const double scale = node.real("scale", 1 / std::sqrt(static_cast<double>(shape[3])));
  TensorId scores = p.product(q, k, true);
  scores = p.emit("Mul", {}, {scores, p.number("scale", scale)});
  if (const double cap = node.real("softcap", 0); cap > 0) {
    const TensorId limit = p.number("softcap", cap);
    scores = p.emit("Mul", {}, {p.emit("Tanh", {}, {p.emit("Div", {}, {scores, limit})}), limit});
  }
  if (const TensorId mask = added_mask(node, p, shape[2], p.shape(k)[2]); mask.valid())
    scores = p.emit("Add", {}, {scores, mask});
  TensorId y = p.product(p.emit("Softmax", {{"axis", int64_t{3}}}, {scores}), v, false);
  if (three) {
    const Shape s = p.shape(y);
    y = p.reshape(p.transpose(y, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
  }
  node.result(node.emit("Identity", {}, {y}));
}

/// Pairs of each head's elements are turned by the angle of their position: halves of the head, or neighbours
/// where they are interleaved. Elements beyond `rotary_embedding_dim` stay.
void import_rotary_embedding(Node& node) {
  Parts p(node);
  const bool three = node.shape(0).size() == 3;
  const bool interleaved = node.integer("interleaved", 0) != 0;
  const TensorId x = by_heads(p, node.operand(0), node.integer("num_heads", 0));
  const Shape s = p.shape(x);
  const int64_t given = node.integer("rotary_embedding_dim", 0), turned = given > 0 ? given : s[3];
  if (turned > s[3] || turned % 2 != 0)
    throw UserError("rotary_embedding_dim=" + std::to_string(turned) + " of heads of " +
                    std::to_string(s[3]));
  const auto angles = [&](int input) {
    TensorId table = node.operand(input);
    if (node.has(3)) table = p.emit("Gather", {{"axis", int64_t{0}}}, {table, node.operand(3)});
    const Shape t = p.shape(table);  // [b, l, turned / 2]
    return p.reshape(table, {t[0], 1, t[1], t[2]});
  };
  const TensorId cos = angles(1), sin = angles(2);
  const TensorId part = turned < s[3] ? p.slice(x, 3, 0, turned) : x;
  const TensorId a = interleaved ? p.slice(part, 3, 0, turned - 1, 2) : p.slice(part, 3, 0, turned / 2);
  const TensorId b = interleaved ? p.slice(part, 3, 1, turned, 2) : p.slice(part, 3, turned / 2, turned);
  const auto times = [&](TensorId l, TensorId r) { return p.emit("Mul", {}, {l, r}); };
  TensorId real = p.emit("Sub", {}, {times(a, cos), times(b, sin)});
  TensorId imaginary = p.emit("Add", {}, {times(a, sin), times(b, cos)});
  if (interleaved) {
    const Shape column{s[0], s[1], s[2], turned / 2, 1};
    real = p.reshape(real, column);
    imaginary = p.reshape(imaginary, column);
  }
  TensorId y = p.emit("Concat", {{"axis", int64_t{interleaved ? 4 : 3}}}, {real, imaginary});
  y = p.reshape(y, {s[0], s[1], s[2], turned});
  if (turned < s[3]) y = p.emit("Concat", {{"axis", int64_t{3}}}, {y, p.slice(x, 3, turned, s[3])});
  if (three) y = p.reshape(p.transpose(y, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
  node.result(node.emit("Identity", {}, {y}));
}

}  // namespace ff::onnx_import
