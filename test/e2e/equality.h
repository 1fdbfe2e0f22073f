// Trains a graph under a strategy, on ranks that are threads or processes, and on one device: all must agree.
#pragma once

#include <string>
#include <vector>

#include "compiler/partition/config.h"
#include "executor/kernels/cpu/registry.h"
#include "executor/runtime/parameters.h"

namespace ff::test {

struct TrainOptions {
  int steps = 3;
  uint64_t interleave_seed = 0;
  cpu::Flavor flavor = cpu::Flavor::reference;
  double learning_rate = 0.01;
};

struct Trained {
  ParameterValues values;  // every parameter and state
  double loss = 0;         // of the last step
  std::vector<std::string> differing_replicas;
  Plan plan;
};

/// Compiles (roofline costs, 1 device a node's core) and verifies. The same plan for the same arguments.
Plan compile(const Problem& problem, const Strategy& strategy, cpu::Flavor flavor);

/// Runs this rank's program; rank 0 gets what was trained. Parameters start as a function of name and
/// element, arenas as NaN. `Trained::plan` stays empty.
Trained run(const Graph& training, const Plan& plan, Communicator& comm, const TrainOptions& options);

/// Both, on threads.
Trained train(const Graph& training, const Problem& problem, const Strategy& strategy,
              const TrainOptions& options);

/// The elements of a parameter of `type`, f32 or f64.
std::vector<double> elements(const std::string& bytes, DType type);

/// The largest |a - b| / (1e-3 + |b|) over all floats of two sets of parameters.
double largest_difference(const Graph& training, const ParameterValues& a, const ParameterValues& b);

}  // namespace ff::test
