// MobileNet v2 (Sandler et al. 2018): inverted residuals around depthwise convolutions.
#include "models/zoo.h"

namespace ff {
namespace {

struct Stage {
  int64_t expansion, out, blocks, stride;
};

Value conv_bn(Builder& net, const std::string& conv, const std::string& bn, const Value& x,
              ConvOptions options) {
  options.bias = false;
  options.pad = {options.kernel.h / 2, options.kernel.w / 2};
  return net.batch_norm(bn, net.conv(conv, x, options));
}

// torchvision's layers of a block: 0 expand, 1 depthwise, 2 project, 3 its norm; one less without an
// expansion.
Value inverted_residual(Builder& net, const std::string& name, const Value& x, const Stage& stage,
                        int64_t stride) {
  const int64_t hidden = x.shape[0] * stage.expansion;
  int part = 0;
  const auto next = [&] { return name + ".conv." + std::to_string(part++); };
  Value y = x;
  if (stage.expansion != 1) {
    const std::string expand = next();
    y = net.relu6(conv_bn(net, expand + ".0", expand + ".1", y, {.out = hidden, .kernel = {1, 1}}));
  }
  const std::string depthwise = next();
  y = net.relu6(conv_bn(net, depthwise + ".0", depthwise + ".1", y,
                        {.out = hidden, .kernel = {3, 3}, .stride = {stride, stride}, .groups = hidden}));
  const std::string project = next();
  y = conv_bn(net, project, next(), y, {.out = stage.out, .kernel = {1, 1}});
  return x.shape == y.shape ? net.add(x, y) : y;
}

}  // namespace

void build_mobilenet_v2(Builder& net, const ModelOptions& options) {
  constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                               {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  Value x = net.input({3, 224, 224});
  x = net.relu6(
      conv_bn(net, "features.0.0", "features.0.1", x, {.out = 32, .kernel = {3, 3}, .stride = {2, 2}}));
  int number = 1;
  for (const Stage& stage : kStages) {
    for (int64_t i = 0; i < stage.blocks; ++i, ++number) {
      x = inverted_residual(net, "features." + std::to_string(number), x, stage, i == 0 ? stage.stride : 1);
    }
  }
  x = net.relu6(conv_bn(net, "features.18.0", "features.18.1", x, {.out = 1280, .kernel = {1, 1}}));
  x = net.dropout(net.flatten(net.global_average_pool(x)), options.dropout);
  net.output(net.linear("classifier.1", x, 1000));
}

}  // namespace ff
