#include "compiler/ops/convolution.h"

namespace ff {
namespace {

void add_dim(OpSpace& space, std::string name, Role role, int64_t extent, int64_t max_degree) {
  space.dims.push_back({.name = std::move(name), .role = role, .extent = extent, .max_degree = max_degree});
}

}  // namespace

Convolution make_convolution(const Op& op, const Shape& x, const Shape& w, const Shape& y) {
  Convolution c;
  c.x = x, c.w = w, c.y = y;
  c.group = op.attributes.integer("group", 1);
  c.relu = op.attributes.integer("relu", 0) != 0;
  c.windows = windows_of(op.attributes, Ints(w.begin() + 2, w.end()));
  const size_t axes = c.windows.axes();
  const bool grouped = c.group > 1;

  add_dim(c.dims, "n", Role::sample, x[0], x[0]);
  add_dim(c.dims, grouped ? "g" : "co", Role::parameter, grouped ? c.group : w[0], grouped ? c.group : w[0]);
  for (size_t a = 0; a < axes; ++a)
    add_dim(c.dims, spatial_name(axes, a), Role::attribute, y[2 + a], y[2 + a]);
  const int ci = static_cast<int>(c.dims.dims.size());
  if (!grouped) add_dim(c.dims, "ci", Role::contracted, x[1], c.relu ? 1 : x[1]);

  const auto channel = [&](int64_t extent, int dim) {
    return grouped ? AxisMap::blocks(1, extent / c.group) : AxisMap::identity(dim);
  };
  c.x_map.axes = {AxisMap::identity(0), channel(x[1], ci)};
  c.y_map.axes = {AxisMap::identity(0), channel(y[1], 1)};
  c.w_map.axes = {channel(w[0], 1), grouped ? AxisMap::whole() : AxisMap::identity(ci)};
  for (size_t a = 0; a < axes; ++a) {
    const int dim = static_cast<int>(2 + a);
    c.x_map.axes.push_back(window_map(dim, c.windows, a, x[2 + a], y[2 + a]));
    c.y_map.axes.push_back(AxisMap::identity(dim));
    c.w_map.axes.push_back(AxisMap::whole());
  }
  c.b_map.axes = {channel(w[0], 1)};
  c.b_map.first_block_of = grouped ? -1 : ci;
  return c;
}

Work conv_work_of(const Graph& g, const Op& op, const Cell& cell, const Convolution& c) {
  double macs = cells_volume(cell);
  for (int64_t k : c.windows.kernel) macs *= static_cast<double>(k);
  if (c.group > 1) macs *= static_cast<double>(c.w[0] / c.group * c.w[1]);
  return {.flops = 2 * macs, .bytes = bytes_of(g, op, cell)};
}
KernelCall conv_call(const Graph& g, const Op& op, const Cell& cell, std::string_view kernel,
                     const Convolution& c, size_t x_operand) {
  KernelCall call = call_of(g, op, cell, kernel);
  set_windows(call.attributes, c.windows, local_pads(c.x_map, cell, cell.boxes[x_operand]));
  call.attributes.set("group", c.group > 1 ? cell.blocks[1].size() : int64_t{1});
  if (c.relu) call.attributes.set("relu", int64_t{1});
  return call;
}
}  // namespace ff
