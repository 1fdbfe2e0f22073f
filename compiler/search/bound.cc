#include "compiler/search/bound.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "compiler/base/check.h"

namespace ff {
namespace {

constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

}  // namespace

LowerBound::LowerBound(const Problem& problem, const Machine& machine, CostModel& costs, Space space)
    : problem_(problem),
      machine_(machine),
      parts_(problem, machine, costs),
      least_(least_costs(problem, machine, costs, space)) {
  const size_t ops = problem.graph().ops.size(), tensors = problem.graph().tensors.size();
  attachments_.resize(ops);
  place_.resize(ops);
  set_.assign(ops, 0);
  runs_.resize(ops);
  keys_.resize(ops);
  touched_.resize(ops);
  run_ends_.resize(ops);
  form_ends_.resize(ops);
  writers_.resize(tensors);
  free_participants_.assign(tensors, 0);
  tensors_.resize(tensors);
  step_ends_.resize(tensors);
  work_.assign(static_cast<size_t>(2 * machine.num_devices() + machine.num_links()), 0);
  attach();
}

void LowerBound::attach() {
  const Graph& graph = problem_.graph();
  for (OpId leader : problem_.leaders()) {
    const auto& followers = problem_.followers(leader);
    for (size_t i = 0; i < followers.size(); ++i) {
      place_[followers[i].index()] = i;
      form_ends_[followers[i].index()].assign(least_[leader.index()]->forms.size(), 0);
    }
    free_work_ += least_[leader.index()]->work;
  }
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    const TensorId tensor(static_cast<int64_t>(t));
    const auto& participants = parts_.participants(tensor);
    free_participants_[t] = static_cast<int32_t>(participants.size());
    for (size_t p = 0; p < participants.size(); ++p)
      attachments_[participants[p].index()].push_back({tensor, static_cast<int32_t>(p) + 1, 0, false});
    for (const auto& [op, input] : problem_.readers(tensor)) {
      auto& list = attachments_[op.index()];
      const auto at =
          std::find_if(list.begin(), list.end(), [&](const auto& a) { return a.tensor == tensor; });
      at->reads = true;
      if (input < 64) at->inputs |= uint64_t{1} << input;
    }
    if (graph.tensors[t].kind == TensorKind::parameter) continue;  // what is written is for the next step
    for (const auto& [op, output] : problem_.writers(tensor)) {
      const OpId leader = graph.op(op).config_of;
      if (writers_[t].empty() || writers_[t].back().leader != leader) writers_[t].push_back({leader, {}});
      writers_[t].back().ops.emplace_back(place_[op.index()], static_cast<size_t>(output));
    }
  }
}

void LowerBound::count(const OpRuns& runs, int sign) {
  for (int32_t device : runs.devices) work_[static_cast<size_t>(device)] += sign * runs.cost.time;
}

void LowerBound::count(const TensorPart& part, int sign) {
  for (size_t s = 0; s < part.durations.size(); ++s) {
    for (int32_t r : part.resources[s]) work_[static_cast<size_t>(r)] += sign * part.durations[s];
  }
}

void LowerBound::drop_parts(OpId op) {
  for (const Attachment& a : attachments_[op.index()]) {
    if (free_participants_[a.tensor.index()]++ > 0) continue;
    auto& part = tensors_[a.tensor.index()];
    count(*part, -1);
    part = nullptr;
  }
}

void LowerBound::set(OpId leader, const Config& config) {
  if (is_set(leader)) clear(leader);
  set_[leader.index()] = 1;
  free_work_ -= least_[leader.index()]->work;
  const PartKey key = key_of(config);
  const auto& followers = problem_.followers(leader);
  for (OpId op : followers) {
    keys_[op.index()] = key;
    runs_[op.index()] = parts_.op(op, config, key);
    const OpRuns& runs = *runs_[op.index()];
    if (runs.active) touched_[op.index()] = touched_by(problem_, op, runs.degrees);
    count(runs, 1);
  }
  for (OpId op : followers) {
    for (const Attachment& a : attachments_[op.index()]) {
      if (--free_participants_[a.tensor.index()] > 0) continue;
      auto& part = tensors_[a.tensor.index()];
      part = parts_.tensor(a.tensor, runs_, keys_);
      count(*part, 1);
    }
  }
}

void LowerBound::clear(OpId leader) {
  if (!is_set(leader)) return;
  set_[leader.index()] = 0;
  free_work_ += least_[leader.index()]->work;
  for (OpId op : problem_.followers(leader)) {
    drop_parts(op);
    count(*runs_[op.index()], -1);
    runs_[op.index()] = nullptr;
  }
}

Nanoseconds LowerBound::value(const Strategy& partial) {
  for (OpId leader : problem_.leaders()) {
    const Config& config = partial.configs[leader.index()];
    if (config.devices.empty()) {
      clear(leader);
    } else {
      set(leader, config);
    }
  }
  return value();
}

/// The end of one node of a tensor's part: a step, or a run.
Nanoseconds LowerBound::end_of(TensorId tensor, const TensorPart::Node& node) const {
  const auto index = static_cast<size_t>(node.index);
  if (node.owner == 0) return step_ends_[tensor.index()][index];
  const OpId op = parts_.participants(tensor)[static_cast<size_t>(node.owner) - 1];
  return run_ends_[op.index()][index];
}

Nanoseconds LowerBound::start_of(TensorId tensor, int32_t owner, int32_t index) const {
  Nanoseconds start = 0;
  for (const auto& before : tensors_[tensor.index()]->predecessors_of(owner, index))
    start = std::max(start, end_of(tensor, before));
  return start;
}

/// Ends of a tensor's steps, from those of the runs before them.
void LowerBound::pass_tensor(TensorId tensor) {
  auto& passed = passed_[tensor.index()];
  if (passed) return;
  passed = 1;
  const TensorPart& part = *tensors_[tensor.index()];
  auto& ends = step_ends_[tensor.index()];
  ends.assign(part.durations.size(), 0);
  for (int32_t s = 0; s < part.steps(); ++s) {
    const auto step = static_cast<size_t>(s);
    const Nanoseconds start = start_of(tensor, 0, s);
    ends[step] = start + part.durations[step];
    path_ = std::max(path_, ends[step]);
    for (int32_t r : part.resources[step]) loads_.push_back({r, start, part.durations[step]});
  }
}

/// The earliest end of what a free leader's ops write of a tensor under one form; 0 if none writes all of it.
Nanoseconds LowerBound::end_of_form(const Writers& writers, size_t form) const {
  Nanoseconds end = 0;
  const auto& ops = least_[writers.leader.index()]->forms[form].ops;
  for (const auto& [place, output] : writers.ops) {
    if (!ops[place].active || output >= 64 || ((ops[place].covers >> output) & 1U) == 0) continue;
    const OpId op = problem_.followers(writers.leader)[place];
    end = std::max(end, form_ends_[op.index()][form]);
  }
  return end;
}

/// When any element of a tensor can be read at the earliest, by an op under this form of its leader.
Nanoseconds LowerBound::available(TensorId tensor, OpId reader, size_t form) const {
  Nanoseconds at = 0;
  for (const Writers& writers : writers_[tensor.index()]) {
    Nanoseconds end = 0;
    if (is_set(writers.leader)) {
      for (const auto& [place, output] : writers.ops) {
        const OpId op = problem_.followers(writers.leader)[place];
        if (!runs_[op.index()]->active || output >= 64) continue;
        const auto& ends = run_ends_[op.index()];
        if (((touched_[op.index()].covers >> output) & 1U) != 0 && !ends.empty())
          end = std::max(end, *std::min_element(ends.begin(), ends.end()));
      }
    } else if (writers.leader == problem_.graph().op(reader).config_of) {
      end = end_of_form(writers, form);
    } else {
      end = kNever;
      for (size_t f = 0; f < least_[writers.leader.index()]->forms.size(); ++f)
        end = std::min(end, end_of_form(writers, f));
    }
    at = std::max(at, end);
  }
  return at;
}

void LowerBound::pass_set_op(OpId op) {
  const OpRuns& runs = *runs_[op.index()];
  if (!runs.active) return;
  std::vector<std::pair<uint64_t, Nanoseconds>> waits;  // inputs of tensors with a free end
  for (const Attachment& a : attachments_[op.index()]) {
    const bool parameter = problem_.graph().tensor(a.tensor).kind == TensorKind::parameter;
    if (tensors_[a.tensor.index()]) {
      if (a.reads || parameter) pass_tensor(a.tensor);
    } else if (a.inputs != 0) {
      if (const Nanoseconds at = available(a.tensor, op, 0); at > 0) waits.emplace_back(a.inputs, at);
    }
  }
  auto& ends = run_ends_[op.index()];
  for (size_t r = 0; r < runs.runs.size(); ++r) {
    Nanoseconds start = 0;
    for (const Attachment& a : attachments_[op.index()]) {
      if (tensors_[a.tensor.index()])
        start = std::max(start, start_of(a.tensor, a.owner, static_cast<int32_t>(r)));
    }
    const uint64_t reads = touched_[op.index()].of(runs.runs[r].addend);
    for (const auto& [inputs, at] : waits) {
      if ((reads & inputs) != 0) start = std::max(start, at);
    }
    ends[r] = start + runs.cost.time;
    path_ = std::max(path_, ends[r]);
    loads_.push_back({runs.devices[r], start, runs.cost.time});
  }
}

void LowerBound::pass_free_op(OpId op) {
  const auto& forms = least_[problem_.graph().op(op).config_of.index()]->forms;
  const auto& inputs = problem_.graph().op(op).inputs;
  Nanoseconds earliest = kNever;
  for (size_t f = 0; f < forms.size(); ++f) {
    const LeastOp& least = forms[f].ops[place_[op.index()]];
    if (!least.active) continue;
    Nanoseconds start = kNever;
    for (uint64_t set : least.reads) {
      Nanoseconds latest = 0;
      for (uint64_t rest = set; rest != 0; rest &= rest - 1) {
        const TensorId tensor = inputs[static_cast<size_t>(std::countr_zero(rest))];
        if (!writers_[tensor.index()].empty()) latest = std::max(latest, available(tensor, op, f));
      }
      start = std::min(start, latest);
    }
    form_ends_[op.index()][f] = start + least.time;
    earliest = std::min(earliest, start);
  }
  const OpId leader = problem_.graph().op(op).config_of;
  const Nanoseconds work = least_[leader.index()]->op_work[place_[op.index()]];
  if (work > 0) shared_.push_back({0, earliest, work});
}

/// Of every resource: tasks that begin at h or later end no earlier than h and all their durations.
Nanoseconds LowerBound::largest_load() {
  std::sort(loads_.begin(), loads_.end(), [](const Load& a, const Load& b) {
    return a.resource != b.resource ? a.resource < b.resource : a.head > b.head;
  });
  Nanoseconds bound = 0, sum = 0;
  for (size_t i = 0; i < loads_.size(); ++i) {
    if (i == 0 || loads_[i].resource != loads_[i - 1].resource) sum = 0;
    sum += loads_[i].duration;
    bound = std::max(bound, loads_[i].head + sum);
  }
  return bound;
}

/// Of all devices together, the work of free ops included.
Nanoseconds LowerBound::largest_share() {
  for (const Load& load : loads_) {
    if (load.resource < machine_.num_devices()) shared_.push_back(load);
  }
  std::sort(shared_.begin(), shared_.end(), [](const Load& a, const Load& b) { return a.head > b.head; });
  Nanoseconds bound = 0, sum = 0;
  for (const Load& load : shared_) {
    sum += load.duration;
    bound = std::max(bound, load.head + (sum + machine_.num_devices() - 1) / machine_.num_devices());
  }
  return bound;
}

Nanoseconds LowerBound::value() {
  const Graph& graph = problem_.graph();
  path_ = 0;
  loads_.clear();
  shared_.clear();
  passed_.assign(graph.tensors.size(), 0);
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    if (is_set(graph.ops[i].config_of)) {
      run_ends_[i].assign(runs_[i]->runs.size(), 0);
    } else {
      std::fill(form_ends_[i].begin(), form_ends_[i].end(), 0);
    }
  }
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const OpId op(static_cast<int64_t>(i));
    if (is_set(graph.ops[i].config_of)) {
      pass_set_op(op);
    } else {
      pass_free_op(op);
    }
  }
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    if (tensors_[t]) pass_tensor(TensorId(static_cast<int64_t>(t)));
  }
  for (OpId leader : problem_.leaders()) {
    if (is_set(leader)) continue;
    Nanoseconds least = kNever;
    const auto& followers = problem_.followers(leader);
    for (size_t f = 0; f < least_[leader.index()]->forms.size(); ++f) {
      Nanoseconds end = 0;
      for (OpId op : followers) end = std::max(end, form_ends_[op.index()][f]);
      least = std::min(least, end);
    }
    path_ = std::max(path_, least);
  }
  Nanoseconds work = free_work_;
  for (int d = 0; d < machine_.num_devices(); ++d) work += work_[static_cast<size_t>(d)];
  const Nanoseconds share = (work + machine_.num_devices() - 1) / machine_.num_devices();
  const Nanoseconds most = *std::max_element(work_.begin(), work_.end());
  return std::max({path_, share, most, largest_load(), largest_share()});
}

}  // namespace ff
