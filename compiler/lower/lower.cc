#include "compiler/lower/lower.h"

#include <algorithm>
#include <map>

#include "compiler/base/check.h"
#include "compiler/lower/scratch.h"

namespace ff {
namespace {

class EntryLowering {
 public:
  EntryLowering(const std::string& name, const Problem& problem, const TaskGraph& tasks,
                const Timeline& timeline, const WorkspaceQuery& workspace, std::vector<Program>& programs,
                std::vector<std::vector<int32_t>>& groups)
      : graph_(problem.graph()),
        problem_(problem),
        tasks_(tasks),
        timeline_(timeline),
        workspace_(workspace),
        programs_(programs),
        groups_(groups),
        emitted_(tasks.tasks.size()),
        buffers_(tasks.tensors.size()),
        parents_(programs.size()),
        first_buffer_(programs.size()) {
    for (size_t t = 0; t < buffers_.size(); ++t) {
      if (tasks.tensors[t]) buffers_[t].assign(tasks.tensors[t]->instances.size(), -1);
    }
    predecessors_.resize(tasks.tasks.size());
    for (size_t t = 0; t < tasks.tasks.size(); ++t) {
      for (int32_t next : tasks.successors[t])
        predecessors_[static_cast<size_t>(next)].push_back(static_cast<int32_t>(t));
    }
    for (size_t d = 0; d < programs.size(); ++d) {
      first_buffer_[d] = programs[d].buffers.size();
      programs[d].entries.push_back({name, {}, {}});
    }
  }

  void run() {
    for (int32_t task : timeline_.order) emit(task);
    set_outputs();
    for (size_t d = 0; d < programs_.size(); ++d) {
      const std::vector<int32_t> complete = wait_for_all(entry(d));
      place_scratch(programs_[d], first_buffer_[d], parents_[d], complete);
    }
  }

 private:
  struct Emitted {
    int32_t device;
    int32_t instruction;
  };

  Entry& entry(size_t device) { return programs_[device].entries.back(); }

  static size_t root_of(const TensorPlan& plan, size_t instance, int64_t& offset) {
    while (plan.instances[instance].parent >= 0) {
      offset += plan.instances[instance].offset;
      instance = static_cast<size_t>(plan.instances[instance].parent);
    }
    return instance;
  }

  bool is_home(const Tensor& tensor, const TensorPlan& plan, size_t root) const {
    if (tensor.kind != TensorKind::parameter) return false;
    const auto& homes = plan.write_instance;
    return homes.empty() || std::find(homes.begin(), homes.end(), static_cast<int32_t>(root)) != homes.end();
  }

  /// The buffer of an instance, on its device; made when first asked for. A view's `offset` is relative until
  /// memory is planned.
  int32_t buffer(TensorId id, int32_t instance) {
    if (instance < 0) return -1;
    int32_t& number = buffers_[id.index()][static_cast<size_t>(instance)];
    if (number >= 0) return number;
    const TensorPlan& plan = *tasks_.tensors[id.index()];
    const Tensor& tensor = graph_.tensor(id);
    const Instance& i = plan.instances[static_cast<size_t>(instance)];
    int64_t offset = 0;
    const size_t root = root_of(plan, static_cast<size_t>(instance), offset);
    const int32_t parent =
        root == static_cast<size_t>(instance) ? -1 : buffer(id, static_cast<int32_t>(root));
    if (parent >= 0 && plan.instances[root].box == i.box) return number = parent;  // in place
    auto& buffers = programs_[i.device.index()].buffers;
    Buffer b;
    b.dtype = tensor.dtype;
    b.layout = tensor.shape.size() >= 3 ? tensor.layout : Layout::row_major;
    b.box = i.box;
    b.tensor = tensor.name;
    b.bytes = i.box.volume() * size_of(tensor.dtype);
    if (parent >= 0) {
      b.region = buffers[static_cast<size_t>(parent)].region;
      b.offset = offset * size_of(tensor.dtype);
    } else if (is_home(tensor, plan, root)) {
      return number = persistent(i.device.index(), b);
    } else if (tensor.kind == TensorKind::input) {
      b.origin = Origin::input;
    }
    number = static_cast<int32_t>(buffers.size());
    buffers.push_back(std::move(b));
    parents_[i.device.index()][number] = parent;
    return number;
  }

  /// Parameters are shared by all entries.
  int32_t persistent(size_t device, Buffer b) {
    Program& program = programs_[device];
    for (size_t i = 0; i < program.buffers.size(); ++i) {
      const Buffer& other = program.buffers[i];
      if (other.origin == Origin::parameter && other.tensor == b.tensor && other.box == b.box)
        return static_cast<int32_t>(i);
    }
    b.region = Region::persistent;
    b.origin = Origin::parameter;
    b.offset = program.persistent_bytes;
    program.persistent_bytes += (b.bytes + 63) / 64 * 64;
    program.buffers.push_back(std::move(b));
    return static_cast<int32_t>(program.buffers.size()) - 1;
  }

  void add(int32_t task, DeviceId device, Instruction instruction) {
    const auto t = static_cast<size_t>(task);
    auto& list = entry(device.index()).instructions;
    instruction.stream = asynchronous(instruction) ? Stream::comm : Stream::compute;
    instruction.start_ns = timeline_.start[t];
    instruction.duration_ns = tasks_.tasks[t].duration;
    for (int32_t before : predecessors_[t]) {
      for (const Emitted& e : emitted_[static_cast<size_t>(before)]) {
        if (e.device != device.value || !asynchronous(list[static_cast<size_t>(e.instruction)])) continue;
        instruction.waits.push_back(e.instruction);
      }
    }
    std::sort(instruction.waits.begin(), instruction.waits.end());
    emitted_[t].push_back({device.value, static_cast<int32_t>(list.size())});
    list.push_back(std::move(instruction));
  }

  void emit(int32_t task) {
    const Task& t = tasks_.tasks[static_cast<size_t>(task)];
    if (t.kind == Task::Kind::run) {
      emit_run(task, OpId(t.owner), static_cast<size_t>(t.index));
    } else {
      emit_step(task, TensorId(t.owner),
                tasks_.tensors[static_cast<size_t>(t.owner)]->steps[static_cast<size_t>(t.index)]);
    }
  }

  void emit_run(int32_t task, OpId id, size_t run) {
    const Op& op = graph_.op(id);
    const OpRuns& runs = tasks_.ops[id.index()];
    const CellRun& cell_run = runs.runs[run];
    const Cell cell =
        cell_of(graph_, op, problem_.space(id), problem_.blocks_of(id, runs.degrees, cell_run.addend));
    Instruction out;
    out.op = op.name;
    out.call = kernel_of(graph_, op, cell);
    const size_t operands = op.inputs.size() + op.outputs.size();
    bool writes = false;
    for (size_t k = 0; k < operands; ++k) {
      const TensorId tensor = k < op.inputs.size() ? op.inputs[k] : op.outputs[k - op.inputs.size()];
      const bool absent = is_absent(out.call.operands[k]);
      out.operands.push_back(absent ? -1 : buffer(tensor, runs.instances[run * operands + k]));
      FF_CHECK(absent || out.operands.back() >= 0)
          << "operand " << k << " of " << op.name << " has no buffer";
      writes |= !absent && out.call.operands[k].access != Access::in;
    }
    if (!writes) return;  // an empty share: nothing to do
    add_workspace(cell_run.device, out);
    add(task, cell_run.device, std::move(out));
  }

  void add_workspace(DeviceId device, Instruction& instruction) {
    const auto [it, added] = workspace_bytes_.try_emplace(to_string(instruction.call), 0);
    if (added) it->second = workspace_(instruction.call);
    if (it->second == 0) return;
    Buffer b;
    b.dtype = DType::u8;
    b.box = Box({0}, {it->second});
    b.bytes = it->second;
    auto& buffers = programs_[device.index()].buffers;
    instruction.workspace = static_cast<int32_t>(buffers.size());
    parents_[device.index()][instruction.workspace] = -1;
    buffers.push_back(std::move(b));
  }

  Operand operand(TensorId id, int32_t instance, Access access) const {
    const Tensor& t = graph_.tensor(id);
    return {t.dtype, t.shape.size() >= 3 ? t.layout : Layout::row_major, access,
            tasks_.tensors[id.index()]->instances[static_cast<size_t>(instance)].box.shape()};
  }

  void emit_step(int32_t task, TensorId id, const Step& step) {
    switch (step.kind) {
      case StepKind::message:
        return emit_message(task, id, step);
      case StepKind::fill:
      case StepKind::copy:
      case StepKind::sum:
        return emit_local(task, id, step);
      default:
        return emit_collective(task, id, step);
    }
  }

  void emit_local(int32_t task, TensorId id, const Step& step) {
    Instruction out;
    out.op = graph_.tensor(id).name;
    for (int32_t i : step.in) {
      out.call.operands.push_back(operand(id, i, Access::in));
      out.operands.push_back(buffer(id, i));
    }
    out.call.operands.push_back(
        operand(id, step.out[0], step.kind == StepKind::copy ? Access::inout : Access::out));
    out.operands.push_back(buffer(id, step.out[0]));
    if (step.kind == StepKind::fill) {
      out.call.kernel = "Fill";
    } else if (step.kind == StepKind::sum) {
      out.call.kernel = combines_by_max(id) ? "CombineMax" : "CombineSum";
    } else {
      out.call.kernel = "CopyBox";
      const auto& instances = tasks_.tensors[id.index()]->instances;
      const Box& from = instances[static_cast<size_t>(step.in[0])].box;
      const Box& to = instances[static_cast<size_t>(step.out[0])].box;
      const Box common = intersect(from, to);
      if (common == to) out.call.operands.back().access = Access::out;
      Ints source;
      Ints target;
      for (int axis = 0; axis < common.rank(); ++axis) {
        source.push_back(common[axis].lo - from[axis].lo);
        target.push_back(common[axis].lo - to[axis].lo);
      }
      out.call.attributes = {{"extent", common.shape()}, {"src_lo", source}, {"dst_lo", target}};
    }
    add(task, step.group[0], std::move(out));
  }

  bool combines_by_max(TensorId id) const {
    const auto& writers = problem_.writers(id);
    if (writers.empty()) return false;
    const auto& [op, operand] = writers.front();
    return problem_.space(op).outputs[static_cast<size_t>(operand)].combiner == Combiner::max;
  }

  void emit_message(int32_t task, TensorId id, const Step& step) {
    const int32_t tag = next_tag_++;
    Instruction send;
    send.kind = InstructionKind::send;
    send.op = graph_.tensor(id).name;
    send.tag = tag;
    send.peer = step.group[1].value;
    send.operands = {buffer(id, step.in[0])};
    add(task, step.group[0], std::move(send));
    Instruction receive;
    receive.kind = InstructionKind::receive;
    receive.op = graph_.tensor(id).name;
    receive.tag = tag;
    receive.peer = step.group[0].value;
    receive.operands = {buffer(id, step.out[0])};
    add(task, step.group[1], std::move(receive));
  }

  int32_t group_of(const std::vector<DeviceId>& devices) {
    std::vector<int32_t> ranks;
    ranks.reserve(devices.size());
    for (DeviceId d : devices) ranks.push_back(d.value);
    const auto at = std::find(groups_.begin(), groups_.end(), ranks);
    if (at != groups_.end()) return static_cast<int32_t>(at - groups_.begin());
    groups_.push_back(std::move(ranks));
    return static_cast<int32_t>(groups_.size()) - 1;
  }

  void emit_collective(int32_t task, TensorId id, const Step& step) {
    Instruction out;
    out.op = graph_.tensor(id).name;
    out.group = group_of(step.group);
    out.combine_max = combines_by_max(id);
    const auto& instances = tasks_.tensors[id.index()]->instances;
    const auto count_all = [&](const std::vector<int32_t>& list) {
      for (int32_t i : list) out.counts.push_back(instances[static_cast<size_t>(i)].box.volume());
    };
    switch (step.kind) {
      case StepKind::all_reduce:
        out.kind = InstructionKind::all_reduce;
        break;
      case StepKind::reduce_scatter:
        out.kind = InstructionKind::reduce_scatter;
        count_all(step.out);
        break;
      case StepKind::all_gather:
        out.kind = InstructionKind::all_gather;
        count_all(step.in);
        break;
      default:
        out.kind = InstructionKind::broadcast;
        break;
    }
    for (size_t member = 0; member < step.group.size(); ++member) {
      Instruction mine = out;
      if (step.kind == StepKind::broadcast) {
        mine.operands = {buffer(id, step.out[member])};
      } else {
        mine.operands = {buffer(id, step.in[member]), buffer(id, step.out[member])};
      }
      add(task, step.group[member], std::move(mine));
    }
  }

  void set_outputs() {
    const auto keep = [&](TensorId id) {
      if (!id.valid() || !tasks_.tensors[id.index()]) return;
      const TensorPlan& plan = *tasks_.tensors[id.index()];
      const auto whole = Box::whole(graph_.tensor(id).shape);
      for (int32_t i : plan.read_instance) {
        if (i < 0) continue;
        const Instance& instance = plan.instances[static_cast<size_t>(i)];
        auto& outputs = entry(0).outputs;
        if (instance.device.value != 0 || instance.box != whole) continue;
        const int32_t b = buffer(id, i);
        if (std::find(outputs.begin(), outputs.end(), b) == outputs.end()) outputs.push_back(b);
        break;
      }
    };
    keep(graph_.loss);
    const bool trains = std::any_of(graph_.ops.begin(), graph_.ops.end(),
                                    [](const Op& op) { return op.phase == Phase::update; });
    if (trains) return;
    for (TensorId id : graph_.outputs) keep(id);
  }

  const Graph& graph_;
  const Problem& problem_;
  const TaskGraph& tasks_;
  const Timeline& timeline_;
  const WorkspaceQuery& workspace_;
  std::vector<Program>& programs_;
  std::vector<std::vector<int32_t>>& groups_;
  std::vector<std::vector<int32_t>> predecessors_;
  std::vector<std::vector<Emitted>> emitted_;        // by task
  std::vector<std::vector<int32_t>> buffers_;        // by tensor and instance
  std::vector<std::map<int32_t, int32_t>> parents_;  // by device: of a scratch buffer or view; -1: a root
  std::vector<size_t> first_buffer_;                 // of this entry, by device
  std::map<std::string, int64_t> workspace_bytes_;
  int32_t next_tag_ = 0;
};

}  // namespace

void lower_entry(const std::string& name, const Problem& problem, const TaskGraph& tasks,
                 const Timeline& timeline, const WorkspaceQuery& workspace, std::vector<Program>& programs,
                 std::vector<std::vector<int32_t>>& groups) {
  EntryLowering(name, problem, tasks, timeline, workspace, programs, groups).run();
}

Homes homes_of(const Problem& problem, const TaskGraph& tasks, const Graph& other) {
  std::map<std::string, size_t> numbers;
  for (size_t t = 0; t < other.tensors.size(); ++t) numbers.emplace(other.tensors[t].name, t);
  Homes homes(other.tensors.size());
  for (size_t t = 0; t < tasks.tensors.size(); ++t) {
    const Tensor& tensor = problem.graph().tensors[t];
    if (tensor.kind != TensorKind::parameter || !tasks.tensors[t]) continue;
    const auto it = numbers.find(tensor.name);
    if (it == numbers.end()) continue;
    const TensorPlan& plan = *tasks.tensors[t];
    std::map<Box, int32_t> addends;
    for (int32_t i : plan.write_instance) {
      if (i < 0) continue;
      const Instance& home = plan.instances[static_cast<size_t>(i)];
      const int32_t addend =
          addends.try_emplace(home.box, static_cast<int32_t>(addends.size())).first->second;
      homes[it->second].push_back({0, addend, home.device, home.box});
    }
  }
  return homes;
}

}  // namespace ff
