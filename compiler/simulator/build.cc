// From a strategy to its task graph: runs of every active op, a redistribution for every tensor, and the
// edges between them.

#include <algorithm>
#include <unordered_map>

#include "compiler/base/check.h"
#include "compiler/simulator/internal.h"
#include "compiler/simulator/simulator.h"

namespace ff {
namespace {

/// Tasks that write (part of) each buffer so far. A view's accesses count for the instance that it is a part
/// of.
class Accesses {
 public:
  using Node = TensorTasks::Node;

  explicit Accesses(const TensorPlan& plan) : plan_(plan), touches_(plan.instances.size()) {}

  int32_t root(int32_t instance) const {
    while (plan_.instances[static_cast<size_t>(instance)].parent >= 0) {
      instance = plan_.instances[static_cast<size_t>(instance)].parent;
    }
    return instance;
  }

  /// Records an access, after calling `before(task)` for every earlier one that it must follow: writes of
  /// common elements, and reads as well if this is a write.
  template <typename F>
  void touch(int32_t instance, Node task, bool writes, F before) {
    const Box& box = plan_.instances[static_cast<size_t>(instance)].box;
    auto& list = touches_[static_cast<size_t>(root(instance))];
    for (const Touch& t : list) {
      if ((t.task.op != task.op || t.task.index != task.index) && (writes || t.writes) &&
          !intersect(*t.box, box).empty())
        before(t.task);
    }
    list.push_back({&box, task, writes});
  }

 private:
  struct Touch {
    const Box* box;
    Node task;
    bool writes;
  };
  const TensorPlan& plan_;
  std::vector<std::vector<Touch>> touches_;
};

}  // namespace

GraphBuilder::GraphBuilder(const Problem& problem, const Machine& machine, CostModel& costs,
                           const Strategy& strategy, BuildCache& cache, const Homes* homes)
    : problem_(problem),
      machine_(machine),
      costs_(costs),
      strategy_(strategy),
      cache_(cache),
      homes_(homes) {}

TaskGraph GraphBuilder::build() {
  const size_t num_ops = problem_.graph().ops.size();
  out_.num_resources = 2 * machine_.num_devices() + machine_.num_links();
  out_.ops.resize(num_ops);
  first_task_.assign(num_ops, 0);
  number_configs();
  for (size_t i = 0; i < num_ops; ++i) add_runs(OpId(static_cast<int64_t>(i)));
  out_.tensors.resize(problem_.graph().tensors.size());
  for (size_t t = 0; t < out_.tensors.size(); ++t) add_tensor(TensorId(static_cast<int64_t>(t)));
  finish_edges();
  return std::move(out_);
}

void GraphBuilder::number_configs() {
  const Graph& graph = problem_.graph();
  cache_.configs.resize(graph.ops.size());
  cache_.ops.resize(graph.ops.size());
  cache_.tensors.resize(graph.tensors.size());
  config_numbers_.resize(graph.ops.size());
  for (OpId leader : problem_.leaders()) {
    const Config& config = strategy_.configs[leader.index()];
    std::string key(reinterpret_cast<const char*>(config.degrees.data()),
                    config.degrees.size() * sizeof(int32_t));
    key.append(reinterpret_cast<const char*>(&config.replicas), sizeof config.replicas);
    for (DeviceId device : config.devices)
      key.append(reinterpret_cast<const char*>(&device.value), sizeof device.value);
    auto& seen = cache_.configs[leader.index()];
    config_numbers_[leader.index()] =
        seen.try_emplace(std::move(key), static_cast<int32_t>(seen.size())).first->second;
  }
  for (size_t i = 0; i < graph.ops.size(); ++i)
    config_numbers_[i] = config_numbers_[graph.ops[i].config_of.index()];
}

OpRuns GraphBuilder::make_runs(OpId id) {
  OpRuns op;
  op.active = problem_.active(id, strategy_);
  if (!op.active) return op;
  const Op& node = problem_.graph().op(id);
  const Config& config = strategy_.configs[node.config_of.index()];
  op.degrees = problem_.degrees_of(id, config);
  op.runs = problem_.runs_of(id, config);
  op.cost = cache_.costs.largest_cell(problem_, machine_, costs_, id, op.degrees);
  op.instances.assign(op.runs.size() * (node.inputs.size() + node.outputs.size()), -1);
  return op;
}

void GraphBuilder::add_runs(OpId id) {
  auto& recent = cache_.ops[id.index()];
  const int32_t number = config_numbers_[id.index()];
  const OpRuns* known = recent.find(number);
  const OpRuns& op = out_.ops[id.index()] = known != nullptr ? *known : recent.add(number, make_runs(id));
  if (!op.active) return;
  first_task_[id.index()] = static_cast<int32_t>(out_.tasks.size());
  for (size_t r = 0; r < op.runs.size(); ++r) {
    out_.tasks.push_back({Task::Kind::run, id.value, static_cast<int32_t>(r), op.cost.time});
    out_.resources.items.push_back(op.runs[r].device.value);
    out_.resources.begin.push_back(static_cast<int32_t>(out_.resources.items.size()));
  }
}

void GraphBuilder::collect(TensorId tensor) {
  writes_.clear();
  reads_.clear();
  write_places_.clear();
  read_places_.clear();
  const Tensor& t = problem_.graph().tensor(tensor);
  const auto visit = [&](OpId id, int operand, bool output) {
    const OpRuns& op = out_.ops[id.index()];
    if (!op.active) return;
    const Op& node = problem_.graph().op(id);
    const OpSpace& space = problem_.space(id);
    const AccessMap& map = (output ? space.outputs : space.inputs)[static_cast<size_t>(operand)];
    const auto operands = static_cast<int32_t>(node.inputs.size() + node.outputs.size());
    const int32_t place = output ? static_cast<int32_t>(node.inputs.size()) + operand : operand;
    const auto owner = std::pair{id.value, operand};
    for (size_t r = 0; r < op.runs.size(); ++r) {
      const auto blocks = problem_.blocks_of(id, op.degrees, op.runs[r].addend);
      const Box box = region(map, t.shape, blocks);
      const Use use{id, static_cast<int32_t>(r), static_cast<int32_t>(r) * operands + place};
      if (output) {
        writes_.push_back({owner.first, op.runs[r].addend, op.runs[r].device, box});
        write_places_.push_back(use);
      } else {
        reads_.push_back({op.runs[r].device, box});
        read_places_.push_back(use);
      }
    }
  };
  if (homes_ != nullptr && !(*homes_)[tensor.index()].empty()) {
    writes_ = (*homes_)[tensor.index()];
  } else {
    for (const auto& [op, operand] : problem_.writers(tensor)) visit(op, operand, true);
  }
  for (const auto& [op, operand] : problem_.readers(tensor)) visit(op, operand, false);
  if (is_result(tensor)) reads_.push_back({DeviceId(0), Box::whole(t.shape)});
}

/// What device 0 reads when the step is over: the loss, and without updates (in evaluation) the model's
/// outputs.
bool GraphBuilder::is_result(TensorId tensor) const {
  const Graph& graph = problem_.graph();
  if (tensor == graph.loss) return true;
  const bool trains =
      std::any_of(graph.ops.begin(), graph.ops.end(), [](const Op& op) { return op.phase == Phase::update; });
  return !trains && std::find(graph.outputs.begin(), graph.outputs.end(), tensor) != graph.outputs.end();
}

RedistributionOptions GraphBuilder::options_of(TensorId tensor) const {
  const Tensor& t = problem_.graph().tensor(tensor);
  RedistributionOptions options;
  options.dtype = t.dtype;
  options.layout = t.layout;
  options.holes_are_zero = t.kind == TensorKind::gradient;
  options.available_everywhere =
      t.kind == TensorKind::input || (t.kind == TensorKind::parameter && writes_.empty());
  if (!write_places_.empty()) {
    const auto& [op, operand] = problem_.writers(tensor).front();
    options.combiner = problem_.space(op).outputs[static_cast<size_t>(operand)].combiner;
  }
  for (const auto& [op, operand] : problem_.readers(tensor)) {
    options.weight_gradient |=
        t.kind == TensorKind::gradient && problem_.graph().op(op).phase == Phase::update;
  }
  return options;
}

/// Nothing (no plan) if nobody reads or writes it.
TensorTasks GraphBuilder::make_tensor(TensorId tensor) {
  collect(tensor);
  TensorTasks out;
  if (writes_.empty() && reads_.empty()) return out;
  auto plan =
      std::make_shared<TensorPlan>(plan_redistribution(writes_, reads_, machine_, options_of(tensor)));
  for (const Step& step : plan->steps) out.prices.push_back(price_step(step, machine_));

  // A parameter's writers come last: what they write is for the next step, and every reader of the old value
  // goes first.
  Accesses accesses(*plan);
  const auto edge_to = [&out](TensorTasks::Node to) {
    return [&out, to](TensorTasks::Node from) { out.edges.emplace_back(from, to); };
  };
  const auto touch_runs = [&](const std::vector<Use>& uses, const std::vector<int32_t>& instances,
                              bool writes) {
    for (size_t i = 0; i < uses.size(); ++i) {
      if (instances[i] < 0) continue;
      const TensorTasks::Node task{uses[i].op.value, uses[i].run};
      accesses.touch(instances[i], task, writes, edge_to(task));
    }
  };
  const bool parameter = problem_.graph().tensor(tensor).kind == TensorKind::parameter;
  if (!parameter) touch_runs(write_places_, plan->write_instance, true);
  for (size_t s = 0; s < plan->steps.size(); ++s) {
    const TensorTasks::Node task{-1, static_cast<int32_t>(s)};
    for (int32_t i : plan->steps[s].in) accesses.touch(i, task, false, edge_to(task));
    for (int32_t i : plan->steps[s].out) accesses.touch(i, task, true, edge_to(task));
  }
  touch_runs(read_places_, plan->read_instance, false);
  if (parameter) touch_runs(write_places_, plan->write_instance, true);
  out.writes = write_places_;
  out.reads = read_places_;
  out.plan = std::move(plan);
  return out;
}

void GraphBuilder::add_tensor(TensorId tensor) {
  std::optional<TensorTasks> own;
  const TensorTasks* tasks = nullptr;
  if (homes_ != nullptr) {
    tasks = &own.emplace(make_tensor(tensor));
  } else {
    std::vector<int32_t> key;
    for (const auto& [op, operand] : problem_.writers(tensor)) key.push_back(config_numbers_[op.index()]);
    for (const auto& [op, operand] : problem_.readers(tensor)) key.push_back(config_numbers_[op.index()]);
    auto& recent = cache_.tensors[tensor.index()];
    tasks = recent.find(key);
    if (tasks == nullptr) tasks = &recent.add(std::move(key), make_tensor(tensor));
  }
  if (!tasks->plan) return;
  const TensorPlan& plan = *tasks->plan;
  for (size_t i = 0; i < tasks->writes.size(); ++i) place_of(tasks->writes[i]) = plan.write_instance[i];
  for (size_t i = 0; i < tasks->reads.size(); ++i) place_of(tasks->reads[i]) = plan.read_instance[i];
  const auto first_step = static_cast<int32_t>(out_.tasks.size());
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const StepPrice& price = tasks->prices[s];
    out_.tasks.push_back({Task::Kind::step, tensor.value, static_cast<int32_t>(s), price.duration});
    out_.resources.items.insert(out_.resources.items.end(), price.resources.begin(), price.resources.end());
    out_.resources.begin.push_back(static_cast<int32_t>(out_.resources.items.size()));
    out_.bytes_moved += price.bytes_moved;
  }
  const auto task = [&](TensorTasks::Node node) {
    return node.index + (node.op < 0 ? first_step : first_task_[static_cast<size_t>(node.op)]);
  };
  for (const auto& [from, to] : tasks->edges) edges_.emplace_back(task(from), task(to));
  out_.tensors[tensor.index()] = tasks->plan;
}

/// Sorts the edges by their ends, one of each, into the successors of every task.
void GraphBuilder::finish_edges() {
  const size_t n = out_.tasks.size();
  std::vector<int32_t> end(n + 1, 0);  // of each task's successors
  for (const auto& [from, to] : edges_) ++end[static_cast<size_t>(from) + 1];
  for (size_t i = 0; i < n; ++i) end[i + 1] += end[i];
  std::vector<int32_t> next(end.begin(), end.end() - 1), all(edges_.size());
  for (const auto& [from, to] : edges_) all[static_cast<size_t>(next[static_cast<size_t>(from)]++)] = to;
  out_.predecessors.assign(n, 0);
  out_.successors.begin.assign(1, 0);
  out_.successors.items.reserve(all.size());
  for (size_t i = 0; i < n; ++i) {
    const auto first = all.begin() + end[i], last = all.begin() + end[i + 1];
    std::sort(first, last);
    out_.successors.items.insert(out_.successors.items.end(), first, std::unique(first, last));
    out_.successors.begin.push_back(static_cast<int32_t>(out_.successors.items.size()));
  }
  for (int32_t to : out_.successors.items) ++out_.predecessors[static_cast<size_t>(to)];
}

KernelCost KernelCosts::largest_cell(const Problem& problem, const Machine& machine, CostModel& costs,
                                     OpId id, const std::vector<int32_t>& degrees) {
  std::string key(reinterpret_cast<const char*>(degrees.data()), degrees.size() * sizeof(int32_t));
  key.append(reinterpret_cast<const char*>(&id.value), sizeof id.value);
  const auto [it, added] = memo_.try_emplace(std::move(key));
  if (added) {
    const Graph& graph = problem.graph();
    const Op& op = graph.op(id);
    const Cell cell = cell_of(graph, op, problem.space(id), problem.largest_blocks(id, degrees));
    it->second = costs.kernel(kernel_of(graph, op, cell), work_of(graph, op, cell), op_def(op.type).family,
                              machine.kinds()[0]);
    FF_CHECK_GE(it->second.time, 1) << "cost of " << op.name;
  }
  return it->second;
}

}  // namespace ff
