// From addends to complete values. Addends of equal box and holders are summed where they are; the tensor is
// cut at addend boundaries into atoms; an atom with several addends is summed by a collective where the
// pattern is one, else slice by slice at one device each, in the order of the addends. Each element is summed
// in one place, or by a collective that does so, so that replicas hold the same bits.

#include <algorithm>
#include <map>
#include <set>

#include "compiler/base/check.h"
#include "compiler/partition/planner.h"

namespace ff::internal {
namespace {

struct Addend {
  Box box;
  std::vector<int32_t> holders;  // instances, each with this box
};

struct Atom {
  Box box;
  std::vector<int32_t> addends;  // that cover it, in order
};

/// A slice of an atom and the device that sums it.
struct Slice {
  Box box;
  DeviceId device;
};

/// Below this, an atom is summed whole at one device.
constexpr int64_t kSmallestSlicedBytes = 16 * 1024;
/// A server sums a weight's gradient in this many pieces, each at least so large.
constexpr int64_t kServerPieces = 8, kSmallestServerPiece = 4 << 20;

std::vector<Addend> collect_addends(Planner& planner, std::span<const TensorWrite> writes) {
  std::vector<Addend> addends;
  std::map<std::pair<int32_t, int32_t>, size_t> numbers;
  for (const TensorWrite& write : writes) {
    if (write.box.empty()) {
      planner.plan.write_instance.push_back(-1);
      continue;
    }
    const int32_t instance = planner.add_instance(write.device, write.box);
    planner.plan.write_instance.push_back(instance);
    const auto [it, added] = numbers.try_emplace({write.op, write.addend}, addends.size());
    if (added) addends.push_back({write.box, {}});
    FF_CHECK_EQ(addends[it->second].box, write.box) << "replicas of one addend differ";
    addends[it->second].holders.push_back(instance);
  }
  return addends;
}

std::vector<DeviceId> devices_of(const Planner& planner, const std::vector<int32_t>& instances) {
  std::vector<DeviceId> devices;
  for (int32_t i : instances) devices.push_back(planner.instance(i).device);
  return devices;
}

/// Sums addends of the same box on the same devices where they lie, before anything is sent.
std::vector<Addend> sum_in_place(Planner& planner, std::vector<Addend> addends) {
  std::map<std::pair<Box, std::vector<DeviceId>>, std::vector<size_t>> groups;
  for (size_t i = 0; i < addends.size(); ++i) {
    groups[{addends[i].box, devices_of(planner, addends[i].holders)}].push_back(i);
  }
  if (groups.size() == addends.size()) return addends;
  std::vector<bool> gone(addends.size(), false);
  for (const auto& [key, members] : groups) {
    if (members.size() < 2) continue;
    std::vector<int32_t> sums;
    for (size_t h = 0; h < key.second.size(); ++h) {
      std::vector<int32_t> in;
      for (size_t m : members) in.push_back(addends[m].holders[h]);
      const int32_t out = planner.add_instance(key.second[h], key.first);
      planner.add_step(StepKind::sum, std::move(in), {out}, {key.second[h]}, planner.bytes(key.first));
      sums.push_back(out);
    }
    addends[members[0]].holders = std::move(sums);
    for (size_t m = 1; m < members.size(); ++m) gone[members[m]] = true;
  }
  std::vector<Addend> out;
  for (size_t i = 0; i < addends.size(); ++i) {
    if (!gone[i]) out.push_back(std::move(addends[i]));
  }
  return out;
}

/// Whether the distinct ranges of every axis are pairwise disjoint: then distinct boxes are, too.
bool form_a_grid(const std::vector<Box>& boxes) {
  for (int axis = 0; axis < boxes[0].rank(); ++axis) {
    std::vector<Range> ranges;
    for (const Box& box : boxes) ranges.push_back(box[axis]);
    std::sort(ranges.begin(), ranges.end());
    ranges.erase(std::unique(ranges.begin(), ranges.end()), ranges.end());
    for (size_t i = 1; i < ranges.size(); ++i) {
      if (ranges[i].lo < ranges[i - 1].hi) return false;
    }
  }
  return true;
}

/// Joins neighbouring atoms with equal covers along one axis.
void merge_along(std::vector<Atom>& atoms, int axis) {
  const auto without_axis = [axis](Box box) {
    box.set(axis, {0, 1});
    return box;
  };
  std::sort(atoms.begin(), atoms.end(), [&](const Atom& a, const Atom& b) {
    if (a.addends != b.addends) return a.addends < b.addends;
    const Box x = without_axis(a.box);
    const Box y = without_axis(b.box);
    return x != y ? x < y : a.box[axis] < b.box[axis];
  });
  std::vector<Atom> out;
  for (Atom& atom : atoms) {
    if (!out.empty() && out.back().addends == atom.addends &&
        without_axis(out.back().box) == without_axis(atom.box) &&
        out.back().box[axis].hi == atom.box[axis].lo) {
      out.back().box.set(axis, {out.back().box[axis].lo, atom.box[axis].hi});
    } else {
      out.push_back(std::move(atom));
    }
  }
  atoms = std::move(out);
}

/// Cuts overlapping boxes at all their boundaries. `covers[i]`: the addends with box i.
std::vector<Atom> cut(const std::vector<Box>& boxes, const std::vector<std::vector<int32_t>>& covers) {
  const int rank = boxes[0].rank();
  std::vector<std::vector<int64_t>> cuts(static_cast<size_t>(rank));
  for (int axis = 0; axis < rank; ++axis) {
    auto& c = cuts[static_cast<size_t>(axis)];
    for (const Box& box : boxes) {
      c.push_back(box[axis].lo);
      c.push_back(box[axis].hi);
    }
    std::sort(c.begin(), c.end());
    c.erase(std::unique(c.begin(), c.end()), c.end());
  }
  std::map<Box, std::vector<int32_t>> cells;
  for (size_t i = 0; i < boxes.size(); ++i) {
    std::vector<Box> parts{boxes[i]};
    for (int axis = 0; axis < rank; ++axis) {
      std::vector<Box> next;
      for (const Box& part : parts) {
        const auto& c = cuts[static_cast<size_t>(axis)];
        for (auto at = std::lower_bound(c.begin(), c.end(), part[axis].lo); *at < part[axis].hi; ++at) {
          Box piece = part;
          piece.set(axis, {*at, *(at + 1)});
          next.push_back(piece);
        }
      }
      parts = std::move(next);
    }
    for (const Box& part : parts) {
      auto& cover = cells[part];
      cover.insert(cover.end(), covers[i].begin(), covers[i].end());
    }
  }
  std::vector<Atom> atoms;
  for (auto& [box, cover] : cells) {
    std::sort(cover.begin(), cover.end());
    atoms.push_back({box, std::move(cover)});
  }
  for (int axis = rank - 1; axis >= 0; --axis) merge_along(atoms, axis);
  std::sort(atoms.begin(), atoms.end(), [](const Atom& a, const Atom& b) { return a.box < b.box; });
  return atoms;
}

std::vector<Atom> make_atoms(const std::vector<Addend>& addends) {
  std::map<Box, std::vector<int32_t>> by_box;
  for (size_t i = 0; i < addends.size(); ++i) by_box[addends[i].box].push_back(static_cast<int32_t>(i));
  std::vector<Box> boxes;
  std::vector<std::vector<int32_t>> covers;
  for (auto& [box, cover] : by_box) {
    boxes.push_back(box);
    covers.push_back(cover);
  }
  if (boxes.empty()) return {};
  if (boxes.size() > 1 && !form_a_grid(boxes)) return cut(boxes, covers);
  std::vector<Atom> atoms;
  for (size_t i = 0; i < boxes.size(); ++i) atoms.push_back({boxes[i], std::move(covers[i])});
  return atoms;
}

/// The parts of an atom that are read, and by which devices.
std::map<Box, std::set<DeviceId>> parts_read(const Box& atom, std::span<const TensorRead> reads) {
  std::map<Box, std::set<DeviceId>> parts;
  for (const TensorRead& read : reads) {
    if (const Box part = intersect(atom, read.box); !part.empty()) parts[part].insert(read.device);
  }
  return parts;
}

/// Groups for a collective over an atom: one holder of each addend a group, in addend order, when all hold
/// exactly the atom and no device is in two places; else none.
std::vector<std::vector<int32_t>> collective_groups(const Planner& planner, const Atom& atom,
                                                    const std::vector<Addend>& addends) {
  const size_t count = addends[static_cast<size_t>(atom.addends[0])].holders.size();
  std::vector<std::vector<int32_t>> groups(count);
  std::set<DeviceId> devices;
  for (int32_t a : atom.addends) {
    const Addend& addend = addends[static_cast<size_t>(a)];
    if (addend.holders.size() != count || addend.box != atom.box) return {};
    for (size_t h = 0; h < count; ++h) {
      groups[h].push_back(addend.holders[h]);
      if (!devices.insert(planner.instance(addend.holders[h]).device).second) return {};
    }
  }
  return groups;
}

/// Everybody who holds a part of the sum wants the whole of it.
bool try_all_reduce(Planner& planner, const Atom& atom, const std::vector<std::vector<int32_t>>& groups,
                    const std::map<Box, std::set<DeviceId>>& parts, std::vector<Value>& values) {
  if (parts.size() != 1 || parts.begin()->first != atom.box) return false;
  Value value{atom.box, {}};
  for (const auto& group : groups) {
    for (int32_t i : group) {
      if (!parts.begin()->second.contains(planner.instance(i).device)) return false;
    }
  }
  for (const auto& group : groups) {
    std::vector<int32_t> out;
    for (int32_t i : group) {
      out.push_back(planner.add_instance(planner.instance(i).device, atom.box));
      planner.plan.instances.back().parent = i;  // in place
    }
    value.holders.insert(value.holders.end(), out.begin(), out.end());
    planner.add_step(StepKind::all_reduce, group, out, devices_of(planner, group), planner.bytes(atom.box));
  }
  values.push_back(std::move(value));
  return true;
}

/// Everybody who holds a part of the sum wants a consecutive part of it of his own.
bool try_reduce_scatter(Planner& planner, const Atom& atom, const std::vector<std::vector<int32_t>>& groups,
                        const std::vector<Slice>& owned, std::vector<Value>& values) {
  if (groups.size() != 1 || owned.size() != groups[0].size()) return false;
  std::vector<int32_t> in;
  std::vector<Box> boxes;
  std::vector<DeviceId> devices;
  for (const Slice& slice : owned) {
    for (int32_t i : groups[0]) {
      if (planner.instance(i).device == slice.device) in.push_back(i);
    }
    boxes.push_back(slice.box);
    devices.push_back(slice.device);
  }
  if (in.size() != owned.size() ||
      std::set<DeviceId>(devices.begin(), devices.end()).size() != devices.size() ||
      !consecutive_parts(atom.box, boxes, planner.options.layout)) {
    return false;
  }
  std::vector<int32_t> out;
  for (const Slice& slice : owned) {
    out.push_back(planner.add_instance(slice.device, slice.box));
    values.push_back({slice.box, {out.back()}});
  }
  planner.add_step(StepKind::reduce_scatter, in, out, devices, planner.bytes(atom.box));
  return true;
}

/// If no element of the atom is read by two devices: the parts with their readers.
std::vector<Slice> owned_parts(const std::map<Box, std::set<DeviceId>>& parts) {
  std::vector<Slice> owned;
  std::vector<Box> boxes;
  for (const auto& [box, devices] : parts) {
    if (devices.size() != 1) return {};
    owned.push_back({box, *devices.begin()});
    boxes.push_back(box);
  }
  if (!form_a_grid(boxes)) return {};
  return owned;
}

/// One slice for each device that holds addends, cut along the first axis that is long enough; small atoms
/// whole at the first. With a server: all slices at the first reader.
std::vector<Slice> cut_for_holders(const Planner& planner, const Atom& atom,
                                   const std::vector<Addend>& addends, std::span<const TensorRead> reads) {
  std::vector<DeviceId> devices;
  for (int32_t a : atom.addends) {
    const DeviceId d = planner.instance(addends[static_cast<size_t>(a)].holders[0]).device;
    if (std::find(devices.begin(), devices.end(), d) == devices.end()) devices.push_back(d);
  }
  const int64_t bytes = planner.bytes(atom.box);
  auto count = static_cast<int64_t>(devices.size());
  if (planner.server()) {
    const auto first = std::find_if(reads.begin(), reads.end(), [&](const TensorRead& read) {
      return !intersect(atom.box, read.box).empty();
    });
    count = std::clamp<int64_t>(bytes / kSmallestServerPiece, 1, kServerPieces);
    devices = std::vector<DeviceId>(static_cast<size_t>(count), first->device);
  }
  int axis = 0;
  while (axis < atom.box.rank() && atom.box[axis].size() < count) ++axis;
  if (count == 1 || axis == atom.box.rank() || bytes < kSmallestSlicedBytes) return {{atom.box, devices[0]}};
  std::vector<Slice> slices;
  for (int64_t i = 0; i < count; ++i) {
    Box part = atom.box;
    const Range r = block(atom.box[axis].size(), count, i);
    part.set(axis, {atom.box[axis].lo + r.lo, atom.box[axis].lo + r.hi});
    slices.push_back({part, devices[static_cast<size_t>(i)]});
  }
  return slices;
}

void sum_slice(Planner& planner, const Atom& atom, const std::vector<Addend>& addends, const Slice& slice,
               size_t salt, std::vector<Value>& values) {
  std::vector<int32_t> in;
  for (int32_t a : atom.addends) {
    const int32_t source = planner.nearest(addends[static_cast<size_t>(a)].holders, slice.device, salt);
    const int32_t part = planner.dense_part(source, slice.box);
    if (planner.instance(source).device == slice.device) {
      in.push_back(part);
    } else {
      in.push_back(planner.add_instance(slice.device, slice.box));
      planner.send(part, in.back());
    }
  }
  const int32_t out = planner.add_instance(slice.device, slice.box);
  planner.add_step(StepKind::sum, std::move(in), {out}, {slice.device}, planner.bytes(slice.box));
  values.push_back({slice.box, {out}});
}

void reduce_atom(Planner& planner, const Atom& atom, const std::vector<Addend>& addends,
                 std::span<const TensorRead> reads, std::vector<Value>& values) {
  const auto parts = parts_read(atom.box, reads);
  if (parts.empty()) return;
  std::vector<Slice> slices = owned_parts(parts);
  if (planner.collectives()) {
    if (const auto groups = collective_groups(planner, atom, addends); !groups.empty()) {
      if (try_all_reduce(planner, atom, groups, parts, values)) return;
      if (try_reduce_scatter(planner, atom, groups, slices, values)) return;
    }
  }
  if (slices.empty() || planner.server()) slices = cut_for_holders(planner, atom, addends, reads);
  for (size_t i = 0; i < slices.size(); ++i) sum_slice(planner, atom, addends, slices[i], i, values);
}

}  // namespace

std::vector<Value> reduce_addends(Planner& planner, std::span<const TensorWrite> writes,
                                  std::span<const TensorRead> reads) {
  const std::vector<Addend> addends = sum_in_place(planner, collect_addends(planner, writes));
  std::vector<Value> values;
  for (const Atom& atom : make_atoms(addends)) {
    if (atom.addends.size() == 1) {
      values.push_back({atom.box, addends[static_cast<size_t>(atom.addends[0])].holders});
    } else {
      reduce_atom(planner, atom, addends, reads, values);
    }
  }
  return values;
}

}  // namespace ff::internal
