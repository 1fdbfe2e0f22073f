// Trains a graph under a strategy, for tests that compare what two ways of training give.
//
//   Problem one(training, 1), four(training, 4);
//   train(one, single_device(one), {}).values     // on one device
//   train(four, strategy, {}).values              // on four ranks that are threads
//   train(plan, comm, {}).values                  // this process's part of a plan's ranks
#pragma once

#include <string>

#include "compiler/partition/config.h"
#include "executor/comm/communicator.h"
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

/// Compiles (roofline costs, 1 device a node's core) and verifies.
Plan compile(const Problem& problem, const Strategy& strategy, cpu::Flavor flavor);

/// Runs one rank's program of a plan. Parameters start as a function of name and element, the same in f32 and
/// f64; arenas as NaN. Rank 0 gets the values, the loss and the replicas; nobody gets the plan.
Trained train(const Plan& plan, Communicator& comm, const TrainOptions& options);

/// Compiles, and trains on ranks that are threads.
Trained train(const Problem& problem, const Strategy& strategy, const TrainOptions& options);

/// The largest |a - b| / (1e-3 + |b|) over all floats of two sets of parameters.
double largest_difference(const Graph& training, const ParameterValues& a, const ParameterValues& b);

}  // namespace ff::test
