// One node kind: its devices, switches and links, and the routes among them.
#include <algorithm>
#include <cmath>
#include <set>

#include "compiler/machine/builder.h"

namespace ff {
namespace {

std::string quote(const std::string& s) { return "'" + s + "'"; }

LinkKind kind_of(machine::LinkKind kind) {
  switch (kind) {
    case machine::NVLINK:
      return LinkKind::kNvlink;
    case machine::PCIE:
      return LinkKind::kPcie;
    case machine::HOST_MEMORY:
      return LinkKind::kHostMemory;
    case machine::NIC:
      return LinkKind::kNic;
    default:
      return LinkKind::kSwitch;
  }
}

std::string link_name(const machine::Link& link) {
  return link.name().empty() ? link.from() + "-" + link.to() : link.name();
}

bool is_device_of(const std::string& endpoint, const std::string& prefix) {
  return endpoint.size() > prefix.size() && endpoint.compare(0, prefix.size(), prefix) == 0 &&
         endpoint.find_first_not_of("0123456789", prefix.size()) == std::string::npos;
}

}  // namespace

MachineBuilder::Local MachineBuilder::read_node(const machine::NodeGroup& group) const {
  Local local;
  local.name = group.name().empty() ? "node" : group.name();
  read_devices(group, local);
  local.names.insert(local.names.end(), group.switch_().begin(), group.switch_().end());
  local.names.insert(local.names.end(), {"host", "network"});
  std::set<std::string> seen;
  for (const std::string& name : local.names) {
    if (!seen.insert(name).second)
      fail("node kind " + quote(local.name) + " has two endpoints named " + quote(name));
  }
  for (const machine::Link& link : group.link()) read_link(link, local);
  return local;
}

void MachineBuilder::read_devices(const machine::NodeGroup& group, Local& local) const {
  for (const machine::DeviceGroup& d : group.device()) {
    const auto kind = std::find_if(machine_.kinds_.begin(), machine_.kinds_.end(),
                                   [&](const DeviceKind& k) { return k.name == d.kind(); });
    if (kind == machine_.kinds_.end()) {
      fail(
          "node kind " + quote(local.name) + " names device kind " + quote(d.kind()) + ", which is not given",
          "add device_kind { name: \"" + d.kind() + "\" ... }");
    }
    const std::string prefix = !d.name().empty() ? d.name() : kind->backend == Backend::kCuda ? "gpu" : "cpu";
    const int count = d.has_count() ? d.count() : 1;
    if (count < 1)
      fail("node kind " + quote(local.name) + " has count " + std::to_string(count) + " of a device");
    if (count > kMaxDevices - local.devices) {
      fail("the machine has more than " + std::to_string(kMaxDevices) + " devices");
    }
    const auto first = std::count_if(local.names.begin(), local.names.end(),
                                     [&](const std::string& name) { return is_device_of(name, prefix); });
    for (int i = 0; i < count; ++i) {
      local.names.push_back(prefix + std::to_string(first + i));
      local.kinds.push_back(static_cast<int>(kind - machine_.kinds_.begin()));
    }
    local.devices += count;
  }
  local.used = group.has_use() ? group.use() : local.devices;
  if (group.has_use() && (group.use() < 1 || group.use() > local.devices)) {
    fail("node kind " + quote(local.name) + " has use: " + std::to_string(group.use()) + " of " +
         std::to_string(local.devices) + " devices");
  }
}

std::vector<int> MachineBuilder::match(const machine::Link& link, const std::string& pattern,
                                       const Local& local) const {
  std::vector<int> found;
  if (!pattern.empty() && pattern.back() == '*') {
    const std::string prefix = pattern.substr(0, pattern.size() - 1);
    for (int d = 0; d < local.devices; ++d) {
      if (is_device_of(local.names[static_cast<size_t>(d)], prefix)) found.push_back(d);
    }
  } else if (const auto it = std::find(local.names.begin(), local.names.end(), pattern);
             it != local.names.end()) {
    found.push_back(static_cast<int>(it - local.names.begin()));
  }
  if (!found.empty()) return found;
  const std::string& first = local.devices > 0 ? local.names.front() : pattern;
  const std::string& last = local.devices > 0 ? local.names[static_cast<size_t>(local.devices) - 1] : pattern;
  std::string switches;
  for (size_t i = static_cast<size_t>(local.devices); i < local.names.size(); ++i) {
    switches += (switches.empty() ? "" : ", ") + local.names[i];
  }
  fail("link " + quote(link_name(link)) + " names device " + quote(pattern) + " of node kind " +
           quote(local.name) + ", which has " +
           (local.devices == 0   ? "no devices"
            : local.devices == 1 ? "device " + first
                                 : "devices " + first + ".." + last),
       "other endpoints: " + switches);
}

void MachineBuilder::read_link(const machine::Link& link, Local& local) const {
  const std::string who = "link " + quote(link_name(link));
  if (!std::isfinite(link.bandwidth()) || link.bandwidth() <= 0) {
    fail(who + " of node kind " + quote(local.name) + " has no bandwidth",
         "add bandwidth: 10e9 (bytes per second)");
  }
  if (link.latency_ns() < 0) fail(who + " of node kind " + quote(local.name) + " has a latency below 0");
  const std::vector<int> from = match(link, link.from(), local);
  const std::vector<int> to = match(link, link.to(), local);
  for (int a : from) {
    for (int b : to) {
      if (from == to && from.size() > 1 && a >= b) continue;
      if (a == b)
        fail(who + " of node kind " + quote(local.name) + " joins " + quote(link.from()) + " to itself");
      add_link(link, a, b, local);
    }
  }
}

void MachineBuilder::add_link(const machine::Link& link, int from, int to, Local& local) const {
  // A link of a device that is left out is left out; links among switches stay.
  const auto absent = [&](int e) { return e < local.devices && e >= local.used; };
  if (absent(from) || absent(to)) return;
  const auto add = [&](int a, int b, const std::string& arrow) {
    const int id = static_cast<int>(local.links.size());
    if (id >= kMaxLinks) fail("the machine has more than " + std::to_string(kMaxLinks) + " links");
    const std::string name = link.name().empty() ? "" : link.name() + ":";
    local.links.push_back(
        {name + local.names[static_cast<size_t>(a)] + arrow + local.names[static_cast<size_t>(b)],
         kind_of(link.kind()), link.bandwidth(), link.latency_ns()});
    local.hops.push_back({a, b, id});
    return id;
  };
  if (link.duplex() == machine::HALF) {
    const int both = add(from, to, "<>");
    local.hops.push_back({to, from, both});
  } else {
    add(from, to, ">");
    add(to, from, ">");
  }
}

std::vector<Machine::LocalRoute> MachineBuilder::routes_from(const Local& local, int start) {
  // Breadth first by number of links; among equally short ones the widest, then the first in the file. Only
  // the start may be a device: others and the network end a route.
  const size_t n = local.names.size();
  const int network = static_cast<int>(n) - 1;
  std::vector<Machine::LocalRoute> best(n);
  std::vector<std::vector<const Hop*>> out(n);
  for (const Hop& hop : local.hops) out[static_cast<size_t>(hop.from)].push_back(&hop);
  std::vector<int> frontier{start};
  for (size_t depth = 1; !frontier.empty() && depth <= kMaxRouteDepth; ++depth) {
    std::vector<int> next;
    for (int at : frontier) {
      if (at != start && (at < local.devices || at == network)) continue;
      for (const Hop* hop : out[static_cast<size_t>(at)]) {
        if (hop->to == start) continue;
        Machine::LocalRoute& old = best[static_cast<size_t>(hop->to)];
        if (!old.links.empty() && old.links.size() < depth) continue;
        const Machine::LocalRoute& head = best[static_cast<size_t>(at)];
        const Link& link = local.links[static_cast<size_t>(hop->link)];
        const double width = head.links.empty() ? link.bandwidth : std::min(head.bandwidth, link.bandwidth);
        if (!old.links.empty() && old.bandwidth >= width) continue;
        if (old.links.empty()) next.push_back(hop->to);
        old = head;
        old.links.push_back(static_cast<int16_t>(hop->link));
        old.latency += link.latency;
        old.bandwidth = width;
      }
    }
    frontier = std::move(next);
  }
  return best;
}

Machine::NodeKind MachineBuilder::find_routes(const Local& local) const {
  Machine::NodeKind kind;
  kind.devices = local.used;
  const size_t network = local.names.size() - 1;
  const std::vector<Machine::LocalRoute> down = routes_from(local, static_cast<int>(network));
  for (int from = 0; from < local.used; ++from) {
    const std::vector<Machine::LocalRoute> routes = routes_from(local, from);
    for (int to = 0; to < local.used; ++to) {
      if (from != to && routes[static_cast<size_t>(to)].links.empty()) {
        fail("devices " + quote(local.names[static_cast<size_t>(from)]) + " and " +
                 quote(local.names[static_cast<size_t>(to)]) + " of node kind " + quote(local.name) +
                 " cannot reach each other",
             "join both by a link, or to one switch or the host; a route has at most 6 links inside a node");
      }
      kind.between.push_back(routes[static_cast<size_t>(to)]);
    }
    kind.up.push_back(routes[network]);
    kind.down.push_back(down[static_cast<size_t>(from)]);
  }
  return kind;
}

}  // namespace ff
