#include "test/e2e/equality.h"

#include <cmath>
#include <cstring>
#include <mutex>

#include "compiler/base/check.h"
#include "compiler/base/hash.h"
#include "compiler/base/rng.h"
#include "compiler/cost/roofline.h"
#include "compiler/driver/compile.h"
#include "compiler/machine/machine.h"
#include "compiler/plan/verify.h"
#include "executor/comm/thread_communicator.h"

namespace ff::test {
namespace {

void set_element(void* data, DType type, int64_t i, double value) {
  if (type == DType::f64) {
    static_cast<double*>(data)[i] = value;
  } else if (type == DType::f32) {
    static_cast<float*>(data)[i] = static_cast<float>(value);
  } else {
    static_cast<int64_t*>(data)[i] = static_cast<int64_t>(value);
  }
}

double get_element(const char* data, DType type, int64_t i) {
  double d = 0;
  float f = 0;
  if (type == DType::f64) {
    std::memcpy(&d, data + i * 8, 8);
    return d;
  }
  std::memcpy(&f, data + i * 4, 4);
  return f;
}

/// Calls body(place in the dense buffer, linear index in the whole tensor).
template <typename Body>
void for_each(const Box& box, const Shape& whole, Layout layout, Body body) {
  const Shape extent = box.shape();
  for (int64_t n = 0; n < box.volume(); ++n) {
    int64_t rest = n;
    int64_t linear = 0;
    int64_t stride = 1;
    Shape index(extent.size());
    for (size_t axis = extent.size(); axis-- > 0;) {
      index[axis] = rest % extent[axis];
      rest /= extent[axis];
      linear += (box[static_cast<int>(axis)].lo + index[axis]) * stride;
      stride *= whole[axis];
    }
    int64_t place = n;
    if (layout == Layout::channels_last && extent.size() >= 3) {
      place = index[0];
      for (size_t axis = 2; axis < extent.size(); ++axis) place = place * extent[axis] + index[axis];
      place = place * extent[1] + index[1];
    }
    body(place, linear);
  }
}

/// In [-1, 1), and an f32: training in f32 and in f64 starts from the same numbers.
float made_up(const std::string& name, int64_t linear, int64_t step) {
  const double unit =
      to_unit(counter_random(hash_bytes(name), static_cast<uint64_t>(step), static_cast<uint64_t>(linear)));
  return static_cast<float>(2 * unit - 1);
}

void load(const Parameter& p, const Box& box, void* out) {
  for_each(box, p.shape, Layout::row_major, [&](int64_t place, int64_t linear) {
    double value = 0.7F * made_up(p.name, linear, 0);
    if (p.kind == ParameterKind::state) value = 0;
    set_element(out, p.dtype, place, value);
  });
}

void fill_inputs(const Plan& plan, Interpreter& interpreter, int64_t step) {
  const Program& program = interpreter.program();
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& b = program.buffers[i];
    if (b.origin != Origin::input) continue;
    for (const Input& input : plan.inputs) {
      if (input.name != b.tensor) continue;
      for_each(b.box, input.shape, b.layout, [&](int64_t place, int64_t linear) {
        double value = made_up(input.name, linear, step + 1);
        if (input.classes > 0) value = std::floor((value + 1) / 2 * static_cast<double>(input.classes));
        set_element(interpreter.data(static_cast<int32_t>(i)), b.dtype, place, value);
      });
    }
  }
}

}  // namespace

Plan compile(const Problem& problem, const Strategy& strategy, cpu::Flavor flavor) {
  const Machine machine = load_machine("cpu-4:devices=" + std::to_string(problem.num_devices()));
  RooflineCost costs;
  problem.check(strategy);
  const auto workspace = [&](const KernelCall& call) {
    return cpu::make_kernel(call, flavor)->workspace_bytes();
  };
  Plan out = make_plan({&problem, nullptr, &machine}, strategy, costs, workspace, false);
  verify(out);
  return out;
}

Trained train(const Plan& plan, Communicator& comm, const TrainOptions& options) {
  const auto make = [&](const KernelCall& call) { return cpu::make_kernel(call, options.flavor); };
  const Program& program = plan.programs[static_cast<size_t>(comm.rank())];
  Interpreter interpreter(program, plan.groups, comm, make, {.fill_nan = true});
  load_parameters(plan.parameters, interpreter, load);
  RunContext context;
  context.learning_rate = options.learning_rate;
  context.seed = 5;
  // A gradient that is zero but for rounding (of a bias before a normalisation) must not be scaled up by
  // Adam.
  context.epsilon = 1e-2;
  for (int step = 0; step < options.steps; ++step) {
    context.step = step;
    fill_inputs(plan, interpreter, step);
    interpreter.execute("train_step", context);
  }
  Trained out;
  if (comm.rank() == 0 && options.steps > 0) {
    const int32_t loss = interpreter.entry("train_step").outputs.at(0);
    const DType type = program.buffers[static_cast<size_t>(loss)].dtype;
    out.loss = get_element(static_cast<const char*>(interpreter.data(loss)), type, 0);
  }
  GatheredParameters gathered = gather_parameters(plan.parameters, interpreter, comm);
  out.values = std::move(gathered.values);
  out.differing_replicas = std::move(gathered.differing_replicas);
  return out;
}

Trained train(const Problem& problem, const Strategy& strategy, const TrainOptions& options) {
  Plan plan = compile(problem, strategy, options.flavor);
  Trained out;
  ThreadWorldOptions world;
  world.yield_seed = options.interleave_seed;
  run_threads(
      problem.num_devices(),
      [&](Communicator& comm) {
        Trained mine = train(plan, comm, options);
        if (comm.rank() == 0) out = std::move(mine);
      },
      world);
  out.plan = std::move(plan);
  return out;
}

double largest_difference(const Graph& training, const ParameterValues& a, const ParameterValues& b) {
  double worst = 0;
  for (const Tensor& t : training.tensors) {
    if (t.kind != TensorKind::parameter || !is_float(t.dtype) || !b.contains(t.name)) continue;
    const std::string& x = a.at(t.name);
    const std::string& y = b.at(t.name);
    FF_CHECK_EQ(x.size(), y.size());
    for (int64_t i = 0; i < volume(t.shape); ++i) {
      const double v = get_element(x.data(), t.dtype, i);
      const double w = get_element(y.data(), t.dtype, i);
      const double difference = std::abs(v - w) / (1e-3 + std::abs(w));
      if (!(difference <= worst)) worst = std::isnan(difference) ? INFINITY : difference;
    }
  }
  return worst;
}

}  // namespace ff::test
