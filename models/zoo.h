// The benchmark models by name: each a function that writes its layers with a Builder.
//
//   find_model("resnet50")->build(net, {});    // net.parameters() == 25'557'032
#pragma once

#include <string>
#include <vector>

#include "models/builder.h"

namespace ff {

/// What may be asked of a model; 0 is the model's own size, and no Dropout layers.
struct ModelOptions {
  double dropout = 0;  // the ratio of the model's Dropout layers
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t sequence = 0;    // steps, tokens
  int64_t vocabulary = 0;  // rows of each embedding table
  int64_t image = 0;       // height and width
  int64_t tables = 0;
};

struct ModelEntry {
  std::string name;
  std::string what;                  // one line for --list
  int64_t parameters = 0;            // the published count, at the model's own sizes
  std::vector<std::string> options;  // those of ffmodel that it takes: "dropout", "layers"
  Init init = Init::torch;
  void (*build)(Builder& net, const ModelOptions& options) = nullptr;

  bool takes(const std::string& option) const;
};

/// The size that was asked for, or the model's own.
inline int64_t size_or(int64_t asked, int64_t own) { return asked == 0 ? own : asked; }

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
void build_resnext50(Builder& net, const ModelOptions& options);
void build_mobilenet_v2(Builder& net, const ModelOptions& options);
void build_densenet121(Builder& net, const ModelOptions& options);
void build_inception_v3(Builder& net, const ModelOptions& options);
void build_inception_v3_aux(Builder& net, const ModelOptions& options);
void build_unet(Builder& net, const ModelOptions& options);
void build_rnntc(Builder& net, const ModelOptions& options);
void build_rnnlm(Builder& net, const ModelOptions& options);
void build_nmt(Builder& net, const ModelOptions& options);
void build_bert_base(Builder& net, const ModelOptions& options);
void build_bert_large(Builder& net, const ModelOptions& options);
void build_gpt2_small(Builder& net, const ModelOptions& options);
void build_gpt2_xl(Builder& net, const ModelOptions& options);
void build_vit_b16(Builder& net, const ModelOptions& options);
void build_mixer_b16(Builder& net, const ModelOptions& options);
void build_dlrm(Builder& net, const ModelOptions& options);

}  // namespace ff
