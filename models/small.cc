// Models of 28x28 and 32x32 images, for demos and tests.
#include "models/zoo.h"

namespace ff {

void build_mlp(Builder& net, const ModelOptions&) {
  Value x = net.flatten(net.input({1, 28, 28}));
  x = net.relu(net.linear("fc1", x, 512));
  x = net.relu(net.linear("fc2", x, 512));
  net.output(net.linear("fc3", x, 10));
}

void build_lenet5(Builder& net, const ModelOptions&) {
  Value x = net.input({1, 28, 28});
  x = net.tanh(net.conv("conv1", x, {.out = 6, .kernel = {5, 5}, .pad = {2, 2}}));
  x = net.average_pool(x, {});
  x = net.tanh(net.conv("conv2", x, {.out = 16, .kernel = {5, 5}}));
  x = net.flatten(net.average_pool(x, {}));
  x = net.tanh(net.linear("fc1", x, 120));
  x = net.tanh(net.linear("fc2", x, 84));
  net.output(net.linear("fc3", x, 10));
}

void build_fashion_cnn(Builder& net, const ModelOptions&) {
  Value x = net.input({1, 28, 28});
  x = net.max_pool(net.relu(net.conv("conv1", x, {.out = 16, .kernel = {5, 5}})), {});
  x = net.max_pool(net.relu(net.conv("conv2", x, {.out = 32, .kernel = {5, 5}})), {});
  x = net.relu(net.linear("fc1", net.flatten(x), 128));
  net.output(net.linear("fc2", x, 10));
}

void build_residual_bn(Builder& net, const ModelOptions&) {
  const auto normed = [&](const std::string& name, const Value& x, int64_t out, int64_t kernel,
                          int64_t stride) {
    const ConvOptions conv{.out = out,
                           .kernel = {kernel, kernel},
                           .stride = {stride, stride},
                           .pad = {kernel / 2, kernel / 2},
                           .bias = false};
    return net.batch_norm(name + ".bn", net.conv(name + ".conv", x, conv));
  };
  Value x = net.relu(normed("stem", net.input({3, 32, 32}), 16, 3, 1));
  Value y = net.relu(normed("block1.a", x, 16, 3, 1));
  x = net.relu(net.add(normed("block1.b", y, 16, 3, 1), x));
  y = net.relu(normed("block2.a", x, 32, 3, 2));
  y = normed("block2.b", y, 32, 3, 1);
  x = net.relu(net.add(y, normed("block2.shortcut", x, 32, 1, 2)));
  net.output(net.linear("fc", net.flatten(net.global_average_pool(x)), 10));
}

}  // namespace ff
