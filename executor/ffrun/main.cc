// ffrun: trains a plan. Flags, then one call.
#include <omp.h>

#include <iostream>
#include <memory>

#include "compiler/base/check.h"
#include "compiler/base/hash.h"
#include "executor/comm/mpi_communicator.h"
#include "executor/kernels/cpu/registry.h"
#include "executor/runtime/trainer.h"
#include "executor/weights/weights.h"
#include "tools/cli/command_line.h"

namespace {

bool parse(int argc, char** argv, ff::RunOptions& o) {
  ff::CommandLine line("ffrun",
                       "Trains the model of a plan: mpirun -n N ffrun PLAN.soap, one rank a device.");
  line.positional("PLAN.soap", &o.plan_path, "The plan, as ffcompile makes it", /*required=*/true);
  line.group("Data");
  line.option("--data", &o.data, "NAME=FILE",
              "Samples of an input (.npy or IDX, gzipped or not); once an input");
  line.option("--eval-data", &o.eval_data, "NAME=FILE", "Samples to measure accuracy on, after each epoch");
  line.option("--normalize", &o.normalize, "NAME=SCALE[,MEAN,STD]",
              "Reads integers as (x / SCALE - MEAN) / STD");
  line.flag("--synthetic", &o.synthetic, "Made-up numbers for inputs without a file");
  line.flag("--shuffle", &o.shuffle, "Another order of samples each epoch, by the seed");
  line.option("--model", &o.model_path, "FILE.onnx", "The model, if it is not beside the plan");
  line.group("Training");
  line.option("--steps", &o.steps, "N", "Steps (default: one epoch; of made-up numbers, 10)");
  line.option("--epochs", &o.epochs, "N", "Passes over the data");
  line.option("--lr", &o.learning_rate, "X",
              "Learning rate (default: sgd, momentum 0.01; adam, adamw 0.001)");
  line.option("--momentum", &o.momentum, "X", "Momentum (default 0.9)");
  line.option("--weight-decay", &o.weight_decay, "X", "Weight decay (default: adamw 0.01; others 0)");
  line.option("--seed", &o.seed, "N", "Of sample order, dropout and made-up numbers (default: the plan's)");
  line.group("Results");
  line.option("--log", &o.log, "FILE.jsonl", "Loss and time of every step");
  line.option("--report", &o.report, "FILE.json", "The run in numbers ('-': stdout)");
  line.option("--trace", &o.trace, "FILE.json", "The last step as a Chrome trace, measured and predicted");
  line.option("--save", &o.save, "TRAINED.onnx", "The trained model");
  line.option("--checkpoint", &o.checkpoint, "DIR", "Where to keep a checkpoint");
  line.option("--checkpoint-every", &o.checkpoint_every, "N", "Steps between checkpoints; 0: at the end");
  line.flag("--resume", &o.resume, "Goes on from the checkpoint");
  line.flag("--quiet", &o.quiet, "No progress");
  line.group("Checks");
  line.flag("--verify", &o.verify,
            "Runs every step on one device too and compares every weight; status 4 if they differ");
  line.flag("--dry-run", &o.dry_run, "Loads and checks the plan, shows memory and placement, and stops");
  return line.parse(argc, argv);
}

ff::ModelFile open_model(const std::string& path, bool want_hash) {
  auto reader = std::make_shared<ff::WeightReader>(path);
  ff::ModelFile out;
  if (want_hash) out.hash = ff::to_hex(ff::hash_files(reader->files()));
  out.load = [reader](const ff::Parameter& p, const ff::Box& box, void* to) { reader->read(p, box, to); };
  out.save = [path](const std::vector<ff::Parameter>& parameters, const ff::ParameterValues& values,
                    const std::string& to) { ff::write_trained(path, parameters, values, to); };
  return out;
}

int run(int argc, char** argv) {
  // Rank 0 alone answers --help and --version, and complains of flags.
  ff::MpiRuntime mpi(&argc, &argv);
  return mpi.run("ffrun", [&](ff::Communicator& comm) {
    ff::RunOptions options;
    try {
      if (comm.rank() != 0) std::cout.setstate(std::ios::failbit);
      const bool go = parse(argc, argv, options);
      std::cout.clear();
      if (!go) return 0;
    } catch (...) {
      std::string message;
      const int status = ff::describe_current_exception("ffrun", message);
      if (comm.rank() == 0) std::cerr << message;
      return status;
    }
    const ff::Backend backend{
        .make_kernel = [](const ff::KernelCall& call) { return ff::cpu::make_kernel(call); },
        .open_model = open_model,
        .set_threads = [](int64_t threads) { omp_set_num_threads(static_cast<int>(threads)); },
        .launcher_size = ff::launcher_world_size(),
    };
    return ff::run_plan(options, backend, comm);
  });
}

}  // namespace

int main(int argc, char** argv) { return ff::report_errors("ffrun", run, argc, argv); }
