// DenseNet-121 (Huang et al. 2016) as torchvision has it: each layer reads all before it in its block.
#include "models/zoo.h"

namespace ff {
namespace {

constexpr int64_t kGrowth = 32;
constexpr int64_t kBottleneck = 4 * kGrowth;

Value norm_conv(Builder& net, const std::string& prefix, const std::string& number, const Value& x,
                int64_t out, int64_t kernel) {
  const Value y = net.relu(net.batch_norm(prefix + "norm" + number, x));
  return net.conv(prefix + "conv" + number, y,
                  {.out = out, .kernel = {kernel, kernel}, .pad = {kernel / 2, kernel / 2}, .bias = false});
}

Value dense_block(Builder& net, const std::string& name, const Value& x, int layers, double dropout) {
  std::vector<Value> features{x};
  for (int i = 1; i <= layers; ++i) {
    const std::string layer = name + ".denselayer" + std::to_string(i) + ".";
    Value y = features.size() == 1 ? x : net.concat(features);
    y = norm_conv(net, layer, "2", norm_conv(net, layer, "1", y, kBottleneck, 1), kGrowth, 3);
    features.push_back(net.dropout(y, dropout));
  }
  return net.concat(features);
}

}  // namespace

void build_densenet121(Builder& net, const ModelOptions& options) {
  constexpr int kLayers[] = {6, 12, 24, 16};
  Value x = net.conv("features.conv0", net.input({3, 224, 224}),
                     {.out = 64, .kernel = {7, 7}, .stride = {2, 2}, .pad = {3, 3}, .bias = false});
  x = net.max_pool(net.relu(net.batch_norm("features.norm0", x)), {.kernel = 3, .pad = 1});
  for (int block = 1; block <= 4; ++block) {
    const std::string number = std::to_string(block);
    x = dense_block(net, "features.denseblock" + number, x, kLayers[block - 1], options.dropout);
    if (block == 4) break;
    x = norm_conv(net, "features.transition" + number + ".", "", x, x.shape[0] / 2, 1);
    x = net.average_pool(x, {});
  }
  x = net.relu(net.batch_norm("features.norm5", x));
  net.output(net.linear("classifier", net.flatten(net.global_average_pool(x)), 1000));
}

}  // namespace ff
