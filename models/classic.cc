// Plain stacks of convolutions with large fully connected layers: AlexNet and VGG, in torchvision's form at
// 224x224, where its adaptive pooling is the identity.
#include "models/zoo.h"

namespace ff {
namespace {

Value classifier(Builder& net, Value x, const int (&layers)[3], const double dropout, bool dropout_first) {
  const auto name = [&](int i) { return "classifier." + std::to_string(layers[i]); };
  x = net.flatten(x);
  for (int i = 0; i < 2; ++i) {
    if (dropout_first) x = net.dropout(x, dropout);
    x = net.relu(net.linear(name(i), x, 4096));
    if (!dropout_first) x = net.dropout(x, dropout);
  }
  return net.linear(name(2), x, 1000);
}

}  // namespace

void build_alexnet(Builder& net, const ModelOptions& options) {
  Value x = net.input({3, 224, 224});
  x = net.relu(net.conv("features.0", x, {.out = 64, .kernel = {11, 11}, .stride = {4, 4}, .pad = {2, 2}}));
  x = net.max_pool(x, {.kernel = 3});
  x = net.relu(net.conv("features.3", x, {.out = 192, .kernel = {5, 5}, .pad = {2, 2}}));
  x = net.max_pool(x, {.kernel = 3});
  x = net.relu(net.conv("features.6", x, {.out = 384, .kernel = {3, 3}, .pad = {1, 1}}));
  x = net.relu(net.conv("features.8", x, {.out = 256, .kernel = {3, 3}, .pad = {1, 1}}));
  x = net.relu(net.conv("features.10", x, {.out = 256, .kernel = {3, 3}, .pad = {1, 1}}));
  x = net.max_pool(x, {.kernel = 3});
  net.output(classifier(net, x, {1, 4, 6}, options.dropout, true));
}

void build_vgg16(Builder& net, const ModelOptions& options) {
  constexpr int64_t kPool = 0;
  Value x = net.input({3, 224, 224});
  int layer = 0;  // torchvision numbers convolutions, activations and pools alike
  for (int64_t out : {64L, 64L, kPool, 128L, 128L, kPool, 256L, 256L, 256L, kPool, 512L, 512L, 512L, kPool,
                      512L, 512L, 512L, kPool}) {
    if (out == kPool) {
      x = net.max_pool(x, {});
      ++layer;
      continue;
    }
    const std::string name = "features." + std::to_string(layer);
    x = net.relu(net.conv(name, x, {.out = out, .kernel = {3, 3}, .pad = {1, 1}}));
    layer += 2;
  }
  net.output(classifier(net, x, {0, 3, 6}, options.dropout, false));
}

}  // namespace ff
