// Networks of image patches, B/16: the vision transformer (Dosovitskiy et al. 2020) as torchvision has it,
// and the MLP-Mixer (Tolstikhin et al. 2021).
#include "models/attention.h"
#include "models/zoo.h"

namespace ff {
namespace {

constexpr int64_t kImage = 224;
constexpr int64_t kPatch = 16;
constexpr int64_t kLayers = 12;
constexpr int64_t kHidden = 768;
constexpr int64_t kHeads = 12;
constexpr double kEpsilon = 1e-6;

// {patches, hidden}
Value patches(Builder& net, const std::string& name, int64_t hidden) {
  const Value x = net.conv(name, net.input({3, kImage, kImage}),
                           {.out = hidden, .kernel = {kPatch, kPatch}, .stride = {kPatch, kPatch}});
  return net.transpose(net.reshape(x, {hidden, x.shape[1] * x.shape[2]}), {1, 0});
}

}  // namespace

void build_vit_b16(Builder& net, const ModelOptions& o) {
  const int64_t hidden = size_or(o.hidden, kHidden);
  Value x = net.prepend_weight("class_token", patches(net, "conv_proj", hidden));
  x = net.dropout(net.add_weight("encoder.pos_embedding", x, x.shape), o.dropout);
  for (int64_t layer = 0; layer < size_or(o.layers, kLayers); ++layer) {
    const std::string name = "encoder.layers.encoder_layer_" + std::to_string(layer) + ".";
    const Value y =
        self_attention(net, {name + "self_attention.in_proj"}, name + "self_attention.out_proj",
                       net.layer_norm(name + "ln_1", x, kEpsilon), {.heads = size_or(o.heads, kHeads)});
    x = net.add(x, net.dropout(y, o.dropout));
    const Value z = feed_forward(net, name + "mlp.0", name + "mlp.3",
                                 net.layer_norm(name + "ln_2", x, kEpsilon), 4 * hidden);
    x = net.add(x, net.dropout(z, o.dropout));
  }
  x = net.layer_norm("encoder.ln", x, kEpsilon);
  net.output(net.linear("heads.head", net.entry(x, 0, 0), 1000));
}

// Each block mixes the patches of every channel, then the channels of every patch.
void build_mixer_b16(Builder& net, const ModelOptions& o) {
  const int64_t hidden = size_or(o.hidden, kHidden);
  Value x = patches(net, "stem", hidden);
  for (int64_t layer = 0; layer < size_or(o.layers, kLayers); ++layer) {
    const std::string name = "blocks." + std::to_string(layer) + ".";
    Value y = net.transpose(net.layer_norm(name + "norm1", x, kEpsilon), {1, 0});
    y = feed_forward(net, name + "mlp_tokens.fc1", name + "mlp_tokens.fc2", y, hidden / 2);
    x = net.add(x, net.transpose(y, {1, 0}));
    y = feed_forward(net, name + "mlp_channels.fc1", name + "mlp_channels.fc2",
                     net.layer_norm(name + "norm2", x, kEpsilon), 4 * hidden);
    x = net.add(x, y);
  }
  net.output(net.linear("head", net.mean(net.layer_norm("norm", x, kEpsilon), 0), 1000));
}

}  // namespace ff
