// ffmodel NAME -o MODEL.onnx: writes a benchmark model with freshly initialised weights.
#include <cstdio>

#include "compiler/base/check.h"
#include "models/zoo.h"
#include "tools/cli/command_line.h"

namespace ff {
namespace {

void list_models() {
  for (const ModelEntry& entry : models()) {
    std::string options;
    for (const std::string& option : entry.options) options += (options.empty() ? " (--" : " --") + option;
    std::printf("%-16s %12lld parameters  %s%s\n", entry.name.c_str(),
                static_cast<long long>(entry.parameters), entry.what.c_str(),
                options.empty() ? "" : (options + ")").c_str());
  }
}

void check(const ModelEntry& entry, const std::string& option) {
  if (entry.takes(option)) return;
  std::string known;
  for (const std::string& o : entry.options) known += (known.empty() ? "it takes --" : ", --") + o;
  throw UserError("--" + option + ": " + entry.name + " has no such size to choose", known);
}

struct Size {
  const char* name;
  int64_t ModelOptions::*value;
  const char* what;
};

constexpr Size kSizes[] = {
    {"layers", &ModelOptions::layers, "Layers (of each side of nmt)"},
    {"hidden", &ModelOptions::hidden, "Features of a hidden layer"},
    {"heads", &ModelOptions::heads, "Attention heads"},
    {"sequence", &ModelOptions::sequence, "Tokens of a sample"},
    {"vocabulary", &ModelOptions::vocabulary, "Words; rows of a table"},
    {"image", &ModelOptions::image, "Height and width of the image"},
    {"tables", &ModelOptions::tables, "Embedding tables"},
};

void check(const ModelEntry& entry, const ModelOptions& options) {
  if (!(options.dropout >= 0 && options.dropout < 1))
    throw UserError("--dropout: a ratio is at least 0 and below 1");
  if (options.dropout > 0 && !entry.takes("dropout"))
    throw UserError("--dropout: " + entry.name + " has no Dropout layers");
  for (const Size& size : kSizes) {
    const int64_t asked = options.*size.value;
    if (asked < 0)
      throw UserError("--" + std::string(size.name) + " " + std::to_string(asked) + ": a size is at least 1");
    if (asked > 0) check(entry, size.name);
  }
}

const ModelEntry& model_named(const std::string& name) {
  const ModelEntry* entry = find_model(name == "lenet" ? "lenet5" : name);
  if (entry != nullptr) return *entry;
  std::vector<std::string> names;
  for (const ModelEntry& known : models()) names.push_back(known.name);
  throw UserError("there is no model '" + name + "'",
                  "did you mean '" + nearest(name, names) + "'? ffmodel --list shows all");
}

int run(int argc, char** argv) {
  std::string name, output;
  int64_t batch = 0;
  uint64_t seed = 0;
  ModelOptions options;
  bool list = false, light = false;
  CommandLine line("ffmodel", "Writes a benchmark model as ONNX.");
  line.positional("NAME", &name, "Which model (see --list)");
  line.option("-o,--output", &output, "MODEL.onnx", "Where to write it");
  line.flag("--list", &list, "Lists the models and stops");
  line.group("Model");
  line.option("--batch", &batch, "N", "A fixed batch; 0: the symbolic dimension 'batch'");
  line.option("--dropout", &options.dropout, "RATIO", "Ratio of the model's Dropout layers; 0: none");
  line.option("--seed", &seed, "N", "Seed of the weights");
  line.flag("--light", &light, "No weights in the file: for planning, not for training");
  line.group("Sizes (0: the model's own; --list says which model takes which)");
  for (const Size& size : kSizes)
    line.option("--" + std::string(size.name), &(options.*size.value), "N", size.what);
  if (!line.parse(argc, argv)) return 0;
  if (list) {
    list_models();
    return 0;
  }
  if (name.empty()) throw UserError("which model?", "ffmodel --list shows them");
  const ModelEntry& entry = model_named(name);
  if (output.empty()) throw UserError("where to write the model?", "add -o " + entry.name + ".onnx");
  if (batch < 0) throw UserError("--batch " + std::to_string(batch) + ": a batch has at least one sample");
  check(entry, options);
  Builder net({.name = entry.name, .batch = batch, .seed = seed, .init = entry.init, .light = light});
  entry.build(net, options);
  net.save(output);
  std::fprintf(stderr, "%s: %s, %lld parameters\n", output.c_str(), entry.name.c_str(),
               static_cast<long long>(net.parameters()));
  return 0;
}

}  // namespace
}  // namespace ff

int main(int argc, char** argv) { return ff::report_errors("ffmodel", ff::run, argc, argv); }
