// U-Net (Ronneberger et al. 2015): one channel in, two classes a pixel out. Its 3x3 convolutions are padded,
// so that nothing is cropped and the output has the input's size: any multiple of 16.
#include "compiler/base/check.h"
#include "models/zoo.h"

namespace ff {
namespace {

constexpr int64_t kWidth = 64;  // channels of the first level
constexpr int kLevels = 4;      // below the first

Value double_conv(Builder& net, const std::string& name, Value x, int64_t out) {
  for (const char* number : {"1", "2"})
    x = net.relu(net.conv(name + ".conv" + number, x, {.out = out, .kernel = {3, 3}, .pad = {1, 1}}));
  return x;
}

}  // namespace

void build_unet(Builder& net, const ModelOptions& options) {
  const int64_t image = size_or(options.image, 512);
  if (image % (1 << kLevels) != 0)
    throw UserError("--image " + std::to_string(image) + ": unet halves its image four times",
                    "give a multiple of 16");
  std::vector<Value> across{double_conv(net, "down0", net.input({1, image, image}), kWidth)};
  for (int level = 1; level <= kLevels; ++level) {
    Value x =
        double_conv(net, "down" + std::to_string(level), net.max_pool(across.back(), {}), kWidth << level);
    across.push_back(level >= kLevels - 1 ? net.dropout(x, options.dropout) : x);
  }
  Value x = across.back();
  for (int level = kLevels - 1; level >= 0; --level) {
    const std::string name = "up" + std::to_string(level);
    x = net.conv_transpose(name + ".conv", x, {.out = kWidth << level, .kernel = {2, 2}, .stride = {2, 2}});
    x = double_conv(net, name, net.concat({across[static_cast<size_t>(level)], x}), kWidth << level);
  }
  net.output(net.conv("out", x, {.out = 2, .kernel = {1, 1}}));
}

}  // namespace ff
