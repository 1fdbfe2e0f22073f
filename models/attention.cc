#include "models/attention.h"

#include <cmath>

#include "compiler/base/check.h"

namespace ff {

Value self_attention(Builder& net, const std::vector<std::string>& inputs, const std::string& output,
                     const Value& x, const AttentionOptions& o) {
  const int64_t tokens = x.shape[0], hidden = x.shape[1];
  if (hidden % o.heads != 0)
    throw UserError("a hidden size of " + std::to_string(hidden) + " is not " + std::to_string(o.heads) +
                        " heads of equal size",
                    "--hidden is a multiple of --heads");
  const int64_t width = hidden / o.heads;
  std::vector<Value> parts;
  if (inputs.size() == 1) {
    parts = net.split(net.linear(inputs[0], x, 3 * hidden), 3);
  } else {
    for (const std::string& input : inputs) parts.push_back(net.linear(input, x, hidden));
  }
  const auto by_head = [&](const Value& part) { return net.reshape(part, {tokens, o.heads, width}); };
  const Value query = net.transpose(by_head(parts[0]), {1, 0, 2});
  const Value key = net.transpose(by_head(parts[1]), {1, 2, 0});
  const Value value = net.transpose(by_head(parts[2]), {1, 0, 2});
  Value scores = net.scale(net.matmul(query, key), 1 / std::sqrt(static_cast<double>(width)), "attn.scale");
  if (o.causal) scores = net.mask_future(scores);
  const Value context = net.matmul(net.dropout(net.softmax(scores), o.dropout), value);
  return net.linear(output, net.reshape(net.transpose(context, {1, 0, 2}), {tokens, hidden}), hidden);
}

Value feed_forward(Builder& net, const std::string& first, const std::string& second, const Value& x,
                   int64_t inner) {
  return net.linear(second, net.gelu(net.linear(first, x, inner)), x.shape[1]);
}

}  // namespace ff
