#include "compiler/search/least.h"

#include <algorithm>
#include <limits>
#include <map>

#include "compiler/base/check.h"

namespace ff {
namespace {

constexpr size_t kMostBits = 64;
constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

const Shape& shape_of(const Problem& problem, TensorId tensor) {
  return problem.graph().tensor(tensor).shape;
}

/// Whether every index of the axis' dimension alone touches the axis: then every block does.
bool every_index_touches(const AxisMap& axis, int64_t extent, int64_t size) {
  const Range whole{0, size};
  return axis.stride >= 0 && extent > 0 && !intersect(unclipped(axis, {0, 1}), whole).empty() &&
         !intersect(unclipped(axis, {extent - 1, extent}), whole).empty();
}

/// By block of the axis' dimension, whether it touches the axis.
std::vector<char> blocks_that_touch(const OpSpace& space, const AxisMap& axis, int64_t size,
                                    const Degrees& degrees) {
  const auto dim = static_cast<size_t>(axis.dim);
  std::vector<char> touch;
  for (int64_t b = 0; b < degrees[dim]; ++b) {
    const Range part = block(space.dims[dim].extent, degrees[dim], b);
    touch.push_back(!part.empty() && !intersect(unclipped(axis, part), {0, size}).empty());
  }
  return touch;
}

/// For every dimension and block whether an input is read: a cell reads it if all its blocks do.
std::vector<std::vector<char>> blocks_that_read(const OpSpace& space, const AccessMap& map,
                                                const Shape& shape, const Degrees& degrees) {
  std::vector<std::vector<char>> reads(degrees.size());
  const auto narrow = [&](size_t dim, const std::vector<char>& touch) {
    if (std::find(touch.begin(), touch.end(), 0) == touch.end()) return;
    auto& known = reads[dim];
    if (known.empty()) known.assign(touch.size(), 1);
    for (size_t b = 0; b < touch.size(); ++b) known[b] = known[b] && touch[b];
  };
  for (size_t a = 0; a < shape.size(); ++a) {
    const AxisMap& axis = map.axes[a];
    if (axis.dim < 0) continue;
    const auto dim = static_cast<size_t>(axis.dim);
    if (!every_index_touches(axis, space.dims[dim].extent, shape[a]))
      narrow(dim, blocks_that_touch(space, axis, shape[a], degrees));
  }
  if (map.first_block_of >= 0) {
    std::vector<char> first(static_cast<size_t>(degrees[static_cast<size_t>(map.first_block_of)]), 0);
    first[0] = 1;
    narrow(static_cast<size_t>(map.first_block_of), first);
  }
  return reads;
}

/// Whether the blocks of the axis' dimension together touch all of it.
bool covers_axis(const OpSpace& space, const AxisMap& axis, int64_t size, const Degrees& degrees) {
  if (axis.dim < 0) return true;
  const auto dim = static_cast<size_t>(axis.dim);
  // Without gaps between indices, blocks reach from end to end.
  const Range all = unclipped(axis, {0, space.dims[dim].extent});
  if (axis.stride >= 0 && axis.span >= axis.stride) return all.lo <= 0 && all.hi >= size;
  int64_t reach = 0;
  for (int64_t b = 0; b < degrees[dim]; ++b) {
    const Range part = intersect(unclipped(axis, block(space.dims[dim].extent, degrees[dim], b)), {0, size});
    if (part.empty()) continue;
    if (part.lo > reach) return false;
    reach = std::max(reach, part.hi);
  }
  return reach == size;
}

bool covers(const OpSpace& space, const AccessMap& map, const Shape& shape, const Degrees& degrees) {
  if (map.first_block_of >= 0) return false;
  std::vector<int> dims;
  for (size_t a = 0; a < shape.size(); ++a) {
    const AxisMap& axis = map.axes[a];
    // Two axes of one dimension are written along a diagonal.
    if (axis.dim >= 0 && std::find(dims.begin(), dims.end(), axis.dim) != dims.end()) return false;
    dims.push_back(axis.dim);
    if (!covers_axis(space, axis, shape[a], degrees)) return false;
  }
  return true;
}

/// All that the costs and boxes of an op depend on.
std::string text_of(const Problem& problem, OpId id) {
  const Graph& graph = problem.graph();
  const Op& op = graph.op(id);
  std::string text = to_text(op.type, problem.space(id)) + '\n' + to_string(op.attributes) + '\n';
  for (const auto* operands : {&op.inputs, &op.outputs}) {
    for (TensorId t : *operands) {
      if (!t.valid()) {
        text += "- ";
        continue;
      }
      const Tensor& tensor = graph.tensor(t);
      text += to_string(tensor.shape) + ':' + std::to_string(static_cast<int>(tensor.dtype)) + ':' +
              std::to_string(static_cast<int>(tensor.layout)) + ' ';
    }
    text += '\n';
  }
  for (int dim : problem.leader_dims(id)) text += std::to_string(dim) + ' ';
  const OpId fused = op.stage_of.valid() ? op.stage_of : id;
  return text + std::to_string(op.stage_of.valid()) + ' ' + std::to_string(problem.stage_mask(fused)) + '\n';
}

class Collector {
 public:
  Collector(const Problem& problem, const Machine& machine, CostModel& costs, OpId leader)
      : problem_(problem), machine_(machine), costs_(costs), leader_(leader) {
    out_.work = kNever;
    out_.op_work.assign(problem.followers(leader).size(), kNever);
  }

  void add(const Degrees& degrees) {
    const Config config{degrees, 1, {}};
    LeastForm form;
    Nanoseconds work = 0;
    size_t i = 0;
    for (OpId op : problem_.followers(leader_)) {
      LeastOp least;
      Nanoseconds own = 0;
      least.active = problem_.active(op, config);
      if (least.active) {
        const Degrees own_degrees = problem_.degrees_of(op, config);
        least.time = kernels_.largest_cell(problem_, machine_, costs_, op, own_degrees).time;
        own = least.time * cells_of(own_degrees);
        Touched touched = touched_by(problem_, op, own_degrees);
        std::sort(touched.reads.begin(), touched.reads.end());
        touched.reads.erase(std::unique(touched.reads.begin(), touched.reads.end()), touched.reads.end());
        least.reads = std::move(touched.reads);
        least.covers = touched.covers;
      }
      out_.op_work[i] = std::min(out_.op_work[i], own);
      work += own;
      form.ops.push_back(std::move(least));
      ++i;
    }
    out_.work = std::min(out_.work, work);
    merge(std::move(form));
  }

  LeastLeader take() { return std::move(out_); }

 private:
  /// Forms that touch alike become one, with the least times of both.
  void merge(LeastForm form) {
    const auto alike = [](const LeastOp& a, const LeastOp& b) {
      return a.active == b.active && a.covers == b.covers && a.reads == b.reads;
    };
    for (LeastForm& known : out_.forms) {
      if (!std::equal(known.ops.begin(), known.ops.end(), form.ops.begin(), alike)) continue;
      for (size_t i = 0; i < form.ops.size(); ++i)
        known.ops[i].time = std::min(known.ops[i].time, form.ops[i].time);
      return;
    }
    out_.forms.push_back(std::move(form));
  }

  const Problem& problem_;
  const Machine& machine_;
  CostModel& costs_;
  KernelCosts kernels_;
  OpId leader_;
  LeastLeader out_;
};

}  // namespace

Touched touched_by(const Problem& problem, OpId op, const Degrees& own_degrees) {
  const Op& node = problem.graph().op(op);
  const OpSpace& space = problem.space(op);
  Touched out;
  for (size_t k = 0; k < std::min(node.outputs.size(), kMostBits); ++k) {
    if (node.outputs[k].valid() &&
        covers(space, space.outputs[k], shape_of(problem, node.outputs[k]), own_degrees))
      out.covers |= uint64_t{1} << k;
  }
  uint64_t all = 0;
  std::vector<std::pair<uint64_t, std::vector<std::vector<char>>>>
      partly;  // bit, reads by dimension and block
  for (size_t k = 0; k < std::min(node.inputs.size(), kMostBits); ++k) {
    if (!node.inputs[k].valid()) continue;
    auto reads = blocks_that_read(space, space.inputs[k], shape_of(problem, node.inputs[k]), own_degrees);
    if (std::all_of(reads.begin(), reads.end(), [](const auto& blocks) { return blocks.empty(); })) {
      all |= uint64_t{1} << k;
    } else {
      partly.emplace_back(uint64_t{1} << k, std::move(reads));
    }
  }
  uint64_t every = all;
  for (const auto& [bit, reads] : partly) every |= bit;
  out.reads.assign(partly.empty() ? 1 : static_cast<size_t>(cells_of(own_degrees)), every);
  if (partly.empty()) return out;
  for (size_t addend = 0; addend < out.reads.size(); ++addend) {
    auto rest = static_cast<int64_t>(addend);
    for (size_t d = own_degrees.size(); d-- > 0;) {
      const auto at = static_cast<size_t>(rest % own_degrees[d]);
      rest /= own_degrees[d];
      for (const auto& [bit, reads] : partly) {
        if (!reads[d].empty() && !reads[d][at]) out.reads[addend] &= ~bit;
      }
    }
  }
  return out;
}

std::vector<std::shared_ptr<const LeastLeader>> least_costs(const Problem& problem, const Machine& machine,
                                                            CostModel& costs, Space space) {
  std::vector<std::shared_ptr<const LeastLeader>> out(problem.graph().ops.size());
  std::map<std::string, std::shared_ptr<const LeastLeader>> known;
  for (OpId leader : problem.leaders()) {
    std::string text;
    for (OpId op : problem.followers(leader)) text += text_of(problem, op);
    auto& least = known[text];
    if (!least) {
      Collector collector(problem, machine, costs, leader);
      for (const Degrees& degrees : degrees_within(problem, leader, space, problem.num_devices()))
        collector.add(degrees);
      least = std::make_shared<LeastLeader>(collector.take());
    }
    out[leader.index()] = least;
  }
  return out;
}

}  // namespace ff
