// The recurrent networks of "Beyond Data and Model Parallelism" (Jia et al. 2018): text classification,
// language modelling and translation over 40 steps, with 32,000 words and embeddings of 1,024.
#include "models/zoo.h"

namespace ff {
namespace {

constexpr int64_t kSteps = 40;
constexpr int64_t kVocabulary = 32000;
constexpr int64_t kEmbedding = 1024;
constexpr int64_t kClasses = 2;  // a review is positive or negative

Value embedded(Builder& net, const std::string& input, const std::string& table, const ModelOptions& o) {
  const Value tokens = net.integer_input(input, {size_or(o.sequence, kSteps)});
  return net.embedding(table, tokens, size_or(o.vocabulary, kVocabulary), kEmbedding);
}

}  // namespace

void build_rnntc(Builder& net, const ModelOptions& o) {
  const LstmResult lstm = net.lstm("lstm", embedded(net, "tokens", "embedding", o), size_or(o.hidden, 1024),
                                   size_or(o.layers, 4));
  net.output(net.linear("classifier", net.last_step(lstm), kClasses));
}

void build_rnnlm(Builder& net, const ModelOptions& o) {
  const LstmResult lstm = net.lstm("lstm", embedded(net, "tokens", "embedding", o), size_or(o.hidden, 2048),
                                   size_or(o.layers, 2));
  net.output(net.linear("decoder", net.steps(lstm), size_or(o.vocabulary, kVocabulary)));
}

// The decoder begins with the encoder's last state and reads the target shifted by one; every step of its top
// layer attends to the encoder's ("general" and "concat" of Luong et al. 2015: scores d W e, then
// tanh(V [context; d])).
void build_nmt(Builder& net, const ModelOptions& o) {
  const int64_t hidden = size_or(o.hidden, 1024), layers = size_or(o.layers, 2);
  const LstmResult encoder =
      net.lstm("encoder.lstm", embedded(net, "source", "encoder.embedding", o), hidden, layers);
  const LstmResult decoder = net.lstm("decoder.lstm", embedded(net, "target", "decoder.embedding", o), hidden,
                                      layers, encoder.states);
  const Value e = net.steps(encoder), d = net.steps(decoder);
  const Value scores = net.matmul(net.linear("attention.score", d, hidden, false), net.transpose(e, {1, 0}));
  const Value context = net.matmul(net.softmax(scores), e);
  const Value attended =
      net.tanh(net.linear("attention.combine", net.concat({context, d}, 1), hidden, false));
  net.output(net.linear("generator", attended, size_or(o.vocabulary, kVocabulary)));
}

}  // namespace ff
