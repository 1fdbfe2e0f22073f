// Batch normalisation of several groups of samples, each with statistics of its own: one kernel for a group,
// run for each.
#pragma once

#include <memory>

#include "executor/kernels/cpu/registry.h"

namespace ff::cpu {

/// Of BatchNorm and BatchNormGrad with the attribute `groups`: operands 4 and 5 are the statistics [g, c];
/// other matrices and images are cut along their samples; the vectors are all groups', and those that are
/// written (dscale, dbias) sums over them.
std::unique_ptr<Kernel> make_grouped_norm(const KernelCall& call, KernelFactory one);

template <KernelFactory kOne>
std::unique_ptr<Kernel> with_groups(const KernelCall& call) {
  return call.attributes.has("groups") ? make_grouped_norm(call, kOne) : kOne(call);
}

}  // namespace ff::cpu
