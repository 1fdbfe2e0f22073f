// What PyTorch made of a network in some steps of SGD with momentum, as make_goldens.py writes it.
//
//   const Golden g = read_golden("data/lenet.bin");
//   g.updates[0].name            // "conv1.weight"
//   g.updates[0].values          // its value after g.steps steps less that before, in double precision
//   g.updates[0].single_error    // 3e-8: the norm of what single precision's update differs by
#pragma once

#include <string>
#include <vector>

#include "compiler/training/training.h"

namespace ff::test {

struct GoldenInput {
  std::string name;
  bool whole = false;  // numbers: then integers has them, else floats
  std::vector<int64_t> integers;
  std::vector<float> floats;

  const void* data() const { return whole ? static_cast<const void*>(integers.data()) : floats.data(); }
};

struct GoldenUpdate {
  std::string name;
  std::vector<double> values;
  double single_error = 0;
};

struct Golden {
  int64_t steps = 0;
  double learning_rate = 0, momentum = 0;
  int64_t batch = 0;  // 0: the model's own
  std::vector<LossSpec> losses;
  std::vector<GoldenInput> inputs;  // labels too
  std::vector<double> step_losses;  // in double precision, before each step
  std::vector<double> step_loss_errors;
  std::vector<GoldenUpdate> updates;
};

/// UserError if there is no such file.
Golden read_golden(const std::string& path);

}  // namespace ff::test
