#include "executor/runtime/startup.h"

#include <sched.h>

#include <algorithm>
#include <filesystem>

#include "compiler/base/check.h"
#include "compiler/plan/container.h"
#include "compiler/plan/verify.h"

namespace ff {
namespace {

namespace fs = std::filesystem;

void check_world(const RunOptions& options, const Backend& backend, const Plan& plan, int world) {
  if (world == plan.num_devices) return;
  std::string message = options.plan_path + ": world is " + std::to_string(world) + ", plan needs " +
                        std::to_string(plan.num_devices);
  if (backend.launcher_size && *backend.launcher_size != world)
    message += ", launcher says " + std::to_string(*backend.launcher_size);
  const std::string ffrun = "ffrun " + options.plan_path + " ...";
  throw UserError(
      message,
      "run it as: " +
          (plan.num_devices == 1 ? ffrun : "mpirun -n " + std::to_string(plan.num_devices) + " " + ffrun));
}

std::string find_model(const RunOptions& options, const Plan& plan) {
  if (!options.model_path.empty()) {
    if (!fs::exists(options.model_path)) throw UserError("--model " + options.model_path + ": no such file");
    return options.model_path;
  }
  const fs::path beside = fs::path(options.plan_path).parent_path() / fs::path(plan.model_path).filename();
  if (fs::exists(beside)) return beside.string();
  throw UserError(options.plan_path + ": its model '" + plan.model_path + "' is not beside it",
                  "give its place: --model " + plan.model_path);
}

bool needs_model(const RunOptions& options, const Plan& plan) {
  return !options.save.empty() ||
         std::any_of(plan.parameters.begin(), plan.parameters.end(),
                     [](const Parameter& p) { return p.source == Parameter::Source::initializer; });
}

RunContext context_of(const RunOptions& options, const Plan& plan) {
  RunContext context;
  const bool adaptive = plan.optimizer == "adam" || plan.optimizer == "adamw";
  context.learning_rate = options.learning_rate.value_or(adaptive ? 1e-3 : 1e-2);
  context.momentum = options.momentum.value_or(0.9);
  context.weight_decay = options.weight_decay.value_or(plan.optimizer == "adamw" ? 1e-2 : 0);
  return context;
}

}  // namespace

Session open_session(const RunOptions& options, const Backend& backend, const Communicator& comm) {
  Session out;
  const bool first = comm.rank() == 0;
  // A rehearsal checks all programs together, once.
  out.plan = options.dry_run && first
                 ? read_plan(options.plan_path)
                 : read_plan_for_rank(options.plan_path, comm.rank(), options.verify && first);
  check_world(options, backend, out.plan, comm.size());
  const auto number = static_cast<size_t>(out.plan.program_of.at(static_cast<size_t>(comm.rank())));
  if (options.dry_run && first)
    verify(out.plan);
  else
    verify_program(out.plan.programs[number], out.plan.groups, comm.rank());
  if (options.verify && first && !out.plan.reference) {
    throw UserError(options.plan_path + ": --verify needs the step on one device, and the plan has none",
                    "one device of its machine could not hold it, or it is for inference");
  }
  if (needs_model(options, out.plan)) {
    out.model_path = find_model(options, out.plan);
    out.model = backend.open_model(out.model_path, first);
    if (first && !out.plan.model_hash.empty() && out.model.hash != out.plan.model_hash) {
      throw UserError(out.model_path + ": changed since " + options.plan_path + " was compiled",
                      "compile it again: ffcompile " + out.model_path);
    }
  }
  out.context = context_of(options, out.plan);
  out.seed = options.seed ? static_cast<uint64_t>(*options.seed) : out.plan.seed;
  out.context.seed = out.seed;
  return out;
}

int64_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return CPU_COUNT(&set);
}

}  // namespace ff
