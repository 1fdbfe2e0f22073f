// ffcompile: an ONNX model and a machine to a plan. Flags, then the pipeline: import, training graph, search,
// lowering.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "compiler/base/check.h"
#include "compiler/base/hash.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/costs.h"
#include "compiler/driver/explanation.h"
#include "compiler/onnx/import.h"
#include "compiler/partition/strategy_text.h"
#include "compiler/plan/container.h"
#include "compiler/plan/verify.h"
#include "compiler/search/report.h"
#include "compiler/search/search.h"
#include "compiler/training/training.h"
#include "executor/weights/weights.h"
#include "tools/cli/command_line.h"

namespace ff {
namespace {

std::atomic<bool> interrupted{false};

struct Flags {
  std::string model, machine = "cpu-1", output, mode = "train", optimizer = "momentum", batchnorm = "sync";
  std::string batchnorm_mode = "model", precision = "f32", search = "mcmc", space = "full";
  std::string strategy, init, report, emit = "plan", memory_limit, reduction = "mean";
  CostFlags cost;
  std::optional<int64_t> ignore_index;
  int64_t batch = 0, rnn_chunk = 0, proposals = -1, chains = 4, class_axis = 1;
  uint64_t seed = 1;
  double budget = -1, label_smoothing = 0;
  std::vector<std::string> dims, batch_axes, outputs, losses, train, freeze, explain;
  bool dry_run = false, list_presets = false, no_reference = false;
};

std::pair<std::string, int64_t> parse_binding(const std::string& flag, const std::string& text) {
  const size_t at = text.find('=');
  try {
    size_t end = 0;
    const int64_t value = at == std::string::npos ? 0 : std::stoll(text.substr(at + 1), &end);
    if (at != std::string::npos && at > 0 && end == text.size() - at - 1) return {text.substr(0, at), value};
  } catch (const std::logic_error&) {
  }
  throw UserError(flag + " " + text + ": write it as NAME=NUMBER");
}

bool parse_flags(int argc, char** argv, Flags& f) {
  CommandLine line(
      "ffcompile",
      "Finds the fastest way to train an ONNX model on a machine and writes it as a plan for ffrun.");
  line.positional("MODEL.onnx", &f.model, "The model");
  line.option("--machine", &f.machine, "FILE|PRESET", "What to train on; --list-presets names the presets");
  line.option("-o,--output-plan", &f.output, "PLAN.soap",
              "Where to write the plan; default: beside the model");
  line.group("Model");
  line.option("--batch", &f.batch, "N", "Samples a step; 0: as the model says");
  line.option("--dim", &f.dims, "NAME=N", "Binds a symbolic dimension (repeatable)");
  line.option("--rnn-chunk", &f.rnn_chunk, "N",
              "Cuts recurrent layers into ops of N steps, which may be placed apart");
  line.option("--batch-axis", &f.batch_axes, "NAME=K",
              "The axis of an input that counts samples (repeatable)");
  line.option("--output", &f.outputs, "NAME", "Trains to this value of the model (repeatable)");
  line.option("--train", &f.train, "PATTERN", "Trains these parameters too (repeatable; * and ?)");
  line.option("--freeze", &f.freeze, "PATTERN", "Freezes these parameters (repeatable; * and ?)");
  line.choice("--mode", &f.mode, {"train", "infer"}, "A training plan, or one that only evaluates");
  line.choice("--batchnorm-mode", &f.batchnorm_mode, {"model", "train"},
              "Batch normalisation's statistics: as the model says, or trained");
  line.group("Training");
  line.option("--loss", &f.losses, "KIND[:OUTPUT][*WEIGHT]",
              "softmax-cross-entropy, nll, bce, mse, graph (repeatable)");
  line.choice("--reduction", &f.reduction, {"mean", "sum"}, "Of the loss over the whole batch");
  line.option("--ignore-index", &f.ignore_index, "N", "Labels of this value do not count");
  line.option("--label-smoothing", &f.label_smoothing, "X", "Part of the target that goes to all classes");
  line.option("--class-axis", &f.class_axis, "K", "Axis of the classes in the output");
  line.choice("--optimizer", &f.optimizer, {"sgd", "momentum", "adam", "adamw"}, "How weights are updated");
  line.choice("--batchnorm", &f.batchnorm, {"sync", "local"},
              "Statistics over the whole batch, or over each shard");
  line.choice("--precision", &f.precision, {"f32", "f64"},
              "Of all computation; f64 is slow, plain loops for comparisons");
  line.group("Search");
  line.choice("--search", &f.search,
              {"mcmc", "data-parallel", "model-parallel", "expert", "optcnn", "reinforce", "exhaustive"},
              "How to look for the strategy; exhaustive proves the best, or says how near it came");
  line.option("--strategy", &f.strategy, "FILE",
              "Takes this strategy instead; with --report or --explain and no -o writes no plan");
  line.choice("--space", &f.space, {"full", "soap"},
              "full adds contracted splits, replicas, sharded updates to the paper's space");
  line.option("--budget", &f.budget, "SECONDS", "Stops after so long; -1: no limit");
  line.option("--proposals", &f.proposals, "N",
              "Stops after so many; -1: when half of them brought nothing (exhaustive: at the end)");
  line.option("--seed", &f.seed, "N", "Of the search");
  line.option("--chains", &f.chains, "N", "Independent walks");
  line.option("--init", &f.init, "FILE", "A strategy to start from");
  line.option("--memory-limit", &f.memory_limit, "BYTES",
              "A device; 512MiB, 12GiB; default: the device's memory");
  line.group("Costs");
  line.option("--cost", &f.cost.given, "KIND",
              "measured, profile, roofline; default: measured for CPU machines, else roofline");
  line.option("--profile", &f.cost.profile, "FILE",
              "The profile to use or to fill; default: in the user's cache");
  line.choice("--device", &f.cost.device, {"cpu", "cuda"}, "The backend whose kernels are asked");
  line.group("Output");
  line.option("--report", &f.report, "FILE.json", "The search report; '-' is stdout");
  line.option("--explain", &f.explain, "OP",
              "Says what other configs of this op would cost, and why it has its own (repeatable)");
  line.choice("--emit", &f.emit, {"plan", "graph", "training-graph", "strategy"},
              "Prints this stage and stops; plan: goes all the way");
  line.flag("--dry-run", &f.dry_run, "Inputs, outputs, parameters, unsupported nodes; no search");
  line.flag("--no-reference", &f.no_reference, "Leaves out the one-device program that ffrun --verify needs");
  line.flag("--list-presets", &f.list_presets, "Names the machine presets");
  return line.parse(argc, argv);
}

ImportOptions import_options(const Flags& f) {
  ImportOptions o;
  o.batch = f.batch;
  for (const std::string& text : f.dims) o.dims.insert(parse_binding("--dim", text));
  if (f.rnn_chunk < 0)
    throw UserError("--rnn-chunk " + std::to_string(f.rnn_chunk),
                    "give a number of steps, 0 for whole layers");
  o.rnn_chunk = f.rnn_chunk;
  for (const std::string& text : f.batch_axes) {
    const auto [name, axis] = parse_binding("--batch-axis", text);
    o.batch_axes[name] = static_cast<int>(axis);
  }
  o.outputs = f.outputs;
  o.train = f.train;
  o.freeze = f.freeze;
  o.batchnorm_train = f.batchnorm_mode == "train";
  o.inference = f.mode == "infer";
  o.allow_unsupported = f.dry_run;
  return o;
}

TrainingOptions training_options(const Flags& f) {
  TrainingOptions o;
  for (const std::string& text : f.losses) {
    LossSpec spec = parse_loss(text);
    spec.mean = f.reduction == "mean";
    spec.ignore_index = f.ignore_index;
    spec.label_smoothing = f.label_smoothing;
    spec.class_axis = f.class_axis;
    o.losses.push_back(spec);
  }
  o.optimizer = f.optimizer;
  o.precision = f.precision == "f64" ? DType::f64 : DType::f32;
  return o;
}

void write_text(const std::string& path, const std::string& text) {
  if (path == "-") {
    std::cout << text << "\n";
    return;
  }
  std::ofstream out(path + ".tmp");
  out << text << "\n";
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(path + ".tmp", path, error);
  if (!out || error) throw RunError(path + ": cannot be written");
}

std::string read_text(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw UserError(path + ": cannot be read");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) std::fprintf(stderr, "note: %s\n", note.c_str());
}

SearchOptions search_options(const Flags& f) {
  SearchOptions o;
  o.kind = f.search;
  o.space = f.space == "soap" ? Space::soap : Space::full;
  o.proposals = f.proposals;
  o.budget_seconds = f.budget;
  o.seed = f.seed;
  o.chains = static_cast<int>(f.chains);
  if (!f.memory_limit.empty()) o.memory_limit = parse_bytes(f.memory_limit, "--memory-limit");
  return o;
}

SearchResult find_strategy(const Flags& f, const Problem& problem, const Machine& machine, CostModel& costs,
                           const StrategyHashes& hashes) {
  SearchOptions o = search_options(f);
  o.stop = &interrupted;
  o.progress = [](const SearchProgress& p) {
    static double last = 0;
    if (p.seconds - last < 1) return;
    last = p.seconds;
    std::fprintf(stderr, "search: %ld proposals, best step %s\n", static_cast<long>(p.proposals),
                 format_seconds(static_cast<double>(p.best) * 1e-9).c_str());
  };
  // Measuring all kernels of the space takes minutes for a large model: for a search without a limit only.
  const bool searches = f.search == "mcmc" || f.search == "exhaustive" || f.search == "optcnn";
  o.price_all = f.cost.kind(machine) != "measured" || (searches && f.strategy.empty() && f.budget < 0);
  std::vector<std::string> warnings;
  const auto read = [&](const std::string& path) {
    return parse_strategy(read_text(path), path, problem, hashes, warnings);
  };
  SearchResult result;
  if (!f.strategy.empty()) {
    // Scored beside data parallelism, not searched.
    const int64_t limit = o.memory_limit;
    o.kind = "data-parallel";
    o.memory_limit = 0;  // it is for the strategy that was given
    result = search(problem, machine, costs, o);
    result.best = read(f.strategy);
    Simulator simulator(problem, machine, costs);
    result.simulation = simulator.evaluate(result.best);
    result.cost = result.simulation.makespan;
    if (!is_bounded(problem, result.best, o.space)) result.lower_bound.reset();
    if (!score_of(result.simulation, machine, limit).fits()) {
      const auto& peaks = result.simulation.peak_bytes;
      throw UserError(f.strategy + ": does not fit the memory: it takes " +
                          format_bytes(*std::max_element(peaks.begin(), peaks.end())) +
                          " on the fullest device",
                      "split it further, or give a larger --memory-limit");
    }
  } else {
    if (!f.init.empty()) o.init = read(f.init);
    result = search(problem, machine, costs, o);
  }
  for (const std::string& w : warnings) std::fprintf(stderr, "warning: %s\n", w.c_str());
  print_notes(result.notes);
  return result;
}

Nanoseconds data_parallel_cost(const SearchResult& found) {
  for (const Baseline& b : found.baselines) {
    if (b.kind == "data-parallel") return b.cost;
  }
  return 0;
}

void print_summary(const SearchResult& found, const Plan& plan, const std::string& path) {
  const Nanoseconds base = data_parallel_cost(found);
  std::printf("predicted step %s", format_seconds(static_cast<double>(plan.step_ns) * 1e-9).c_str());
  if (base > 0) {
    std::printf(", %.2f times faster than data parallelism (%s)",
                static_cast<double>(base) / static_cast<double>(plan.step_ns),
                format_seconds(static_cast<double>(base) * 1e-9).c_str());
    std::printf(", moving %s a step", format_bytes(found.simulation.bytes_moved).c_str());
  }
  if (plan.num_devices > 1) {
    std::printf("; run: mpirun -n %ld ffrun %s\n", static_cast<long>(plan.num_devices), path.c_str());
  } else {
    std::printf("; run: ffrun %s\n", path.c_str());
  }
}

int compile(const Flags& f) {
  if (!f.explain.empty()) refuse_without_search(f.dry_run ? "--dry-run" : "--emit " + f.emit);
  ImportedModel model = import_model(f.model, import_options(f));
  if (f.dry_run) {
    std::cout << describe(model);
    return model.unsupported.empty() ? 0 : 2;
  }
  print_notes(model.notes);
  if (f.emit == "graph") return std::cout << to_string(model.graph), 0;
  const Machine machine = load_machine(f.machine);
  if (f.mode == "infer")
    throw UserError("--mode infer is not built yet", "make a training plan; it has an evaluation entry");
  std::vector<std::string> notes;
  TrainingOptions options = training_options(f);
  if (f.batchnorm == "local") options.batchnorm_groups = machine.num_devices();
  const Graph training = make_training_graph(model.graph, options, notes);
  print_notes(notes);
  if (f.emit == "training-graph") return std::cout << to_string(training), 0;
  const Graph evaluation = make_eval_graph(training);
  const Problem problem(training, machine.num_devices());
  const Problem eval_problem(evaluation, machine.num_devices());
  const std::vector<OpId> explained = find_ops(f.explain, problem);
  Costs costs = make_costs(f.cost, machine);
  const uint64_t model_hash = hash_files(WeightReader(f.model).files());
  const StrategyHashes hashes{model_hash, machine.hash()};
  const SearchResult found = find_strategy(f, problem, machine, *costs.model, hashes);
  if (!f.report.empty()) {
    write_text(f.report, search_report(found, {f.model, machine.name(), f.seed}, costs.model->counts()));
  }
  print_sources(costs.model->counts(), machine.name());
  // Beside what else goes to standard output.
  (f.emit == "strategy" || f.report == "-" ? std::cerr : std::cout)
      << explanations_text(explained, found.best, problem, machine, *costs.model, search_options(f));
  const std::string strategy = to_text(found.best, problem, hashes);
  if (f.emit == "strategy") return std::cout << strategy, 0;
  const bool asked = !f.report.empty() || !f.explain.empty();
  if (!f.strategy.empty() && asked && f.output.empty()) return 0;
  const WorkspaceQuery workspace = [&](const KernelCall& call) {
    return costs.profiler ? costs.profiler->workspace_bytes(call) : int64_t{0};
  };
  Plan plan =
      make_plan({&problem, &eval_problem, &machine}, found.best, *costs.model, workspace, !f.no_reference);
  plan.model_path = std::filesystem::path(f.model).filename().string();
  plan.model_hash = to_hex(model_hash);
  plan.machine_hash = to_hex(machine.hash());
  if (costs.store) plan.profile_hash = to_hex(costs.store->hash());
  plan.library_versions = cpu_libraries();
  plan.optimizer = f.optimizer;
  plan.batchnorm = f.batchnorm;
  plan.seed = f.seed;
  plan.strategy = strategy;
  plan.data_parallel_ns = data_parallel_cost(found);
  verify(plan);
  std::string path = f.output;
  if (path.empty()) path = std::filesystem::path(f.model).replace_extension(".soap").string();
  write_plan(path, plan);
  if (found.lower_bound) std::cout << gap_line(found) << "\n";
  print_summary(found, plan, path);
  return 0;
}

int run(int argc, char** argv) {
  Flags flags;
  if (!parse_flags(argc, argv, flags)) return 0;
  if (flags.list_presets) {
    for (const std::string& name : preset_names()) std::cout << name << "\n";
    return 0;
  }
  if (flags.model.empty())
    throw UserError("no model given", "ffcompile MODEL.onnx --machine cpu-2 --loss softmax-cross-entropy");
  std::signal(SIGINT, [](int) { interrupted = true; });
  return compile(flags);
}

}  // namespace
}  // namespace ff

int main(int argc, char** argv) { return ff::report_errors("ffcompile", ff::run, argc, argv); }
