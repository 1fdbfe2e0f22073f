// ffplan-dump: what is in a plan.
#include <iostream>
#include <string>

#include "compiler/base/check.h"
#include "compiler/plan/container.h"
#include "compiler/plan/text.h"
#include "tools/cli/command_line.h"
#include "tools/ffplan-dump/difference.h"
#include "tools/ffplan-dump/dump.h"

namespace {

struct Options {
  std::string plan;
  bool strategy = false, memory = false, json = false, dot = false, trace = false, html = false;
  std::optional<int64_t> program;
  std::string diff;

  int chosen() const {
    // --json with --diff is one choice.
    return strategy + memory + (json && diff.empty()) + dot + trace + html + program.has_value() +
           !diff.empty();
  }
};

void print_program(const Options& options, const ff::Plan& plan) {
  const int64_t rank = *options.program;
  if (rank < 0 || rank >= static_cast<int64_t>(plan.program_of.size())) {
    throw ff::UserError("--program " + std::to_string(rank) + ": the plan has ranks 0 to " +
                        std::to_string(plan.program_of.size() - 1));
  }
  const auto number = static_cast<size_t>(plan.program_of[static_cast<size_t>(rank)]);
  std::cout << ff::program_text(plan.programs[number], plan.groups);
}

void print_difference(const Options& options, const ff::Plan& plan) {
  const ff::PlanDifference difference =
      ff::compare({options.plan, plan}, {options.diff, ff::read_plan(options.diff)});
  std::cout << (options.json ? ff::difference_json(difference) : ff::difference_text(difference));
}

int dump(const Options& options) {
  const ff::Plan plan = ff::read_plan(options.plan);
  if (!options.diff.empty()) {
    print_difference(options, plan);
  } else if (options.strategy) {
    std::cout << plan.strategy;
  } else if (options.program) {
    print_program(options, plan);
  } else if (options.memory) {
    std::cout << ff::memory_table(plan);
  } else if (options.json) {
    std::cout << ff::plan_json(plan);
  } else if (options.dot) {
    std::cout << ff::plan_dot(plan);
  } else if (options.trace) {
    std::cout << ff::plan_trace(plan);
  } else {
    std::cout << ff::summary_text(plan) << "\n" << ff::ops_table(plan);
  }
  return 0;
}

int run(int argc, char** argv) {
  Options options;
  ff::CommandLine line("ffplan-dump",
                       "Shows what is in a plan: what it is for and needs, and how each op is split.");
  line.positional("PLAN.soap", &options.plan, "The plan", /*required=*/true);
  line.group("Show instead (one of)");
  line.flag("--strategy", &options.strategy, "The strategy, as ffcompile --strategy reads it");
  line.option("--program", &options.program, "RANK", "The program of a rank");
  line.flag("--memory", &options.memory, "Memory by device, and the largest tensors");
  line.flag("--json", &options.json, "Everything, as JSON");
  line.flag("--dot", &options.dot, "The step as a graph, for Graphviz");
  line.flag("--trace", &options.trace, "The predicted step, as a Chrome trace");
  line.flag("--html", &options.html, "The plan as a page");
  line.option("--diff", &options.diff, "OTHER.soap",
              "What differs from another plan, and what it is worth; with --json as JSON");
  if (!line.parse(argc, argv)) return 0;
  if (options.chosen() > 1) throw ff::UserError("give one of the options that choose what to show");
  if (options.html)
    throw ff::UserError("--html is not built", "--trace opens in Perfetto, --dot in Graphviz");
  return dump(options);
}

}  // namespace

int main(int argc, char** argv) { return ff::report_errors("ffplan-dump", run, argc, argv); }
