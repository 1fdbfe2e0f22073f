// Multi-head self-attention and the two layers of features behind it: the parts that BERT, GPT-2 and the
// vision transformer share.
//
//   x = net.add(x, self_attention(net, {"attn.c_attn"}, "attn.c_proj", x, {.heads = 12, .causal = true}));
#pragma once

#include <string>
#include <vector>

#include "models/builder.h"

namespace ff {

struct AttentionOptions {
  int64_t heads = 0;
  bool causal = false;  // a token attends to none behind it
  double dropout = 0;   // of the attention's probabilities
};

/// x is {tokens, hidden}; `inputs` names three layers (query, key, value) or one of all three side by side.
/// UserError if the heads do not divide the hidden size.
Value self_attention(Builder& net, const std::vector<std::string>& inputs, const std::string& output,
                     const Value& x, const AttentionOptions& options);

/// Two layers with a GELU between them, the inner one `inner` wide.
Value feed_forward(Builder& net, const std::string& first, const std::string& second, const Value& x,
                   int64_t inner);

}  // namespace ff
