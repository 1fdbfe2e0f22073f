// Residual networks (He et al. 2015), with the stride in a bottleneck's 3x3 convolution, as torchvision has
// them; ResNeXt with its grouped ones.
#include "models/zoo.h"

namespace ff {
namespace {

struct Conv {
  int64_t out = 0;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t groups = 1;
};

Value conv_bn(Builder& net, const std::string& conv, const std::string& bn, const Value& x, const Conv& c) {
  return net.batch_norm(bn, net.conv(conv, x,
                                     {.out = c.out,
                                      .kernel = {c.kernel, c.kernel},
                                      .stride = {c.stride, c.stride},
                                      .pad = {c.kernel / 2, c.kernel / 2},
                                      .groups = c.groups,
                                      .bias = false}));
}

// The block's convolutions, a ReLU between them; the shortcut is a projection where the shape changes.
Value block(Builder& net, const std::string& name, const Value& x, const std::vector<Conv>& convs) {
  Value y = x;
  int64_t stride = 1;
  for (size_t i = 0; i < convs.size(); ++i) {
    const std::string number = std::to_string(i + 1);
    if (i > 0) y = net.relu(y);
    y = conv_bn(net, name + ".conv" + number, name + ".bn" + number, y, convs[i]);
    stride *= convs[i].stride;
  }
  Value shortcut = x;
  if (x.shape != y.shape) {
    shortcut = conv_bn(net, name + ".downsample.0", name + ".downsample.1", x, {y.shape[0], 1, stride});
  }
  return net.relu(net.add(y, shortcut));
}

enum class Block { plain, bottleneck, grouped };

// A ResNeXt's block (Xie et al. 2016) has its 3x3 convolution twice as wide, in 32 groups: 4 channels each in
// the first stage.
constexpr int64_t kCardinality = 32;

std::vector<Conv> convs_of(Block kind, int64_t width, int64_t stride) {
  if (kind == Block::plain) return {{width, 3, stride}, {width, 3, 1}};
  if (kind == Block::bottleneck) return {{width, 1, 1}, {width, 3, stride}, {4 * width, 1, 1}};
  return {{2 * width, 1, 1}, {2 * width, 3, stride, kCardinality}, {4 * width, 1, 1}};
}

void build_resnet(Builder& net, const std::vector<int>& blocks, Block kind) {
  Value x = net.input({3, 224, 224});
  x = net.relu(conv_bn(net, "conv1", "bn1", x, {64, 7, 2}));
  x = net.max_pool(x, {.kernel = 3, .pad = 1});
  int64_t width = 64;
  for (size_t stage = 0; stage < blocks.size(); ++stage, width *= 2) {
    for (int i = 0; i < blocks[stage]; ++i) {
      const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      const std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(i);
      x = block(net, name, x, convs_of(kind, width, stride));
    }
  }
  net.output(net.linear("fc", net.flatten(net.global_average_pool(x)), 1000));
}

}  // namespace

void build_resnet18(Builder& net, const ModelOptions&) { build_resnet(net, {2, 2, 2, 2}, Block::plain); }
void build_resnet50(Builder& net, const ModelOptions&) { build_resnet(net, {3, 4, 6, 3}, Block::bottleneck); }
void build_resnet101(Builder& net, const ModelOptions&) {
  build_resnet(net, {3, 4, 23, 3}, Block::bottleneck);
}
void build_resnext50(Builder& net, const ModelOptions&) { build_resnet(net, {3, 4, 6, 3}, Block::grouped); }

}  // namespace ff
