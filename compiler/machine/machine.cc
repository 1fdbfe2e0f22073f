#include "compiler/machine/machine.h"

#include "compiler/base/check.h"

namespace ff {

const Efficiency& DeviceKind::efficiency(std::string_view family) const {
  static const Efficiency whole{"default"};
  const Efficiency* found = &whole;
  for (const Efficiency& e : efficiencies) {
    if (e.family == family) return e;
    if (e.family == "default") found = &e;
  }
  return *found;
}

void Machine::append(const LocalRoute& part, int first_link, Route& route) {
  for (int16_t link : part.links) route.links[static_cast<size_t>(route.size++)] = LinkId(first_link + link);
  route.latency += part.latency;
  if (!part.links.empty() && (route.bandwidth == 0 || part.bandwidth < route.bandwidth)) {
    route.bandwidth = part.bandwidth;
  }
}

Route Machine::route(DeviceId from, DeviceId to) const {
  FF_CHECK(from.index() < devices_.size() && to.index() < devices_.size()) << from << " to " << to;
  Route route;
  if (from == to) return route;
  const Node& a = nodes_[static_cast<size_t>(node_of(from))];
  const Node& b = nodes_[static_cast<size_t>(node_of(to))];
  const NodeKind& kind_a = node_kinds_[static_cast<size_t>(a.kind)];
  const NodeKind& kind_b = node_kinds_[static_cast<size_t>(b.kind)];
  const auto local_from = static_cast<size_t>(from.value - a.first_device);
  const auto local_to = static_cast<size_t>(to.value - b.first_device);
  if (&a == &b) {
    append(kind_a.between[local_from * static_cast<size_t>(kind_a.devices) + local_to], a.first_link, route);
    return route;
  }
  append(kind_a.up[local_from], a.first_link, route);
  if (core_switch_.valid()) {
    const Link& core = links_[core_switch_.index()];
    append({{0}, core.latency, core.bandwidth}, core_switch_.value, route);
  }
  append(kind_b.down[local_to], b.first_link, route);
  return route;
}

}  // namespace ff
