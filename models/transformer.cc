// Language transformers, with the names of Hugging Face's modules: BERT (Devlin et al. 2018) with its
// masked-word head, and GPT-2 (Radford et al. 2019). Both project onto their vocabulary with the embedding's
// own table. GELU is the exact one, also for GPT-2, whose authors approximate it by a tanh; sequences have
// full length, so that BERT has no padding mask.
#include "models/attention.h"
#include "models/zoo.h"

namespace ff {
namespace {

struct Sizes {
  int64_t layers, hidden, heads, sequence, vocabulary;
};

Sizes sizes(const ModelOptions& o, const Sizes& own) {
  return {size_or(o.layers, own.layers), size_or(o.hidden, own.hidden), size_or(o.heads, own.heads),
          size_or(o.sequence, own.sequence), size_or(o.vocabulary, own.vocabulary)};
}

constexpr double kBertEpsilon = 1e-12;

Value bert_embeddings(Builder& net, const Sizes& s) {
  const std::string name = "bert.embeddings.";
  const Value tokens = net.integer_input("input_ids", {s.sequence});
  const Value segments = net.integer_input("token_type_ids", {s.sequence});
  Value x = net.embedding(name + "word_embeddings", tokens, s.vocabulary, s.hidden);
  x = net.add(x, net.embedding(name + "token_type_embeddings", segments, 2, s.hidden));
  x = net.add_weight(name + "position_embeddings.weight", x, {s.sequence, s.hidden});
  return net.layer_norm(name + "LayerNorm", x, kBertEpsilon);
}

void build_bert(Builder& net, const Sizes& s, double dropout) {
  Value x = net.dropout(bert_embeddings(net, s), dropout);
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    const std::string name = "bert.encoder.layer." + std::to_string(layer) + ".";
    const std::string in = name + "attention.self.";
    const Value y =
        self_attention(net, {in + "query", in + "key", in + "value"}, name + "attention.output.dense", x,
                       {.heads = s.heads, .dropout = dropout});
    x = net.layer_norm(name + "attention.output.LayerNorm", net.add(net.dropout(y, dropout), x),
                       kBertEpsilon);
    const Value z = feed_forward(net, name + "intermediate.dense", name + "output.dense", x, 4 * s.hidden);
    x = net.layer_norm(name + "output.LayerNorm", net.add(net.dropout(z, dropout), x), kBertEpsilon);
  }
  const std::string head = "cls.predictions.";
  x = net.gelu(net.linear(head + "transform.dense", x, s.hidden));
  x = net.layer_norm(head + "transform.LayerNorm", x, kBertEpsilon);
  x = net.tied_linear("bert.embeddings.word_embeddings", x, s.vocabulary);
  net.output(net.add_weight(head + "bias", x, {s.vocabulary}, true));
}

constexpr double kGptEpsilon = 1e-5;

void build_gpt2(Builder& net, const Sizes& s, double dropout) {
  const Value tokens = net.integer_input("input_ids", {s.sequence});
  Value x = net.embedding("transformer.wte", tokens, s.vocabulary, s.hidden);
  x = net.dropout(net.add_weight("transformer.wpe.weight", x, {s.sequence, s.hidden}), dropout);
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    const std::string name = "transformer.h." + std::to_string(layer) + ".";
    const Value y = self_attention(net, {name + "attn.c_attn"}, name + "attn.c_proj",
                                   net.layer_norm(name + "ln_1", x, kGptEpsilon),
                                   {.heads = s.heads, .causal = true, .dropout = dropout});
    x = net.add(x, net.dropout(y, dropout));
    const Value z = feed_forward(net, name + "mlp.c_fc", name + "mlp.c_proj",
                                 net.layer_norm(name + "ln_2", x, kGptEpsilon), 4 * s.hidden);
    x = net.add(x, net.dropout(z, dropout));
  }
  net.output(
      net.tied_linear("transformer.wte", net.layer_norm("transformer.ln_f", x, kGptEpsilon), s.vocabulary));
}

}  // namespace

void build_bert_base(Builder& net, const ModelOptions& o) {
  build_bert(net, sizes(o, {12, 768, 12, 512, 30522}), o.dropout);
}
void build_bert_large(Builder& net, const ModelOptions& o) {
  build_bert(net, sizes(o, {24, 1024, 16, 512, 30522}), o.dropout);
}
void build_gpt2_small(Builder& net, const ModelOptions& o) {
  build_gpt2(net, sizes(o, {12, 768, 12, 1024, 50257}), o.dropout);
}
void build_gpt2_xl(Builder& net, const ModelOptions& o) {
  build_gpt2(net, sizes(o, {48, 1600, 25, 1024, 50257}), o.dropout);
}

}  // namespace ff
