// Inception v3 (Szegedy et al. 2015) as torchvision has it, with or without the auxiliary head.
#include "models/zoo.h"

namespace ff {
namespace {

// One network's blocks; every convolution is without bias and followed by a batch normalisation and a ReLU.
class Inception {
 public:
  explicit Inception(Builder& net) : net_(net) {}

  Value conv(const std::string& name, const Value& x, int64_t out, Pair kernel, Pair pad = {0, 0},
             int64_t stride = 1) {
    const ConvOptions options{
        .out = out, .kernel = kernel, .stride = {stride, stride}, .pad = pad, .bias = false};
    return net_.relu(net_.batch_norm(name + ".bn", net_.conv(name + ".conv", x, options), 1e-3));
  }

  Value a(const std::string& name, const Value& x, int64_t pooled) {
    const std::string b = name + ".branch";
    const Value b1 = conv(b + "1x1", x, 64, {1, 1});
    const Value b5 = conv(b + "5x5_2", conv(b + "5x5_1", x, 48, {1, 1}), 64, {5, 5}, {2, 2});
    const Value b3 = double_3x3(b + "3x3dbl", x, 64, 96, true);
    return net_.concat({b1, b5, b3, conv(b + "_pool", smooth(x), pooled, {1, 1})});
  }

  Value b(const std::string& name, const Value& x) {
    const std::string b = name + ".branch";
    const Value b3 = conv(b + "3x3", x, 384, {3, 3}, {0, 0}, 2);
    const Value dbl = double_3x3(b + "3x3dbl", x, 64, 96, false);
    return net_.concat({b3, dbl, net_.max_pool(x, {.kernel = 3})});
  }

  Value c(const std::string& name, const Value& x, int64_t c7) {
    const std::string b = name + ".branch";
    const Value b1 = conv(b + "1x1", x, 192, {1, 1});
    Value b7 = row(b + "7x7_2", conv(b + "7x7_1", x, c7, {1, 1}), c7);
    b7 = column(b + "7x7_3", b7, 192);
    Value dbl = conv(b + "7x7dbl_1", x, c7, {1, 1});
    dbl = row(b + "7x7dbl_3", column(b + "7x7dbl_2", dbl, c7), c7);
    dbl = row(b + "7x7dbl_5", column(b + "7x7dbl_4", dbl, c7), 192);
    return net_.concat({b1, b7, dbl, conv(b + "_pool", smooth(x), 192, {1, 1})});
  }

  Value d(const std::string& name, const Value& x) {
    const std::string b = name + ".branch";
    const Value b3 = conv(b + "3x3_2", conv(b + "3x3_1", x, 192, {1, 1}), 320, {3, 3}, {0, 0}, 2);
    Value b7 = row(b + "7x7x3_2", conv(b + "7x7x3_1", x, 192, {1, 1}), 192);
    b7 = conv(b + "7x7x3_4", column(b + "7x7x3_3", b7, 192), 192, {3, 3}, {0, 0}, 2);
    return net_.concat({b3, b7, net_.max_pool(x, {.kernel = 3})});
  }

  Value e(const std::string& name, const Value& x) {
    const std::string b = name + ".branch";
    const Value b1 = conv(b + "1x1", x, 320, {1, 1});
    const Value b3 = fan(b + "3x3_2", conv(b + "3x3_1", x, 384, {1, 1}));
    const Value dbl = conv(b + "3x3dbl_2", conv(b + "3x3dbl_1", x, 448, {1, 1}), 384, {3, 3}, {1, 1});
    return net_.concat({b1, b3, fan(b + "3x3dbl_3", dbl), conv(b + "_pool", smooth(x), 192, {1, 1})});
  }

  void auxiliary(const Value& x) {
    Value y = conv("AuxLogits.conv0", net_.average_pool(x, {.kernel = 5, .stride = 3}), 128, {1, 1});
    y = net_.flatten(net_.global_average_pool(conv("AuxLogits.conv1", y, 768, {5, 5})));
    net_.output(net_.linear("AuxLogits.fc", y, 1000), "aux_logits");
  }

 private:
  Value row(const std::string& name, const Value& x, int64_t out) {
    return conv(name, x, out, {1, 7}, {0, 3});
  }
  Value column(const std::string& name, const Value& x, int64_t out) {
    return conv(name, x, out, {7, 1}, {3, 0});
  }
  Value smooth(const Value& x) { return net_.average_pool(x, {.kernel = 3, .stride = 1, .pad = 1}); }
  Value fan(const std::string& name, const Value& x) {
    return net_.concat({conv(name + "a", x, 384, {1, 3}, {0, 1}), conv(name + "b", x, 384, {3, 1}, {1, 0})});
  }
  Value double_3x3(const std::string& name, const Value& x, int64_t reduced, int64_t out, bool same) {
    const Value y = conv(name + "_2", conv(name + "_1", x, reduced, {1, 1}), out, {3, 3}, {1, 1});
    return same ? conv(name + "_3", y, out, {3, 3}, {1, 1}) : conv(name + "_3", y, out, {3, 3}, {0, 0}, 2);
  }

  Builder& net_;
};

void build_inception(Builder& net, const ModelOptions& options, bool auxiliary) {
  Inception i(net);
  Value x = i.conv("Conv2d_1a_3x3", net.input({3, 299, 299}), 32, {3, 3}, {0, 0}, 2);
  x = i.conv("Conv2d_2a_3x3", x, 32, {3, 3});
  x = net.max_pool(i.conv("Conv2d_2b_3x3", x, 64, {3, 3}, {1, 1}), {.kernel = 3});
  x = i.conv("Conv2d_3b_1x1", x, 80, {1, 1});
  x = net.max_pool(i.conv("Conv2d_4a_3x3", x, 192, {3, 3}), {.kernel = 3});
  x = i.a("Mixed_5b", x, 32);
  x = i.a("Mixed_5c", x, 64);
  x = i.a("Mixed_5d", x, 64);
  x = i.b("Mixed_6a", x);
  x = i.c("Mixed_6b", x, 128);
  x = i.c("Mixed_6c", x, 160);
  x = i.c("Mixed_6d", x, 160);
  x = i.c("Mixed_6e", x, 192);
  const Value tapped = x;
  x = i.d("Mixed_7a", x);
  x = i.e("Mixed_7b", x);
  x = i.e("Mixed_7c", x);
  x = net.dropout(net.flatten(net.global_average_pool(x)), options.dropout);
  net.output(net.linear("fc", x, 1000));
  if (auxiliary) i.auxiliary(tapped);
}

}  // namespace

void build_inception_v3(Builder& net, const ModelOptions& options) { build_inception(net, options, false); }
void build_inception_v3_aux(Builder& net, const ModelOptions& options) {
  build_inception(net, options, true);
}

}  // namespace ff
