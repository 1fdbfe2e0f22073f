#include "compiler/driver/compile.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/base/check.h"

namespace ff {
namespace {

Parameter parameter_of(const Tensor& t) {
  Parameter p;
  p.name = t.name;
  p.kind = static_cast<ParameterKind>(t.source.role);
  p.shape = t.shape;
  p.dtype = t.dtype;
  p.source = static_cast<Parameter::Source>(t.source.kind);
  p.model_name = t.source.model_name;
  p.fill = t.source.fill;
  p.bytes = t.source.bytes;
  p.views = t.source.views;
  return p;
}

void add_parameters(const Graph& graph, std::set<std::string>& known, Plan& plan) {
  for (const Tensor& t : graph.tensors) {
    if (t.kind == TensorKind::parameter && known.insert(t.name).second)
      plan.parameters.push_back(parameter_of(t));
  }
}

/// Below what each integer tensor must stay: classes of labels, entries of what is gathered from; 0: no limit
/// is known. What only passes integers on passes the limit on to what it reads.
std::vector<int64_t> integer_limits(const Graph& graph) {
  std::vector<int64_t> limits(graph.tensors.size(), 0);
  const auto limit = [&](TensorId id, int64_t below) {
    if (!id.valid() || below <= 0 || is_float(graph.tensor(id).dtype)) return;
    int64_t& now = limits[id.index()];
    now = now == 0 ? below : std::min(now, below);
  };
  const auto extent = [&](TensorId id, const Op& op) {
    const Shape& shape = graph.tensor(id).shape;
    return shape.at(static_cast<size_t>(op.attributes.integer("axis")));
  };
  for (size_t i = graph.ops.size(); i-- > 0;) {
    const Op& op = graph.ops[i];
    const std::string_view family = op_def(op.type).family;
    if (op.phase != Phase::forward || op.stage_of.valid()) continue;
    if ((family == "loss" || op.type == "Gather") && op.inputs.size() > 1 && op.attributes.has("axis")) {
      limit(op.inputs[1], extent(op.inputs[0], op));
    } else if (family == "copy" || op.type == "Identity" || op.type == "Cast") {
      for (TensorId id : op.inputs) limit(id, limits[op.outputs[0].index()]);
    }
  }
  return limits;
}

void add_inputs(const Graph& graph, Plan& plan) {
  const std::vector<int64_t> limits = integer_limits(graph);
  for (TensorId id : graph.inputs) {
    const Tensor& t = graph.tensor(id);
    plan.inputs.push_back({t.name, t.shape, t.dtype, t.batch_axis, limits[id.index()]});
  }
  for (TensorId id : graph.outputs) plan.outputs.push_back(graph.tensor(id).name);
}

/// The table of ops: what each leader and its followers cost.
void summarize(const Problem& problem, const Strategy& strategy, const TaskGraph& tasks, Plan& plan) {
  const Graph& graph = problem.graph();
  for (OpId leader : problem.leaders()) {
    OpSummary s = summary_of(problem, leader, strategy.configs[leader.index()]);
    for (OpId follower : problem.followers(leader)) {
      const OpRuns& runs = tasks.ops[follower.index()];
      if (!runs.active) continue;
      s.compute_ns += runs.cost.time * static_cast<int64_t>(runs.runs.size());
      for (TensorId out : graph.op(follower).outputs) {
        if (!out.valid() || !tasks.tensors[out.index()]) continue;
        const TensorPlan& p = *tasks.tensors[out.index()];
        for (const Step& step : p.steps) {
          if (step.kind == StepKind::message) s.traffic_bytes += step.bytes;
          if (step.group.size() > 1 && step.kind != StepKind::message) {
            s.traffic_bytes += step.bytes * static_cast<int64_t>(step.group.size() - 1) *
                               (step.kind == StepKind::all_reduce ? 2 : 1);
          }
        }
        for (int32_t i : p.write_instance) {
          if (i >= 0)
            s.memory_bytes +=
                p.instances[static_cast<size_t>(i)].box.volume() * size_of(graph.tensor(out).dtype);
        }
      }
    }
    plan.ops.push_back(std::move(s));
  }
}

Program lower_reference(const Problem& training, const Machine& machine, CostModel& costs,
                        const WorkspaceQuery& workspace) {
  Simulator simulator(training, machine, costs);
  const TaskGraph tasks = simulator.build(single_device(training));
  std::vector<Program> programs(1);
  std::vector<std::vector<int32_t>> groups;
  lower_entry("reference", training, tasks, simulate(tasks), workspace, programs, groups);
  FF_CHECK(groups.empty());
  return std::move(programs[0]);
}

}  // namespace

OpSummary summary_of(const Problem& problem, OpId leader, const Config& config) {
  constexpr char kRoles[] = {'S', 'A', 'P', 'C'};
  OpSummary s;
  s.op = problem.graph().op(leader).name;
  s.type = problem.graph().op(leader).type;
  for (const IterDim& dim : problem.space(leader).dims)
    s.dims.push_back(dim.name + ":" + kRoles[static_cast<int>(dim.role)]);
  s.degrees.assign(config.degrees.begin(), config.degrees.end());
  s.replicas = config.replicas;
  for (DeviceId d : config.devices) s.devices.push_back(d.value);
  return s;
}

Strategy single_device(const Problem& problem) {
  Strategy out;
  out.configs.resize(problem.graph().ops.size());
  for (OpId leader : problem.leaders()) {
    out.configs[leader.index()] = {
        std::vector<int32_t>(problem.space(leader).dims.size(), 1), 1, {DeviceId(0)}};
  }
  return out;
}

Strategy carry_over(const Strategy& strategy, const Graph& graph, const Problem& other,
                    const Machine& machine) {
  std::map<std::string, const Config*> by_name;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    if (!strategy.configs[i].devices.empty()) by_name[graph.ops[i].name] = &strategy.configs[i];
  }
  Strategy out = baseline_strategy("data-parallel", other, machine);
  for (OpId leader : other.leaders()) {
    const auto it = by_name.find(other.graph().op(leader).name);
    if (it == by_name.end() || it->second->degrees.size() != other.space(leader).dims.size()) continue;
    Config config = *it->second;
    bool fits = true;
    for (size_t d = 0; d < config.degrees.size(); ++d)
      fits &= config.degrees[d] <= other.max_degree(leader, d);
    if (fits) out.configs[leader.index()] = std::move(config);
  }
  return out;
}

Plan make_plan(const PlanParts& parts, const Strategy& strategy, CostModel& costs,
               const WorkspaceQuery& workspace, bool with_reference) {
  const Machine& machine = *parts.machine;
  Plan plan;
  plan.num_devices = machine.num_devices();
  plan.threads_per_rank = machine.kinds()[0].threads;
  plan.machine_name = machine.name();
  std::vector<Program> programs(static_cast<size_t>(machine.num_devices()));
  std::set<std::string> known;
  Strategy eval_strategy = strategy;
  Homes homes;
  if (parts.training != nullptr) {
    Simulator simulator(*parts.training, machine, costs);
    const TaskGraph tasks = simulator.build(strategy);
    const Timeline timeline = simulate(tasks);
    const SimulationResult predicted = simulator.evaluate(tasks, timeline);
    lower_entry("train_step", *parts.training, tasks, timeline, workspace, programs, plan.groups);
    plan.batch = parts.training->graph().batch;
    plan.step_ns = predicted.makespan;
    for (size_t d = 0; d < programs.size(); ++d)
      plan.devices.push_back({predicted.busy[d], predicted.peak_bytes[d], 0});
    add_parameters(parts.training->graph(), known, plan);
    add_inputs(parts.training->graph(), plan);
    summarize(*parts.training, strategy, tasks, plan);
    if (parts.evaluation != nullptr) {
      homes = homes_of(*parts.training, tasks, parts.evaluation->graph());
      eval_strategy = carry_over(strategy, parts.training->graph(), *parts.evaluation, machine);
    }
    if (with_reference) plan.reference = lower_reference(*parts.training, machine, costs, workspace);
  }
  if (parts.evaluation != nullptr) {
    Simulator simulator(*parts.evaluation, machine, costs);
    const TaskGraph tasks = simulator.build(eval_strategy, homes.empty() ? nullptr : &homes);
    const Timeline timeline = simulate(tasks);
    lower_entry("eval_step", *parts.evaluation, tasks, timeline, workspace, programs, plan.groups);
    add_parameters(parts.evaluation->graph(), known, plan);
    if (parts.training == nullptr) {
      plan.batch = parts.evaluation->graph().batch;
      plan.step_ns = timeline.makespan;
      plan.devices.resize(programs.size());
      add_inputs(parts.evaluation->graph(), plan);
      summarize(*parts.evaluation, eval_strategy, tasks, plan);
    }
  }
  for (size_t d = 0; d < programs.size(); ++d) {
    plan.devices[d].peak_bytes = programs[d].arena_bytes();
    plan.program_of.push_back(static_cast<int32_t>(d));
  }
  plan.programs = std::move(programs);
  return plan;
}

}  // namespace ff
