// From complete values to their readers: in place where the value is, else by a collective where the pattern
// is one, else by messages and copies of the common boxes.

#include "compiler/partition/redistribution.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/base/check.h"
#include "compiler/partition/planner.h"

namespace ff {
namespace internal {
namespace {

/// Kernels get views whose start is so aligned, in bytes; others are copied.
constexpr int64_t kAlignment = 64;

/// Axes from the slowest to the fastest in memory.
void memory_order(int rank, Layout layout, int* order) {
  int n = 0;
  for (int axis = 0; axis < rank; ++axis) {
    if (layout == Layout::channels_last && rank >= 3 && axis == 1) continue;
    order[n++] = axis;
  }
  if (n < rank) order[n] = 1;
}

}  // namespace

int32_t Planner::add_instance(DeviceId device, const Box& box) {
  plan.instances.push_back({device, box, -1, 0});
  return static_cast<int32_t>(plan.instances.size()) - 1;
}

int32_t Planner::dense_part(int32_t whole, const Box& part) {
  const Instance source = instance(whole);
  if (source.box == part) return whole;
  const int32_t out = add_instance(source.device, part);
  if (const int64_t offset = contiguous_offset(source.box, part, options.layout); offset >= 0) {
    plan.instances.back().parent = whole;
    plan.instances.back().offset = offset;
  } else {
    copy(whole, out);
  }
  return out;
}

void Planner::add_step(StepKind kind, std::vector<int32_t> in, std::vector<int32_t> out,
                       std::vector<DeviceId> group, int64_t bytes) {
  plan.steps.push_back({kind, std::move(in), std::move(out), std::move(group), bytes});
}

void Planner::send(int32_t in, int32_t out) {
  add_step(StepKind::message, {in}, {out}, {instance(in).device, instance(out).device},
           bytes(instance(in).box));
}

void Planner::copy(int32_t in, int32_t out) {
  add_step(StepKind::copy, {in}, {out}, {instance(in).device},
           bytes(intersect(instance(in).box, instance(out).box)));
}

int32_t Planner::nearest(std::span<const int32_t> holders, DeviceId to, size_t salt) const {
  std::vector<int32_t> near;
  for (int32_t h : holders) {
    if (instance(h).device == to) return h;
    if (machine.node_of(instance(h).device) == machine.node_of(to)) near.push_back(h);
  }
  if (!near.empty()) return near[salt % near.size()];
  return holders[salt % holders.size()];
}

bool consecutive_parts(const Box& outer, std::span<const Box> parts, Layout layout) {
  int64_t next = 0;
  for (const Box& part : parts) {
    if (contiguous_offset(outer, part, layout) != next) return false;
    next += part.volume();
  }
  return next == outer.volume();
}

namespace {

/// A box that several devices want, and the instance that each gets.
struct Need {
  Box box;
  std::vector<DeviceId> devices;
  std::vector<int32_t> instances;  // -1 until it is served
};

class Gatherer {
 public:
  Gatherer(Planner& planner, std::span<const Value> values) : planner_(planner), values_(values) {}

  void serve(Need& need) {
    std::vector<size_t> inside;  // values that the box touches
    for (size_t v = 0; v < values_.size(); ++v) {
      if (!intersect(values_[v].box, need.box).empty()) inside.push_back(v);
    }
    for (size_t i = 0; i < need.devices.size(); ++i)
      need.instances[i] = find_here(need.devices[i], need.box, inside);
    if (planner_.collectives() && !try_all_gather(need, inside)) try_broadcast(need, inside);
    for (size_t i = 0; i < need.devices.size(); ++i) {
      if (need.instances[i] < 0) need.instances[i] = assemble(need.devices[i], need.box, inside, i);
    }
  }

 private:
  struct Extra {
    DeviceId device;
    int32_t instance;
  };

  /// The box as it already lies on the device: an instance, or an aligned view of one; -1 if neither.
  int32_t find_here(DeviceId device, const Box& box, const std::vector<size_t>& inside) {
    for (size_t v : inside) {
      if (!values_[v].box.contains(box)) continue;
      for (int32_t holder : values_[v].holders) {
        const Instance& here = planner_.instance(holder);
        if (here.device != device) continue;
        if (here.box == box) return holder;
        const int64_t offset = contiguous_offset(here.box, box, planner_.options.layout);
        if (offset >= 0 && offset * size_of(planner_.options.dtype) % kAlignment == 0)
          return planner_.dense_part(holder, box);
      }
    }
    return -1;
  }

  bool try_all_gather(Need& need, const std::vector<size_t>& inside) {
    if (inside.size() < 2) return false;
    struct Part {
      int64_t offset;
      size_t value;
      size_t place;  // in need.devices
      int32_t holder;
    };
    std::vector<Part> parts;
    std::set<size_t> places;
    for (size_t v : inside) {
      const Value& value = values_[v];
      const int64_t offset =
          need.box.contains(value.box) ? contiguous_offset(need.box, value.box, planner_.options.layout) : -1;
      if (offset < 0) return false;
      int found = 0;
      for (int32_t holder : value.holders) {
        const auto at = std::find(need.devices.begin(), need.devices.end(), planner_.instance(holder).device);
        if (at == need.devices.end()) continue;
        const auto place = static_cast<size_t>(at - need.devices.begin());
        if (++found > 1 || need.instances[place] >= 0 || !places.insert(place).second) return false;
        parts.push_back({offset, v, place, holder});
      }
      if (found != 1) return false;
    }
    std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.offset < b.offset; });
    std::vector<Box> boxes;
    for (const Part& part : parts) boxes.push_back(values_[part.value].box);
    if (!consecutive_parts(need.box, boxes, planner_.options.layout)) return false;
    std::vector<int32_t> in;
    std::vector<int32_t> out;
    std::vector<DeviceId> group;
    for (const Part& part : parts) in.push_back(planner_.dense_part(part.holder, values_[part.value].box));
    for (const Part& part : parts) {
      group.push_back(need.devices[part.place]);
      out.push_back(planner_.add_instance(group.back(), need.box));
      need.instances[part.place] = out.back();
      extras_.push_back({group.back(), out.back()});
    }
    planner_.add_step(StepKind::all_gather, std::move(in), std::move(out), std::move(group),
                      planner_.bytes(need.box));
    return true;
  }

  void try_broadcast(Need& need, const std::vector<size_t>& inside) {
    if (inside.size() != 1 || !values_[inside[0]].box.contains(need.box)) return;
    std::vector<size_t> missing;
    for (size_t i = 0; i < need.devices.size(); ++i) {
      if (need.instances[i] < 0) missing.push_back(i);
    }
    if (missing.size() < 2) return;
    const int32_t source = planner_.dense_part(values_[inside[0]].holders[0], need.box);
    std::vector<DeviceId> group{planner_.instance(source).device};
    for (size_t i : missing) {
      if (need.devices[i] == group[0])
        return;  // it lies there, but not dense: copied, and sent to the others one by one
    }
    std::vector<int32_t> out{source};
    for (size_t i : missing) {
      group.push_back(need.devices[i]);
      out.push_back(planner_.add_instance(need.devices[i], need.box));
      need.instances[i] = out.back();
      extras_.push_back({need.devices[i], out.back()});
    }
    planner_.add_step(StepKind::broadcast, {source}, std::move(out), std::move(group),
                      planner_.bytes(need.box));
  }

  int32_t assemble(DeviceId device, const Box& box, const std::vector<size_t>& inside, size_t salt) {
    const int32_t out = planner_.add_instance(device, box);
    int64_t covered = 0;
    for (size_t v : inside) covered += intersect(values_[v].box, box).volume();
    if (covered != box.volume()) {
      FF_CHECK(planner_.options.holes_are_zero)
          << "box " << box << " is read but only " << covered << " elements are written";
      planner_.add_step(StepKind::fill, {}, {out}, {device}, planner_.bytes(box));
    }
    for (size_t v : inside) bring(device, intersect(values_[v].box, box), values_[v], out, salt);
    extras_.push_back({device, out});
    return out;
  }

  /// Brings one piece into `out` on `device`.
  void bring(DeviceId device, const Box& piece, const Value& value, int32_t out, size_t salt) {
    for (int32_t holder : value.holders) {
      if (planner_.instance(holder).device == device) return copy_piece(holder, piece, out);
    }
    for (const Extra& extra : extras_) {
      if (extra.device == device && planner_.instance(extra.instance).box.contains(piece)) {
        return copy_piece(extra.instance, piece, out);
      }
    }
    const int32_t source = planner_.dense_part(planner_.nearest(value.holders, device, salt), piece);
    const Box target = planner_.instance(out).box;
    if (target == piece) return planner_.send(source, out);
    const int32_t landing = planner_.add_instance(device, piece);
    if (const int64_t offset = contiguous_offset(target, piece, planner_.options.layout); offset >= 0) {
      planner_.plan.instances.back().parent = out;
      planner_.plan.instances.back().offset = offset;
      planner_.send(source, landing);
    } else {
      planner_.send(source, landing);
      planner_.copy(landing, out);
    }
  }

  /// The copy step takes the common box of both; a holder that has more complete than the piece gets a dense
  /// part first.
  void copy_piece(int32_t from, const Box& piece, int32_t out) {
    if (intersect(planner_.instance(from).box, planner_.instance(out).box) != piece)
      from = planner_.dense_part(from, piece);
    planner_.copy(from, out);
  }

  Planner& planner_;
  std::span<const Value> values_;
  std::vector<Extra> extras_;  // assembled boxes: complete, and reused by later readers
};

/// The distinct boxes that are read, in the order of their first reader, and where each read finds its
/// instance.
std::vector<Need> collect_needs(std::span<const TensorRead> reads,
                                std::vector<std::pair<size_t, size_t>>& places) {
  std::vector<Need> needs;
  std::map<Box, size_t> numbers;
  std::map<std::pair<size_t, DeviceId>, size_t> devices;
  for (const TensorRead& read : reads) {
    if (read.box.empty()) {
      places.emplace_back(0, SIZE_MAX);
      continue;
    }
    const size_t n = numbers.try_emplace(read.box, needs.size()).first->second;
    if (n == needs.size()) needs.push_back({read.box, {}, {}});
    const auto [it, added] = devices.try_emplace({n, read.device}, needs[n].devices.size());
    if (added) {
      needs[n].devices.push_back(read.device);
      needs[n].instances.push_back(-1);
    }
    places.emplace_back(n, it->second);
  }
  return needs;
}

}  // namespace
}  // namespace internal

int64_t contiguous_offset(const Box& outer, const Box& inner, Layout layout) {
  if (!outer.contains(inner)) return -1;
  int order[kMaxRank];
  internal::memory_order(outer.rank(), layout, order);
  int64_t offset = 0;
  int64_t stride = 1;
  bool partial = false;  // a faster axis is not whole: slower ones must have one index
  for (int i = outer.rank(); i-- > 0;) {
    const Range o = outer[order[i]];
    const Range n = inner[order[i]];
    if (partial && n.size() != 1) return -1;
    if (n.size() != o.size()) partial = true;
    offset += (n.lo - o.lo) * stride;
    stride *= o.size();
  }
  return offset;
}

TensorPlan plan_redistribution(std::span<const TensorWrite> writes, std::span<const TensorRead> reads,
                               const Machine& machine, const RedistributionOptions& options) {
  using namespace internal;
  Planner planner(machine, options);
  std::vector<std::pair<size_t, size_t>> places;
  std::vector<Need> needs = collect_needs(reads, places);
  if (options.available_everywhere) {
    for (Need& need : needs) {
      for (size_t i = 0; i < need.devices.size(); ++i)
        need.instances[i] = planner.add_instance(need.devices[i], need.box);
    }
  } else {
    const std::vector<Value> values = reduce_addends(planner, writes, reads);
    Gatherer gatherer(planner, values);
    for (Need& need : needs) gatherer.serve(need);
  }
  TensorPlan plan = std::move(planner.plan);
  for (const auto& [need, place] : places) {
    plan.read_instance.push_back(place == SIZE_MAX ? -1 : needs[need].instances[place]);
  }
  return plan;
}

}  // namespace ff
