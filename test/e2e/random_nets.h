// Random small networks and random strategies, from a seed.
#pragma once

#include "compiler/base/rng.h"
#include "compiler/graph/graph.h"
#include "compiler/partition/config.h"
#include "compiler/training/training.h"

namespace ff::test {

/// A forward graph of a few layers: convolutions, pooling, normalisation, residual adds, concatenations, then
/// matrix products. Uneven sizes; parameters named p0, p1, ..., to be filled by the caller. `wide`: some
/// begin with an embedding, and have layers that slice, sort, gather and scatter, or resize, functions,
/// reductions and normalised positions; a choice of theirs may fall otherwise where values are rounded
/// otherwise, so that f32 nets are without.
Graph random_net(Rng& rng, bool wide);

/// A net and how it is trained: loss, optimizer, learning rate.
struct RandomTraining {
  Graph net;
  TrainingOptions options;
  double learning_rate = 0;
};
RandomTraining random_training(Rng& rng, bool wide = false);

/// A config for every op: random degrees (contracted dimensions too), replicas, devices; several cells may
/// share a device.
Strategy random_strategy(const Problem& problem, Rng& rng);

}  // namespace ff::test
