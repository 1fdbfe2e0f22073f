#include "models/zoo.h"

#include <algorithm>

namespace ff {

namespace {

const std::vector<std::string> kRecurrent{"layers", "hidden", "sequence", "vocabulary"};
const std::vector<std::string> kLanguage{"layers", "hidden", "heads", "sequence", "vocabulary", "dropout"};

}  // namespace

// Counts of the ImageNet models are those that torchvision's documentation publishes ("num_params" of each
// model's weights; there the auxiliary head is among Inception v3's), those of the language transformers what
// Hugging Face's modules with tied heads have. The others' are sums over their layers, derived in the tests.
const std::vector<ModelEntry>& models() {
  static const std::vector<ModelEntry> kModels = {
      {"residual-bn",
       "32x32x3, two residual blocks with batch normalisation",
       19994,
       {},
       Init::torch,
       build_residual_bn},
      {"lenet5",
       "28x28x1, LeCun et al. 1998, tanh and average pooling",
       61706,
       {},
       Init::torch,
       build_lenet5},
      {"fashion-cnn",
       "28x28x1, two 5x5 convolutions, for Fashion-MNIST",
       80202,
       {},
       Init::torch,
       build_fashion_cnn},
      {"mlp", "28x28x1, two hidden layers of 512", 669706, {}, Init::torch, build_mlp},
      {"mobilenet-v2", "224x224x3, Sandler et al. 2018", 3504872, {"dropout"}, Init::he, build_mobilenet_v2},
      {"densenet121", "224x224x3, Huang et al. 2016", 7978856, {"dropout"}, Init::he, build_densenet121},
      {"resnet18", "224x224x3, He et al. 2015", 11689512, {}, Init::torch, build_resnet18},
      {"inception-v3",
       "299x299x3, Szegedy et al. 2015, without the auxiliary head",
       23834568,
       {"dropout"},
       Init::torch,
       build_inception_v3},
      {"resnext50", "224x224x3, 32x4d, Xie et al. 2016", 25028904, {}, Init::torch, build_resnext50},
      {"resnet50", "224x224x3, He et al. 2015", 25557032, {}, Init::torch, build_resnet50},
      {"inception-v3-aux",
       "299x299x3, with the auxiliary head (aux_logits)",
       27161264,
       {"dropout"},
       Init::torch,
       build_inception_v3_aux},
      {"unet",
       "512x512x1, Ronneberger et al. 2015, padded, 2 classes a pixel",
       31030658,
       {"image", "dropout"},
       Init::he,
       build_unet},
      {"resnet101", "224x224x3, He et al. 2015", 44549160, {}, Init::torch, build_resnet101},
      {"mixer-b16",
       "224x224x3, Tolstikhin et al. 2021",
       59880472,
       {"layers", "hidden"},
       Init::torch,
       build_mixer_b16},
      {"alexnet",
       "224x224x3, Krizhevsky 2014, as torchvision has it",
       61100840,
       {"dropout"},
       Init::torch,
       build_alexnet},
      {"rnntc", "40 words, 4 LSTM layers of 1024, 2 classes", 66357250, kRecurrent, Init::torch, build_rnntc},
      {"vit-b16",
       "224x224x3, Dosovitskiy et al. 2020",
       86567656,
       {"layers", "hidden", "heads", "dropout"},
       Init::small,
       build_vit_b16},
      {"bert-base", "512 tokens, Devlin et al. 2018, masked-word head", 109514298, kLanguage, Init::small,
       build_bert_base},
      {"gpt2-small", "1024 tokens, Radford et al. 2019", 124439808, kLanguage, Init::small, build_gpt2_small},
      {"nmt", "40 words, 2 + 2 LSTM layers of 1024, attention", 135068928, kRecurrent, Init::torch,
       build_nmt},
      {"vgg16", "224x224x3, Simonyan and Zisserman 2014", 138357544, {"dropout"}, Init::he, build_vgg16},
      {"rnnlm", "40 words, 2 LSTM layers of 2048", 157089024, kRecurrent, Init::torch, build_rnnlm},
      {"bert-large", "512 tokens, Devlin et al. 2018, masked-word head", 335174458, kLanguage, Init::small,
       build_bert_large},
      {"dlrm",
       "512 features and 8 categories, Naumov et al. 2019",
       514499137,
       {"tables", "vocabulary"},
       Init::torch,
       build_dlrm},
      {"gpt2-xl", "1024 tokens, Radford et al. 2019", 1557611200, kLanguage, Init::small, build_gpt2_xl},
  };
  return kModels;
}

bool ModelEntry::takes(const std::string& option) const {
  return std::find(options.begin(), options.end(), option) != options.end();
}

const ModelEntry* find_model(const std::string& name) {
  for (const ModelEntry& entry : models()) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace ff
