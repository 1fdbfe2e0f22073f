// Import: an ONNX file to a Graph in inference form, with the parameters found and the batch bound.
//
//   ImportOptions options;
//   options.batch = 32;
//   ImportedModel model = import_model("lenet.onnx", options);   // model.graph; model.notes to print
//   std::cout << describe(model);                                // what --dry-run prints
//
// ONNX's protos are all that is used of ONNX: opset gates, shape rules (the op table's) and constant folding
// are our own. Trained parameters are float initializers that reach a weight operand or an elementwise
// operand of rank 1 or more.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"

namespace ff {

struct ImportOptions {
  int64_t batch = 0;                      // samples in a step; 0: as the model says
  std::map<std::string, int64_t> dims;    // symbolic dimensions by name
  std::map<std::string, int> batch_axes;  // inputs whose samples are not counted by axis 0
  std::vector<std::string> outputs;       // values of the model to import up to; empty: its outputs
  std::vector<std::string> train;         // parameter patterns (* and ?): train these, whatever the rule says
  std::vector<std::string> freeze;        // and freeze these
  int64_t rnn_chunk = 0;                  // steps of a recurrent layer that are one op; 0: all
  bool batchnorm_train = false;    // --batchnorm-mode train: training_mode 0 becomes training statistics
  bool inference = false;          // --mode infer: no dropout, running statistics
  bool allow_unsupported = false;  // --dry-run: list unsupported nodes in the result instead of throwing
};

struct UnsupportedNode {
  std::string node;  // its name, else its first output
  std::string type;
  std::string reason;
};

struct ImportedModel {
  std::string file;
  Graph graph;
  std::vector<std::string> notes;            // for printing: what was frozen, re-batched, left out
  std::vector<UnsupportedNode> unsupported;  // empty unless allowed
};

/// Throws UserError naming the file and the node, input or initializer at fault; unsupported nodes all in one
/// message.
ImportedModel import_model(const std::string& path, const ImportOptions& options);

/// Inputs, outputs, trained, frozen and state parameters, unsupported nodes, notes.
std::string describe(const ImportedModel& model);

}  // namespace ff
