// What ffrun's flags say, and what a run needs from outside this room.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/plan/plan.h"
#include "executor/runtime/interpreter.h"
#include "executor/runtime/parameters.h"

namespace ff {

struct RunOptions {
  std::string plan_path;
  std::string model_path;              // empty: the plan's, beside the plan
  std::vector<std::string> data;       // "NAME=FILE"
  std::vector<std::string> eval_data;  // likewise
  std::vector<std::string> normalize;  // "NAME=SCALE[,MEAN,STD]"
  bool synthetic = false;
  std::optional<int64_t> steps;
  std::optional<int64_t> epochs;
  std::optional<double> learning_rate, momentum, weight_decay;
  std::optional<int64_t> seed;  // the plan's otherwise
  bool shuffle = false;
  std::string log, trace, report, save;  // files; empty: none
  std::string checkpoint;                // folder
  int64_t checkpoint_every = 0;          // steps; 0: at the end only
  bool resume = false;
  bool verify = false;
  bool dry_run = false;
  bool quiet = false;  // no progress
};

/// The model that the weights come from and go back into.
struct ModelFile {
  std::string hash;  // of the model and its external data, as in Plan::model_hash
  ParameterLoader load;
  /// Writes the model with these values of its parameters to a file.
  std::function<void(const std::vector<Parameter>&, const ParameterValues&, const std::string& path)> save;
};

/// What executes a plan: CPU kernels and ONNX files, or what a test puts in their place.
struct Backend {
  KernelFactory make_kernel;
  /// `want_hash`: only one rank needs it.
  std::function<ModelFile(const std::string& path, bool want_hash)> open_model;
  std::function<void(int64_t threads)> set_threads;
  /// How many ranks the launcher says there are, if one started this process.
  std::optional<int> launcher_size;
};

}  // namespace ff
