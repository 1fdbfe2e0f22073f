// The parts of task graphs: runs of ops and redistributions of tensors, made when first asked for.

#include "compiler/simulator/parts.h"

#include <algorithm>

#include "compiler/base/check.h"
#include "compiler/base/rng.h"
#include "compiler/simulator/memory.h"

namespace ff {
namespace {

/// Takes integers in, one after the other, and gives their key.
class Mixer {
 public:
  Mixer& add(int64_t value) {
    a_ = mix64(a_ ^ static_cast<uint64_t>(value));
    b_ = mix64(b_ + 0x9E3779B97F4A7C15ULL * (static_cast<uint64_t>(value) + 1));
    return *this;
  }
  Mixer& add(const PartKey& key) { return add(static_cast<int64_t>(key.a)).add(static_cast<int64_t>(key.b)); }
  template <typename T>
  Mixer& add_all(const std::vector<T>& values) {
    add(static_cast<int64_t>(values.size()));
    for (const T& value : values) add(value);
    return *this;
  }
  PartKey key() const { return {a_, b_}; }

 private:
  uint64_t a_ = 0x243F6A8885A308D3ULL, b_ = 0x13198A2E03707344ULL;
};

void mix(Mixer& mixer, const AccessMap& map) {
  mixer.add(static_cast<int64_t>(map.axes.size()));
  for (const AxisMap& axis : map.axes) mixer.add(axis.dim).add(axis.stride).add(axis.offset).add(axis.span);
  mixer.add(static_cast<int64_t>(map.combiner)).add(map.first_block_of);
}

/// All that the boxes of an op's runs depend on, beside its leader's config.
PartKey class_of(const Problem& problem, OpId id) {
  const Op& op = problem.graph().op(id);
  const OpSpace& space = problem.space(id);
  Mixer mixer;
  mixer.add(static_cast<int64_t>(space.dims.size()));
  for (const IterDim& dim : space.dims) mixer.add(dim.extent);
  for (const AccessMap& map : space.inputs) mix(mixer, map);
  for (const AccessMap& map : space.outputs) mix(mixer, map);
  for (int dim : problem.leader_dims(id)) mixer.add(dim);
  mixer.add(op.stage_of.valid()).add(problem.stage_mask(op.stage_of.valid() ? op.stage_of : id));
  return mixer.key();
}

/// Nodes that read and write each buffer so far. A view's accesses count for the instance that it is a part
/// of.
class Accesses {
 public:
  explicit Accesses(const TensorPlan& plan) : plan_(plan), touches_(plan.instances.size()) {}

  /// Records an access, after adding an edge from every earlier one that it must follow: writes of common
  /// elements, and reads as well if this is a write.
  void touch(int32_t instance, TensorPart::Node node, bool writes) {
    const Box& box = plan_.instances[static_cast<size_t>(instance)].box;
    const int32_t root = plan_.root(instance);
    auto& [written, read] = touches_[static_cast<size_t>(root)];
    const auto follow = [&](const std::vector<Touch>& list) {
      for (const Touch& t : list) {
        if (t.node != node && (t.box == &box || !intersect(*t.box, box).empty()))
          edges.emplace_back(t.node, node);
      }
    };
    follow(written);
    if (writes) follow(read);
    (writes ? written : read).push_back({&box, node});
    touched.emplace_back(node, root);
  }

  std::vector<std::pair<TensorPart::Node, TensorPart::Node>> edges;
  std::vector<std::pair<TensorPart::Node, int32_t>> touched;  // roots

 private:
  struct Touch {
    const Box* box;
    TensorPart::Node node;
  };
  struct Touches {
    std::vector<Touch> written, read;
  };
  const TensorPlan& plan_;
  std::vector<Touches> touches_;
};

/// Sums of counts: where each row begins.
void add_up(std::vector<int32_t>& begin) {
  for (size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
}

/// The second halves of `pairs` in rows by the node that comes first: each row sorted, one of each.
template <typename T>
void make_rows(const TensorPart& part, const std::vector<std::pair<TensorPart::Node, T>>& pairs,
               std::vector<int32_t>& begin, std::vector<T>& items) {
  begin.assign(static_cast<size_t>(part.first.back()) + 1, 0);
  for (const auto& [node, other] : pairs) ++begin[part.node(node.owner, node.index) + 1];
  add_up(begin);
  items.resize(pairs.size());
  std::vector<int32_t> next(begin.begin(), begin.end() - 1);
  for (const auto& [node, other] : pairs)
    items[static_cast<size_t>(next[part.node(node.owner, node.index)]++)] = other;
  auto out = items.begin();
  for (size_t row = 0; row + 1 < begin.size(); ++row) {
    const auto from = items.begin() + begin[row], to = items.begin() + begin[row + 1];
    std::sort(from, to);
    begin[row] = static_cast<int32_t>(out - items.begin());
    out = std::move(from, std::unique(from, to), out);
  }
  begin.back() = static_cast<int32_t>(out - items.begin());
  items.erase(out, items.end());
}

/// The rows of successors turned about.
void make_predecessors(TensorPart& part) {
  part.predecessor_begin.assign(part.successor_begin.size(), 0);
  for (const TensorPart::Node& to : part.successors)
    ++part.predecessor_begin[part.node(to.owner, to.index) + 1];
  add_up(part.predecessor_begin);
  part.predecessors.resize(part.successors.size());
  std::vector<int32_t> next(part.predecessor_begin.begin(), part.predecessor_begin.end() - 1);
  for (int32_t owner = 0; owner + 1 < static_cast<int32_t>(part.first.size()); ++owner) {
    const auto o = static_cast<size_t>(owner);
    for (int32_t index = 0; index < part.first[o + 1] - part.first[o]; ++index) {
      for (const TensorPart::Node& to : part.successors_of(owner, index))
        part.predecessors[static_cast<size_t>(next[part.node(to.owner, to.index)]++)] = {owner, index};
    }
  }
}

void set_buffers(TensorPart& part, const Tensor& tensor,
                 const std::vector<std::pair<TensorPart::Node, int32_t>>& touched) {
  const TensorPlan& plan = *part.plan;
  make_rows(part, touched, part.touched.begin, part.touched.items);
  std::vector<int32_t> number(plan.instances.size(), -1);
  for (int32_t& item : part.touched.items) {
    int32_t& n = number[static_cast<size_t>(item)];
    if (n < 0) {
      n = static_cast<int32_t>(part.buffers.size());
      const Instance& instance = plan.instances[static_cast<size_t>(item)];
      part.buffers.push_back({instance.device, item, buffer_bytes(instance.box, tensor.dtype),
                              is_home(plan, tensor.kind, item), 0});
    }
    ++part.buffers[static_cast<size_t>(n)].touches;
    item = n;
  }
}

size_t weight_of(const TensorPart& part) {
  return sizeof(TensorPart) +
         (part.plan ? part.plan->steps.size() * 200 + part.plan->instances.size() * sizeof(Instance) : 0) +
         part.successors.size() * 16 +
         (part.touched.items.size() + part.writes.size() + part.reads.size()) * 16;
}

constexpr size_t kOpCapacity = size_t{16} << 20;  // bytes of a generation
constexpr size_t kTensorCapacity = size_t{128} << 20;

}  // namespace

PartKey key_of(const Config& config) {
  Mixer mixer;
  mixer.add_all(config.degrees).add(config.replicas).add(static_cast<int64_t>(config.devices.size()));
  for (DeviceId device : config.devices) mixer.add(device.value);
  return mixer.key();
}

std::vector<PartKey> keys_of(const Problem& problem, const Strategy& strategy) {
  std::vector<PartKey> keys(problem.graph().ops.size());
  for (OpId leader : problem.leaders()) {
    const PartKey key = key_of(strategy.configs[leader.index()]);
    for (OpId op : problem.followers(leader)) keys[op.index()] = key;
  }
  return keys;
}

struct Parts::Collected {
  std::vector<TensorWrite> writes;
  std::vector<TensorRead> reads;
  std::vector<TensorPart::Use> write_uses, read_uses;
};

Parts::Parts(const Problem& problem, const Machine& machine, CostModel& costs)
    : problem_(problem), machine_(machine), costs_(costs), ops_(kOpCapacity), tensors_(kTensorCapacity) {
  classify();
}

void Parts::classify() {
  const Graph& graph = problem_.graph();
  const bool trains =
      std::any_of(graph.ops.begin(), graph.ops.end(), [](const Op& op) { return op.phase == Phase::update; });
  results_.assign(graph.tensors.size(), 0);
  if (graph.loss.valid()) results_[graph.loss.index()] = 1;
  if (!trains) {
    for (TensorId id : graph.outputs) results_[id.index()] = 1;
  }
  std::vector<PartKey> op_classes;
  for (size_t i = 0; i < graph.ops.size(); ++i)
    op_classes.push_back(class_of(problem_, OpId(static_cast<int64_t>(i))));
  participants_.resize(graph.tensors.size());
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    const TensorId id(static_cast<int64_t>(i));
    const Tensor& t = graph.tensors[i];
    Mixer mixer;
    mixer.add_all(t.shape).add(static_cast<int64_t>(t.dtype)).add(static_cast<int64_t>(t.layout));
    mixer.add(static_cast<int64_t>(t.kind)).add(results_[i]);
    std::vector<OpId>& list = participants_[i];
    const auto visit = [&](const std::vector<std::pair<OpId, int>>& uses) {
      mixer.add(static_cast<int64_t>(uses.size()));
      for (const auto& [op, operand] : uses) {
        const auto at = std::find(list.begin(), list.end(), op) - list.begin();
        if (at == static_cast<std::ptrdiff_t>(list.size())) list.push_back(op);
        mixer.add(at).add(operand).add(op_classes[op.index()]);
        mixer.add(static_cast<int64_t>(graph.op(op).inputs.size()));
        mixer.add(static_cast<int64_t>(graph.op(op).outputs.size()));
        mixer.add(static_cast<int64_t>(graph.op(op).phase));
      }
    };
    visit(problem_.writers(id));
    visit(problem_.readers(id));
    classes_.push_back(mixer.key());
  }
}

std::shared_ptr<const OpRuns> Parts::op(OpId id, const Config& config, const PartKey& key) {
  const PartKey full = Mixer().add(id.value).add(key).key();
  if (auto known = ops_.find(full)) return known;
  auto op = std::make_shared<OpRuns>();
  op->active = problem_.active(id, config);
  if (op->active) {
    op->degrees = problem_.degrees_of(id, config);
    op->runs = problem_.runs_of(id, config);
    op->cost = kernels_.largest_cell(problem_, machine_, costs_, id, op->degrees);
    for (const CellRun& run : op->runs) op->devices.push_back(run.device.value);
  }
  ops_.add(full, op, sizeof(OpRuns) + op->runs.size() * (sizeof(CellRun) + sizeof(int32_t)) + 128);
  return op;
}

Parts::Collected Parts::collect(TensorId id, std::span<const std::shared_ptr<const OpRuns>> runs,
                                const std::vector<TensorWrite>* homes) const {
  Collected out;
  const Tensor& t = problem_.graph().tensor(id);
  const auto& list = participants_[id.index()];
  std::vector<Range> blocks;
  const auto visit = [&](OpId op_id, int operand, bool output) {
    const OpRuns& op = *runs[op_id.index()];
    if (!op.active) return;
    const Op& node = problem_.graph().op(op_id);
    const OpSpace& space = problem_.space(op_id);
    const AccessMap& map = (output ? space.outputs : space.inputs)[static_cast<size_t>(operand)];
    const auto operands = static_cast<int32_t>(node.inputs.size() + node.outputs.size());
    const int32_t place = output ? static_cast<int32_t>(node.inputs.size()) + operand : operand;
    const auto owner = static_cast<int32_t>(std::find(list.begin(), list.end(), op_id) - list.begin()) + 1;
    for (size_t r = 0; r < op.runs.size(); ++r) {
      problem_.blocks_of(op_id, op.degrees, op.runs[r].addend, blocks);
      const Box box = region(map, t.shape, blocks);
      const TensorPart::Use use{owner, static_cast<int32_t>(r), static_cast<int32_t>(r) * operands + place};
      if (output) {
        out.writes.push_back({op_id.value, op.runs[r].addend, op.runs[r].device, box});
        out.write_uses.push_back(use);
      } else {
        out.reads.push_back({op.runs[r].device, box});
        out.read_uses.push_back(use);
      }
    }
  };
  if (homes != nullptr) {
    out.writes = *homes;
  } else {
    for (const auto& [op, operand] : problem_.writers(id)) visit(op, operand, true);
  }
  for (const auto& [op, operand] : problem_.readers(id)) visit(op, operand, false);
  if (is_result(id)) out.reads.push_back({DeviceId(0), Box::whole(t.shape)});
  return out;
}

RedistributionOptions Parts::options_of(TensorId id, bool written, bool written_by_ops) const {
  const Tensor& t = problem_.graph().tensor(id);
  RedistributionOptions options;
  options.dtype = t.dtype;
  options.layout = t.layout;
  options.holes_are_zero = t.kind == TensorKind::gradient;
  options.available_everywhere = t.kind == TensorKind::input || (t.kind == TensorKind::parameter && !written);
  if (written_by_ops) {
    const auto& [op, operand] = problem_.writers(id).front();
    options.combiner = problem_.space(op).outputs[static_cast<size_t>(operand)].combiner;
  }
  for (const auto& [op, operand] : problem_.readers(id)) {
    options.weight_gradient |=
        t.kind == TensorKind::gradient && problem_.graph().op(op).phase == Phase::update;
  }
  return options;
}

TensorPart Parts::make_tensor(TensorId id, std::span<const std::shared_ptr<const OpRuns>> runs,
                              const std::vector<TensorWrite>* homes) const {
  Collected c = collect(id, runs, homes);
  TensorPart out;
  out.first.push_back(0);
  if (c.writes.empty() && c.reads.empty()) {
    out.first.resize(participants_[id.index()].size() + 2, 0);
    out.successor_begin.assign(1, 0);
    out.predecessor_begin.assign(1, 0);
    return out;
  }
  const Tensor& tensor = problem_.graph().tensor(id);
  const auto plan = std::make_shared<TensorPlan>(plan_redistribution(
      c.writes, c.reads, machine_, options_of(id, !c.writes.empty(), !c.write_uses.empty())));
  out.plan = plan;
  for (const Step& step : plan->steps) {
    const StepPrice price = price_step(step, machine_);
    out.durations.push_back(price.duration);
    out.resources.items.insert(out.resources.items.end(), price.resources.begin(), price.resources.end());
    out.resources.begin.push_back(static_cast<int32_t>(out.resources.items.size()));
    out.bytes_moved += price.bytes_moved;
  }
  out.first.push_back(out.steps());
  for (OpId op : participants_[id.index()])
    out.first.push_back(out.first.back() + static_cast<int32_t>(runs[op.index()]->runs.size()));

  // A parameter's writers come last: what they write is for the next step, and every reader of the old value
  // goes first.
  Accesses accesses(*plan);
  const auto touch_runs = [&](const std::vector<TensorPart::Use>& uses, const std::vector<int32_t>& instances,
                              bool writes) {
    for (size_t i = 0; i < uses.size(); ++i) {
      if (instances[i] >= 0) accesses.touch(instances[i], {uses[i].owner, uses[i].run}, writes);
    }
  };
  const bool parameter = tensor.kind == TensorKind::parameter;
  if (!parameter) touch_runs(c.write_uses, plan->write_instance, true);
  for (size_t s = 0; s < plan->steps.size(); ++s) {
    const TensorPart::Node node{0, static_cast<int32_t>(s)};
    for (int32_t i : plan->steps[s].in) accesses.touch(i, node, false);
    for (int32_t i : plan->steps[s].out) accesses.touch(i, node, true);
  }
  touch_runs(c.read_uses, plan->read_instance, false);
  if (parameter) touch_runs(c.write_uses, plan->write_instance, true);
  make_rows(out, accesses.edges, out.successor_begin, out.successors);
  make_predecessors(out);
  set_buffers(out, tensor, accesses.touched);
  out.writes = std::move(c.write_uses);
  out.reads = std::move(c.read_uses);
  return out;
}

std::shared_ptr<const TensorPart> Parts::tensor(TensorId id,
                                                std::span<const std::shared_ptr<const OpRuns>> runs,
                                                std::span<const PartKey> keys,
                                                const std::vector<TensorWrite>* homes) {
  if (homes != nullptr) return std::make_shared<TensorPart>(make_tensor(id, runs, homes));
  Mixer mixer;
  mixer.add(classes_[id.index()]);
  for (OpId op : participants_[id.index()]) mixer.add(keys[op.index()]);
  const PartKey key = mixer.key();
  if (auto known = tensors_.find(key)) return known;
  auto part = std::make_shared<TensorPart>(make_tensor(id, runs, nullptr));
  tensors_.add(key, part, weight_of(*part));
  return part;
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
