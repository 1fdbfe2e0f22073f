// The benchmark models by name: each a function that writes its layers with a Builder.
//
//   find_model("resnet50")->build(net, {});    // net.parameters() == 25'557'032
#pragma once

#include <string>
#include <vector>

#include "models/builder.h"

namespace ff {

struct ModelOptions {
  double dropout = 0;  // the ratio of the model's Dropout layers; 0 leaves them out
};

struct ModelEntry {
  std::string name;
  std::string what;        // one line for --list
  int64_t parameters = 0;  // the published count
  bool has_dropout = false;
  Init init = Init::torch;
  void (*build)(Builder& net, const ModelOptions& options) = nullptr;
};

/// All models, smallest first.
const std::vector<ModelEntry>& models();
/// The model of that name, or null.
const ModelEntry* find_model(const std::string& name);

void build_mlp(Builder& net, const ModelOptions& options);
void build_lenet5(Builder& net, const ModelOptions& options);
void build_fashion_cnn(Builder& net, const ModelOptions& options);
void build_residual_bn(Builder& net, const ModelOptions& options);
void build_alexnet(Builder& net, const ModelOptions& options);
void build_vgg16(Builder& net, const ModelOptions& options);
void build_resnet18(Builder& net, const ModelOptions& options);
void build_resnet50(Builder& net, const ModelOptions& options);
void build_resnet101(Builder& net, const ModelOptions& options);
void build_mobilenet_v2(Builder& net, const ModelOptions& options);
void build_inception_v3(Builder& net, const ModelOptions& options);

}  // namespace ff
