#include "executor/runtime/trainer.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>

#include "compiler/base/check.h"
#include "compiler/base/model_data.h"
#include "compiler/base/units.h"
#include "executor/runtime/checkpoint.h"
#include "executor/runtime/evaluation.h"
#include "executor/runtime/gather.h"
#include "executor/runtime/progress.h"
#include "executor/runtime/report.h"
#include "executor/runtime/schedule.h"
#include "executor/runtime/startup.h"
#include "executor/runtime/verification.h"

namespace ff {
namespace {

constexpr int kFoundDifference = 4;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The buffer that holds the loss: the first output that is no output of the model.
int32_t loss_buffer(const Plan& plan, const Program& program, const Entry& entry) {
  for (const int32_t b : entry.outputs) {
    const Buffer& buffer = program.buffers[static_cast<size_t>(b)];
    const auto& names = plan.outputs;
    if (std::find(names.begin(), names.end(), buffer.tensor) == names.end() || buffer.box.volume() == 1)
      return b;
  }
  return -1;
}

class Run {
 public:
  Run(const RunOptions& options, const Backend& backend, Session& session, Communicator& comm)
      : options_(options),
        backend_(backend),
        session_(session),
        plan_(session.plan),
        comm_(comm),
        first_(comm.rank() == 0),
        feed_(plan_.inputs, options.data, feed_options("--data", options.synthetic)),
        schedule_(make_schedule(options, feed_.samples(), plan_.batch, session.seed)) {
    if (!options.eval_data.empty())
      eval_feed_.emplace(plan_.inputs, options.eval_data, feed_options("--eval-data", false));
    if (options.resume) open_checkpoint();
  }

  int run() {
    prepare();
    train();
    return finish();
  }

 private:
  FeedOptions feed_options(const char* flag, bool synthetic) const {
    return {.flag = flag, .synthetic = synthetic, .normalize = options_.normalize, .seed = session_.seed};
  }

  void open_checkpoint() {
    if (options_.checkpoint.empty()) throw UserError("--resume: from where?", "give --checkpoint DIR too");
    checkpoint_.emplace(options_.checkpoint);
    const CheckpointPosition& p = checkpoint_->position();
    if (p.batch != plan_.batch || p.samples != schedule_.cut().samples || p.seed != session_.seed ||
        p.shuffle != options_.shuffle) {
      throw UserError(options_.checkpoint + ": the checkpoint was made with batch " +
                          std::to_string(p.batch) + ", " + std::to_string(p.samples) + " samples, --seed " +
                          std::to_string(p.seed) + (p.shuffle ? ", --shuffle" : ", no --shuffle"),
                      "resume with the same");
    }
    start_ = p.step;
  }

  const Program& program() const {
    return plan_.programs[static_cast<size_t>(plan_.program_of[static_cast<size_t>(comm_.rank())])];
  }

  void prepare() {
    interpreter_ =
        std::make_unique<Interpreter>(program(), plan_.groups, comm_, backend_.make_kernel,
                                      InterpreterOptions{.time_instructions = !options_.trace.empty()});
    const ParameterLoader loader = checkpoint_ ? checkpoint_->loader() : plan_loader(session_.model.load);
    load_parameters(plan_.parameters, *interpreter_, loader);
    if (options_.verify && first_)
      verifier_ = std::make_unique<Verifier>(plan_, backend_.make_kernel, loader);
    trains_ = interpreter_->has_entry("train_step");
    entry_ = &interpreter_->entry(trains_ ? "train_step" : "eval_step");
    if (first_) loss_ = loss_buffer(plan_, program(), *entry_);
    say_start();
  }

  void note(const std::string& line) const {
    if (first_ && !options_.quiet) std::fprintf(stderr, "ffrun: %s\n", line.c_str());
  }

  /// Called by all ranks.
  void say_start() {
    const std::vector<int64_t> cores = all_gather(usable_cores(), comm_);
    std::string list;
    if (std::equal(cores.begin() + 1, cores.end(), cores.begin()))
      list = std::to_string(cores[0]);
    else
      for (const int64_t c : cores) list += (list.empty() ? "" : ",") + std::to_string(c);
    note(std::to_string(comm_.size()) + (comm_.size() == 1 ? " rank, " : " ranks, ") +
         std::to_string(plan_.threads_per_rank) + (plan_.threads_per_rank == 1 ? " thread" : " threads") +
         " each; usable cores per rank: " + list);
    const int64_t fewest = *std::min_element(cores.begin(), cores.end());
    if (fewest < plan_.threads_per_rank) {
      note("warning: a rank has " + std::to_string(plan_.threads_per_rank) + " threads and " +
           std::to_string(fewest) + " cores: steps will be slower than predicted");
    }
    for (const std::string& line : feed_.describe()) note(line);
    const Batches& cut = schedule_.cut();
    if (cut.dropped > 0 && feed_.samples()) {
      note("the last " + std::to_string(cut.dropped) + " of " + std::to_string(cut.samples) +
           " samples of each epoch make no whole batch of " + std::to_string(cut.batch) + " and are dropped");
    }
    if (start_ > 0) note("resuming after step " + std::to_string(start_));
  }

  std::optional<double> loss() {
    if (loss_ < 0) return std::nullopt;
    const Buffer& b = program().buffers[static_cast<size_t>(loss_)];
    const std::string_view bytes(static_cast<const char*>(interpreter_->data(loss_)),
                                 static_cast<size_t>(b.bytes));
    return element_as_double(bytes, b.dtype, 0);
  }

  RunContext context(int64_t step) const {
    RunContext out = session_.context;
    out.step = step;
    return out;
  }

  void train() {
    RunLog log(first_ ? options_.log : "");
    Progress progress(schedule_.steps(), options_.quiet || !first_);
    if (eval_feed_ && !interpreter_->has_entry("eval_step")) interpreter_->entry("eval_step");  // says so
    for (int64_t step = start_; step < schedule_.steps(); ++step) {
      const bool last = step + 1 == schedule_.steps();
      if (last && !options_.trace.empty()) comm_.barrier();
      if (last) origin_ns_ = now_ns();
      const int64_t begin = now_ns();
      const Batch batch = schedule_.batch(step);
      feed_.fill(*interpreter_, entry_->name, batch);
      interpreter_->execute(entry_->name, context(step));
      const double seconds = static_cast<double>(now_ns() - begin) * 1e-9;
      seconds_.push_back(seconds);
      const std::optional<double> value = loss();
      if (!loss_first_) loss_first_ = value;
      loss_last_ = value;
      log.step(step + 1, schedule_.epoch_of(step), value, seconds);
      progress.step(step + 1, value.value_or(std::numeric_limits<double>::quiet_NaN()), seconds);
      if (last && !options_.trace.empty()) trace();
      if (options_.verify) verify_step(step, batch);
      if (eval_feed_ && (last || schedule_.ends_epoch(step))) {
        progress.pause();
        evaluate_now(step, log);
      }
      const bool due = options_.checkpoint_every > 0 && (step + 1) % options_.checkpoint_every == 0;
      if (!options_.checkpoint.empty() && trains_ && (last || due)) save_checkpoint(step + 1);
    }
  }

  void evaluate_now(int64_t step, RunLog& log) {
    const Accuracy accuracy = evaluate(plan_, *interpreter_, *eval_feed_, comm_, context(step));
    if (!first_) return;
    accuracy_ = accuracy.fraction();
    log.accuracy(step + 1, schedule_.epoch_of(step), *accuracy_);
    char text[160];
    std::snprintf(text, sizeof text, "accuracy %.4f (%" PRId64 " of %" PRId64 ") after step %" PRId64,
                  *accuracy_, accuracy.correct, accuracy.counted, step + 1);
    note(text);
  }

  void trace() {
    const auto events = gather_texts(trace_events(comm_.rank(), *interpreter_, *entry_, origin_ns_), comm_);
    if (first_) write_trace(options_.trace, events);
  }

  void save_checkpoint(int64_t done) {
    const GatheredParameters all = gather_parameters(plan_.parameters, *interpreter_, comm_);
    if (!first_) return;
    write_checkpoint(options_.checkpoint,
                     {.step = done,
                      .batch = plan_.batch,
                      .samples = schedule_.cut().samples,
                      .seed = session_.seed,
                      .shuffle = options_.shuffle},
                     plan_.parameters, all.values);
  }

  void verify_step(int64_t step, const Batch& batch) {
    GatheredParameters all = gather_parameters(plan_.parameters, *interpreter_, comm_);
    if (!first_) return;
    feed_.fill(verifier_->reference(), "reference", batch);
    verifier_->check(std::move(all), context(step));
  }

  int finish() {
    RunReport report = measured();
    bool good = true;
    if (!options_.save.empty()) {
      const GatheredParameters all = gather_parameters(plan_.parameters, *interpreter_, comm_);
      if (first_) session_.model.save(plan_.parameters, all.values, options_.save);
      note("trained weights: " + options_.save);
    }
    if (verifier_) good = say_verified(report);
    if (first_) {
      say_results(report);
      if (!options_.report.empty()) write_report(options_.report, report);
    }
    const std::vector<int64_t> agreed = all_gather(good ? 1 : 0, comm_);
    return agreed[0] != 0 ? 0 : kFoundDifference;
  }

  RunReport measured() {
    RunReport out;
    out.steps = static_cast<int64_t>(seconds_.size());
    // The first step pays for memory that is touched for the first time.
    const std::ptrdiff_t skip = seconds_.size() > 1 ? 1 : 0;
    out.step_seconds_median = median({seconds_.begin() + skip, seconds_.end()});
    out.predicted_step_seconds = static_cast<double>(plan_.step_ns) / 1e9;
    if (out.step_seconds_median > 0)
      out.samples_per_second = static_cast<double>(plan_.batch) / out.step_seconds_median;
    out.arena_bytes = all_gather(program().arena_bytes(), comm_);
    out.loss_first = loss_first_;
    out.loss_last = loss_last_;
    out.accuracy = accuracy_;
    return out;
  }

  bool say_verified(RunReport& report) const {
    report.verify = verifier_->found();
    report.differing_replicas = verifier_->differing_replicas();
    std::printf("verify: largest difference: %.3g of a step's change of '%s' (tolerance %g)\n",
                report.verify->worst, report.verify->parameter.c_str(), report.verify->tolerance);
    for (const std::string& name : report.differing_replicas)
      std::printf("verify: replicas of '%s' differ\n", name.c_str());
    std::printf("verify: %s\n",
                verifier_->passed() ? "the ranks computed what one device computes" : "FAILED");
    return verifier_->passed();
  }

  void say_results(const RunReport& report) const {
    std::printf("%" PRId64 " steps, %s/step (predicted %s), %.4g samples/s", report.steps,
                format_seconds(report.step_seconds_median).c_str(),
                format_seconds(report.predicted_step_seconds).c_str(), report.samples_per_second);
    if (report.loss_first && report.loss_last)
      std::printf(", loss %.5g -> %.5g", *report.loss_first, *report.loss_last);
    if (report.accuracy) std::printf(", accuracy %.4f", *report.accuracy);
    std::printf("\n");
    std::fflush(stdout);
  }

  const RunOptions& options_;
  const Backend& backend_;
  Session& session_;
  const Plan& plan_;
  Communicator& comm_;
  bool first_;
  InputFeed feed_;
  std::optional<InputFeed> eval_feed_;
  Schedule schedule_;
  std::optional<CheckpointReader> checkpoint_;
  int64_t start_ = 0;
  std::unique_ptr<Interpreter> interpreter_;
  std::unique_ptr<Verifier> verifier_;  // on rank 0
  const Entry* entry_ = nullptr;
  bool trains_ = true;
  int32_t loss_ = -1;  // on rank 0
  std::vector<double> seconds_;
  std::optional<double> loss_first_, loss_last_, accuracy_;
  int64_t origin_ns_ = 0;
};

/// Where every rank is and what it would allocate.
void rehearse(const Session& session, Communicator& comm) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  const auto number = static_cast<size_t>(session.plan.program_of[static_cast<size_t>(comm.rank())]);
  const Program& program = session.plan.programs[number];
  const std::string mine =
      "rank " + std::to_string(comm.rank()) + "  " + host + "  cores " + std::to_string(usable_cores()) +
      "  memory " + format_bytes(program.arena_bytes()) + " (" + format_bytes(program.persistent_bytes) +
      " persistent, " + format_bytes(program.scratch_bytes) + " scratch)  instructions " +
      std::to_string(program.entries.empty() ? 0 : program.entries[0].instructions.size());
  for (const std::string& line : gather_texts(mine, comm)) std::printf("%s\n", line.c_str());
  if (comm.rank() == 0) std::printf("the plan can be executed\n");
  std::fflush(stdout);
}

/// 0 if start-up went well everywhere; otherwise the status of the first rank where it did not, which has
/// said why.
int agree(const std::string& message, int status, Communicator& comm) {
  const std::vector<int64_t> all = all_gather(status, comm);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] == 0) continue;
    if (static_cast<int>(rank) == comm.rank()) std::fputs(message.c_str(), stderr);
    return static_cast<int>(all[rank]);
  }
  return 0;
}

}  // namespace

int run_plan(const RunOptions& options, const Backend& backend, Communicator& comm) {
  std::optional<Session> session;
  std::unique_ptr<Run> run;
  std::string message;
  int status = 0;
  try {
    session.emplace(open_session(options, backend, comm));
    backend.set_threads(session->plan.threads_per_rank);
    if (!options.dry_run) run = std::make_unique<Run>(options, backend, *session, comm);
  } catch (...) {
    const std::string name = comm.rank() == 0 ? "ffrun" : "ffrun: rank " + std::to_string(comm.rank());
    status = describe_current_exception(name.c_str(), message);
  }
  if (const int failed = agree(message, status, comm); failed != 0) return failed;
  if (!options.dry_run) return run->run();
  rehearse(*session, comm);
  return 0;
}

}  // namespace ff
