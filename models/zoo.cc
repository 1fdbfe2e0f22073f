#include "models/zoo.h"

namespace ff {

// Counts of the ImageNet models are those that torchvision's documentation publishes ("num_params" of each
// model's weights); Inception v3's there, 27,161,264, includes the auxiliary head's 3,326,696, which is not
// built here. The small models' counts are sums over their layers; LeNet-5's is that of its well-known form
// for 28x28 images.
const std::vector<ModelEntry>& models() {
  static const std::vector<ModelEntry> kModels = {
      {"residual-bn", "32x32x3, two residual blocks with batch normalisation", 19994, false, Init::torch,
       build_residual_bn},
      {"lenet5", "28x28x1, LeCun et al. 1998, tanh and average pooling", 61706, false, Init::torch,
       build_lenet5},
      {"fashion-cnn", "28x28x1, two 5x5 convolutions, for Fashion-MNIST", 80202, false, Init::torch,
       build_fashion_cnn},
      {"mlp", "28x28x1, two hidden layers of 512", 669706, false, Init::torch, build_mlp},
      {"mobilenet-v2", "224x224x3, Sandler et al. 2018", 3504872, true, Init::he, build_mobilenet_v2},
      {"resnet18", "224x224x3, He et al. 2015", 11689512, false, Init::torch, build_resnet18},
      {"inception-v3", "299x299x3, Szegedy et al. 2015, without the auxiliary head", 23834568, true,
       Init::torch, build_inception_v3},
      {"resnet50", "224x224x3, He et al. 2015", 25557032, false, Init::torch, build_resnet50},
      {"resnet101", "224x224x3, He et al. 2015", 44549160, false, Init::torch, build_resnet101},
      {"alexnet", "224x224x3, Krizhevsky 2014, as torchvision has it", 61100840, true, Init::torch,
       build_alexnet},
      {"vgg16", "224x224x3, Simonyan and Zisserman 2014", 138357544, true, Init::he, build_vgg16},
  };
  return kModels;
}

const ModelEntry* find_model(const std::string& name) {
  for (const ModelEntry& entry : models()) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace ff
