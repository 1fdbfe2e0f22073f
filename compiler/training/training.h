// From an imported graph to the graph of a training step: loss, gradients, updates, memory layouts, staged
// forms. One pass a file.
//
//   std::vector<std::string> notes;
//   Graph step = make_training_graph(model.graph, {.losses = {parse_loss("softmax-cross-entropy")}}, notes);
//   Graph eval = make_eval_graph(step);        // the same parameters, running statistics, no dropout, no
//   updates
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/graph/graph.h"

namespace ff {

struct LossSpec {
  std::string kind;    // softmax-cross-entropy, nll, bce, mse; graph: the output is the loss
  std::string output;  // the model's output that it is taken of; empty: its only one
  double weight = 1;
  bool mean = true;  // over the whole batch; else the sum
  std::optional<int64_t> ignore_index = std::nullopt;
  double label_smoothing = 0;
  int64_t class_axis = 1;
};

/// KIND[:OUTPUT][*WEIGHT]. UserError naming the nearest kind.
LossSpec parse_loss(const std::string& text);

struct TrainingOptions {
  std::vector<LossSpec> losses;
  std::string optimizer = "momentum";  // sgd, momentum, adam, adamw
  DType precision = DType::f32;        // or f64: all floats
  bool fuse = true;
  int64_t batchnorm_groups = 1;  // equal parts of the batch that BatchNorm has statistics of, each of its own
};

/// `notes` is appended to: what was fused, left frozen. UserError naming the node that has no gradient, or
/// the output that a loss cannot be taken of.
Graph make_training_graph(Graph forward, const TrainingOptions& options, std::vector<std::string>& notes);

/// The forward part with running statistics and without dropout. Ops and parameters keep their names.
Graph make_eval_graph(const Graph& training);

// The passes.

void attach_losses(Graph& graph, const std::vector<LossSpec>& losses, std::vector<std::string>& notes);
/// Conv, BatchNorm, MatMul and Add take a Relu that alone reads them as their attribute relu=1.
void fuse_relu(Graph& graph);
/// Chains of ops that exporters write for Gelu and Swish become these ops.
void fuse_activations(Graph& graph);
void differentiate(Graph& graph);
void add_updates(Graph& graph, const std::string& optimizer, std::vector<std::string>& notes);
/// Channels last for images and what is computed elementwise from them.
void assign_layouts(Graph& graph);
/// Appends the staged form of every op that has one, behind the op.
void add_stages(Graph& graph);

}  // namespace ff
