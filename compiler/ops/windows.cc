#include "compiler/ops/windows.h"

#include <algorithm>

#include "compiler/base/check.h"
#include "compiler/ops/conv.h"

namespace ff {
namespace {

constexpr const char* kSpatialNames[] = {"d", "h", "w"};

void require_size(const Ints& values, size_t size, int64_t least, std::string_view name) {
  if (values.size() != size) {
    throw UserError("attribute " + std::string(name) + " has " + std::to_string(values.size()) +
                    " values where the window needs " + std::to_string(size));
  }
  for (int64_t v : values) {
    if (v < least) throw UserError("attribute " + std::string(name) + " has the value " + std::to_string(v));
  }
}

}  // namespace

Windows windows_of(const Attributes& attributes, const Ints& kernel) {
  const size_t n = kernel.size();
  Windows w{.kernel = kernel,
            .strides = attributes.ints("strides", Ints(n, 1)),
            .dilations = attributes.ints("dilations", Ints(n, 1)),
            .pads = attributes.ints("pads", Ints(2 * n, 0))};
  require_size(w.kernel, n, 1, "kernel_shape");
  require_size(w.strides, n, 1, "strides");
  require_size(w.dilations, n, 1, "dilations");
  require_size(w.pads, 2 * n, 0, "pads");
  return w;
}

Ints output_extents(const Windows& windows, const Shape& shape, bool ceil_mode) {
  Ints extents;
  for (size_t a = 0; a < windows.axes(); ++a) {
    const int64_t in = shape[2 + a], stride = windows.strides[a];
    const int64_t room = in + windows.pad_begin(a) + windows.pad_end(a) - windows.reach(a);
    int64_t out = room < 0 ? 0 : room / stride + 1;
    if (ceil_mode && room >= 0) {
      out = (room + stride - 1) / stride + 1;
      if ((out - 1) * stride >= in + windows.pad_begin(a)) --out;
    }
    if (out < 1) {
      throw UserError("a window of " + std::to_string(windows.reach(a)) + " does not fit in " +
                      std::to_string(in) + " elements with pads " + std::to_string(windows.pad_begin(a)) +
                      " and " + std::to_string(windows.pad_end(a)));
    }
    extents.push_back(out);
  }
  return extents;
}

std::string spatial_name(size_t axes, size_t axis) { return kSpatialNames[3 - axes + axis]; }

AxisMap window_map(int dim, const Windows& windows, size_t axis, int64_t input_extent,
                   int64_t output_extent) {
  AxisMap map{.dim = dim,
              .stride = windows.strides[axis],
              .offset = -windows.pad_begin(axis),
              .span = windows.reach(axis)};
  const int64_t unread = input_extent - unclipped(map, {0, output_extent}).hi;
  if (unread > 0) map.span += std::min(unread, map.stride - 1);
  return map;
}

Ints local_pads(const AccessMap& map, const Cell& cell, const Box& box) {
  const size_t axes = map.axes.size() - 2;
  Ints pads(2 * axes, 0);
  for (size_t a = 0; a < axes; ++a) {
    const AxisMap& m = map.axes[2 + a];
    const Range block = cell.blocks[static_cast<size_t>(m.dim)];
    if (block.empty()) continue;
    const Range window = unclipped(m, block);
    pads[a] = std::clamp<int64_t>(-window.lo, 0, window.size());
    pads[axes + a] = std::max<int64_t>(0, window.size() - pads[a] - box[static_cast<int>(2 + a)].size());
  }
  return pads;
}

void set_windows(Attributes& attributes, const Windows& windows, Ints pads) {
  attributes.set("strides", windows.strides);
  attributes.set("dilations", windows.dilations);
  attributes.set("pads", std::move(pads));
}

KernelCall call_of(const Graph& graph, const Op& op, const Cell& cell, std::string_view kernel) {
  KernelCall call{.kernel = std::string(kernel), .attributes = {}, .operands = {}};
  const auto add = [&](TensorId id, const Box& box, Access access) {
    if (!id.valid()) return call.operands.push_back(absent_operand());
    const Tensor& t = graph.tensor(id);
    call.operands.push_back({.dtype = t.dtype, .layout = t.layout, .access = access, .shape = box.shape()});
    if (is_absent(call.operands.back())) call.operands.back() = absent_operand();
  };
  const auto among = [](TensorId id, const std::vector<TensorId>& ids) {
    return id.valid() && std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  size_t i = 0;
  for (TensorId id : op.inputs) add(id, cell.boxes[i++], among(id, op.outputs) ? Access::inout : Access::in);
  for (TensorId id : op.outputs) {
    add(among(id, op.inputs) ? TensorId() : id, cell.boxes[i++], Access::out);
  }
  return call;
}

double bytes_of(const Graph& graph, const Op& op, const Cell& cell) {
  double bytes = 0;
  size_t i = 0;
  for (const auto* ids : {&op.inputs, &op.outputs}) {
    for (TensorId id : *ids) {
      const Box& box = cell.boxes[i++];
      if (id.valid()) bytes += static_cast<double>(box.volume() * size_of(graph.tensor(id).dtype));
    }
  }
  return bytes;
}

double cells_volume(const Cell& cell) {
  double volume = 1;
  for (Range block : cell.blocks) volume *= static_cast<double>(block.size());
  return volume;
}

const Shape& input_shape(const Graph& graph, const Op& op, size_t i) {
  FF_CHECK(has_input(op, i)) << op.type << " input " << i;
  return graph.tensor(op.inputs[i]).shape;
}

const Shape& output_shape(const Graph& graph, const Op& op, size_t i) {
  FF_CHECK(has_output(op, i)) << op.type << " output " << i;
  return graph.tensor(op.outputs[i]).shape;
}

OpSpace image_dims(const Shape& shape, std::string_view channel) {
  OpSpace space;
  const auto add = [&](std::string name, Role role, int64_t extent) {
    space.dims.push_back({.name = std::move(name), .role = role, .extent = extent, .max_degree = extent});
  };
  add("n", Role::sample, shape[0]);
  add(std::string(channel), Role::parameter, shape[1]);
  for (size_t a = 2; a < shape.size(); ++a)
    add(spatial_name(shape.size() - 2, a - 2), Role::attribute, shape[a]);
  return space;
}

AccessMap identity_map(size_t rank) {
  AccessMap map;
  for (size_t a = 0; a < rank; ++a) map.axes.push_back(AxisMap::identity(static_cast<int>(a)));
  return map;
}

void require_image(const Shape& shape, std::string_view what) {
  if (shape.size() < 3 || shape.size() > 5) {
    throw UserError(std::string(what) + " has shape " + to_string(shape) +
                    "; it must have 3 to 5 dimensions: samples, channels and 1 to 3 spatial ones");
  }
}

Ints resolve_auto_pad(std::string_view mode, const Shape& x, const Ints& kernel, const Ints& strides,
                      const Ints& dilations) {
  const size_t n = kernel.size();
  Ints pads(2 * n, 0);
  if (mode == "VALID") return pads;
  if (mode != "SAME_UPPER" && mode != "SAME_LOWER") {
    throw UserError("auto_pad has the value '" + std::string(mode) +
                    "'; known are SAME_UPPER, SAME_LOWER, VALID and NOTSET");
  }
  for (size_t a = 0; a < n; ++a) {
    const int64_t in = x[2 + a], out = (in + strides[a] - 1) / strides[a];
    const int64_t total =
        std::max<int64_t>(0, (out - 1) * strides[a] + (kernel[a] - 1) * dilations[a] + 1 - in);
    const int64_t less = total / 2;
    pads[a] = mode == "SAME_UPPER" ? less : total - less;
    pads[n + a] = total - pads[a];
  }
  return pads;
}

}  // namespace ff
