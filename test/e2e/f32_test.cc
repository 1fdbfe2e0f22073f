// The f32 kernels on ranks that are processes:
//
//   mpirun -n 3 test_f32 [SEED] [NETS]
//
// Random nets under random strategies. After 3 steps every weight is no farther from what one device computes
// in f64 by the plain kernels than 10 times what one device in f32 is. One net alone: its seed, and 1.
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "compiler/base/check.h"
#include "compiler/driver/compile.h"
#include "executor/comm/mpi_communicator.h"
#include "executor/comm/thread_communicator.h"
#include "test/e2e/equality.h"
#include "test/e2e/random_nets.h"

using namespace ff;
using namespace ff::test;

namespace {

double norm_of_difference(const std::vector<double>& a, const std::vector<double>& b) {
  FF_CHECK_EQ(a.size(), b.size());
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

/// The worst ratio of errors; 10 is allowed.
double compare(const Graph& f32, const ParameterValues& got, const ParameterValues& one,
               const ParameterValues& exact, uint64_t seed, int steps) {
  double worst = 0;
  for (const Tensor& t : f32.tensors) {
    if (t.kind != TensorKind::parameter || t.dtype != DType::f32 || !got.contains(t.name)) continue;
    const std::vector<double> truth = elements(exact.at(t.name), DType::f64);
    const double error = norm_of_difference(elements(got.at(t.name), DType::f32), truth);
    const double usual = norm_of_difference(elements(one.at(t.name), DType::f32), truth);
    // A weight is rounded to f32 once a step, whoever computes it.
    const double rounding =
        steps * std::ldexp(norm_of_difference(truth, std::vector<double>(truth.size())), -24);
    const double ratio = error / std::max({usual, rounding, 1e-30});
    if (!(ratio <= 10)) {
      std::fprintf(stderr, "seed %lu: %s is off by %.3g, on one device by %.3g\n",
                   static_cast<unsigned long>(seed), t.name.c_str(), error, usual);
    }
    if (!(ratio <= worst)) worst = std::isnan(ratio) ? INFINITY : ratio;
  }
  return worst;
}

bool check_net(uint64_t seed, Communicator& comm) {
  Rng rng(seed);
  auto [net, options, rate] = random_training(rng);
  std::vector<std::string> notes;
  const Graph f32 = make_training_graph(net, options, notes);
  const Problem many(f32, comm.size());
  const Strategy strategy = random_strategy(many, rng);
  const TrainOptions fast{.flavor = cpu::Flavor::fast, .learning_rate = rate};
  const Trained got = run(f32, compile(many, strategy, fast.flavor), comm, fast);
  if (comm.rank() != 0) return true;
  const Problem one(f32, 1);
  const Trained single = train(f32, one, single_device(one), fast);
  options.precision = DType::f64;
  const Graph f64 = make_training_graph(net, options, notes);
  const Problem one_f64(f64, 1);
  const Trained exact = train(f64, one_f64, single_device(one_f64), {.learning_rate = rate});
  const double worst = compare(f32, got.values, single.values, exact.values, seed, fast.steps);
  const bool same = got.differing_replicas.empty();
  std::printf("seed %lu on %d ranks: at most %.2f times the error of one device%s\n",
              static_cast<unsigned long>(seed), comm.size(), worst, same ? "" : ", and replicas differ");
  return worst <= 10 && same;
}

}  // namespace

int main(int argc, char** argv) {
  MpiRuntime mpi(&argc, &argv);
  const uint64_t first = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
  const uint64_t nets = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 7;
  return mpi.run("test_f32", [&](Communicator& comm) {
    uint64_t wrong = 0;
    for (uint64_t seed = first; seed < first + nets; ++seed) wrong += check_net(seed, comm) ? 0 : 1;
    comm.barrier();
    return wrong == 0 ? 0 : 1;
  });
}
