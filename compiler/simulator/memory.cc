#include "compiler/simulator/memory.h"

#include <algorithm>

namespace ff {
namespace {

/// Calls visit(tensor, instance) for every instance that a task reads or writes.
template <typename F>
void for_each_instance(const Problem& problem, const TaskGraph& graph, const Task& task, F visit) {
  if (task.kind == Task::Kind::step) {
    const Step& step = graph.tensors[static_cast<size_t>(task.owner)]->steps[static_cast<size_t>(task.index)];
    for (int32_t i : step.in) visit(task.owner, i);
    for (int32_t i : step.out) visit(task.owner, i);
    return;
  }
  const Op& op = problem.graph().ops[static_cast<size_t>(task.owner)];
  const OpRuns& runs = graph.ops[static_cast<size_t>(task.owner)];
  const size_t operands = op.inputs.size() + op.outputs.size();
  for (size_t k = 0; k < operands; ++k) {
    const TensorId tensor = k < op.inputs.size() ? op.inputs[k] : op.outputs[k - op.inputs.size()];
    const int32_t instance = runs.instances[static_cast<size_t>(task.index) * operands + k];
    if (instance >= 0) visit(tensor.value, instance);
  }
}

}  // namespace

int64_t buffer_bytes(const Box& box, DType dtype) { return (box.volume() * size_of(dtype) + 63) / 64 * 64; }

bool is_home(const TensorPlan& plan, TensorKind kind, int32_t root) {
  const auto& homes = plan.write_instance;
  return kind == TensorKind::parameter &&
         (homes.empty() || std::find(homes.begin(), homes.end(), root) != homes.end());
}

std::vector<Lifetime> lifetimes(const Problem& problem, const TaskGraph& graph, const Timeline& timeline) {
  std::vector<std::vector<int32_t>> numbers(graph.tensors.size());  // of each instance's lifetime
  for (size_t t = 0; t < numbers.size(); ++t) {
    if (graph.tensors[t]) numbers[t].assign(graph.tensors[t]->instances.size(), -1);
  }
  std::vector<Lifetime> out;
  for (size_t place = 0; place < timeline.order.size(); ++place) {
    const Task& task = graph.tasks[static_cast<size_t>(timeline.order[place])];
    for_each_instance(problem, graph, task, [&](int32_t tensor, int32_t instance) {
      const TensorPlan& plan = *graph.tensors[static_cast<size_t>(tensor)];
      const int32_t root = plan.root(instance);
      int32_t& number = numbers[static_cast<size_t>(tensor)][static_cast<size_t>(root)];
      if (number < 0) {
        number = static_cast<int32_t>(out.size());
        const Tensor& t = problem.graph().tensors[static_cast<size_t>(tensor)];
        const Instance& i = plan.instances[static_cast<size_t>(root)];
        const int32_t first = t.kind == TensorKind::input ? 0 : static_cast<int32_t>(place);
        out.push_back(
            {tensor, root, i.device, buffer_bytes(i.box, t.dtype), is_home(plan, t.kind, root), first, 0});
      }
      out[static_cast<size_t>(number)].last = static_cast<int32_t>(place);
    });
  }
  // The loss and the model's outputs are read when the step is over.
  const auto keep = [&](TensorId id) {
    if (!id.valid()) return;
    for (Lifetime& l : out) {
      if (l.tensor == id.value) l.last = static_cast<int32_t>(timeline.order.size());
    }
  };
  keep(problem.graph().loss);
  for (TensorId id : problem.graph().outputs) keep(id);
  return out;
}

std::vector<int64_t> peak_bytes(const Problem& problem, const Machine& machine, const TaskGraph& graph,
                                const Timeline& timeline) {
  const auto devices = static_cast<size_t>(machine.num_devices());
  std::vector<int64_t> live(devices, 0);
  struct Event {
    int32_t place;
    int32_t device;
    int64_t bytes;
  };
  std::vector<Event> events;
  for (const Lifetime& l : lifetimes(problem, graph, timeline)) {
    if (l.persistent) {
      live[l.device.index()] += l.bytes;
      continue;
    }
    events.push_back({l.first, l.device.value, l.bytes});
    events.push_back({l.last + 1, l.device.value, -l.bytes});
  }
  for (size_t place = 0; place < timeline.order.size(); ++place) {
    const auto t = static_cast<size_t>(timeline.order[place]);
    const Task& task = graph.tasks[t];
    if (task.kind != Task::Kind::run) continue;
    const int64_t workspace = graph.ops[static_cast<size_t>(task.owner)].cost.workspace_bytes;
    if (workspace == 0) continue;
    events.push_back({static_cast<int32_t>(place), graph.resources[t][0], workspace});
    events.push_back({static_cast<int32_t>(place) + 1, graph.resources[t][0], -workspace});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return a.place != b.place ? a.place < b.place : a.bytes < b.bytes;
  });
  std::vector<int64_t> peak = live;
  for (const Event& e : events) {
    int64_t& now = live[static_cast<size_t>(e.device)];
    now += e.bytes;
    peak[static_cast<size_t>(e.device)] = std::max(peak[static_cast<size_t>(e.device)], now);
  }
  return peak;
}

}  // namespace ff
