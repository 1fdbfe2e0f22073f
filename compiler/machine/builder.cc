#include "compiler/machine/builder.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cmath>

#include "compiler/base/check.h"

namespace ff {
namespace {

/// FNV-1a, 64 bits: the same on every platform.
uint64_t hash_text(const std::string& text) {
  uint64_t h = 0xCBF29CE484222325ULL;
  for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return h;
}

bool positive(double x) { return std::isfinite(x) && x > 0; }
bool zero_or_more(double x) { return std::isfinite(x) && x >= 0; }

std::string quote(const std::string& s) { return "'" + s + "'"; }

Efficiency read_efficiency(const machine::Efficiency& e) {
  return {e.family(), e.has_fraction() ? e.fraction() : 1, e.half_work(),
          e.has_memory_fraction() ? e.memory_fraction() : 1};
}

}  // namespace

void MachineBuilder::fail(const std::string& message, const std::string& hint) const {
  throw UserError(source_ + ": " + message, hint);
}

Machine MachineBuilder::build() {
  machine_.name_ = file_.name();
  if (file_.name().empty()) fail("the machine has no name", "add name: \"my-machine\"");
  add_kinds();
  add_refinements();
  for (const machine::NodeGroup& group : file_.node()) {
    const int count = group.has_count() ? group.count() : 1;
    const Local local = read_node(group);
    if (count < 1) fail("node kind " + quote(local.name) + " has count " + std::to_string(count));
    add_nodes(local, count);
  }
  if (machine_.devices_.empty()) fail("the machine has no devices", "add node { device { kind: \"...\" } }");
  add_network();
  google::protobuf::TextFormat::PrintToString(file_, &machine_.text_);
  machine_.hash_ = hash_text(machine_.text_);
  return std::move(machine_);
}

void MachineBuilder::add_kinds() {
  for (const machine::DeviceKind& k : file_.device_kind()) {
    const std::string who = "device kind " + quote(k.name());
    for (const DeviceKind& other : machine_.kinds_) {
      if (other.name == k.name()) fail(who + " is given twice");
    }
    if (k.memory().empty()) fail(who + " has no memory", "add memory: \"16 GiB\"");
    if (!positive(k.flops_f32())) fail(who + " has no flops_f32", "add its peak rate, flops_f32: 10e12");
    if (!positive(k.memory_bandwidth())) fail(who + " has no memory_bandwidth", "add it in bytes per second");
    DeviceKind kind;
    kind.name = k.name();
    kind.backend = k.backend() == machine::DeviceKind::CUDA ? Backend::kCuda : Backend::kCpu;
    kind.memory_bytes = parse_bytes(k.memory(), source_ + ": memory of " + who);
    if (kind.memory_bytes <= 0) fail(who + " has no memory", "add memory: \"16 GiB\"");
    kind.flops_f32 = k.flops_f32();
    kind.flops_f64 = k.has_flops_f64() ? k.flops_f64() : k.flops_f32() / 2;
    kind.flops_bf16 = k.has_flops_bf16() ? k.flops_bf16() : k.flops_f32();
    if (!positive(kind.flops_f64)) fail(who + ": flops_f64 must be above 0");
    if (!positive(kind.flops_bf16)) fail(who + ": flops_bf16 must be above 0");
    kind.memory_bandwidth = k.memory_bandwidth();
    kind.kernel_launch = k.kernel_launch_ns();
    kind.message_launch = k.message_launch_ns();
    if (kind.kernel_launch < 0 || kind.message_launch < 0) fail(who + ": a launch time is below 0");
    kind.threads = k.has_threads() ? k.threads() : 1;
    if (kind.threads < 1) fail(who + " has threads: " + std::to_string(kind.threads));
    for (const machine::Efficiency& e : k.efficiency()) {
      const Efficiency read = read_efficiency(e);
      if (!positive(read.fraction) || !positive(read.memory_fraction) ||
          !zero_or_more(read.half_work_flops)) {
        fail(who + ": efficiency " + quote(read.family) +
             " needs fractions above 0 and half_work of 0 or more");
      }
      kind.efficiencies.push_back(read);
    }
    machine_.kinds_.push_back(std::move(kind));
  }
}

void MachineBuilder::add_refinements() {
  const machine::Refinements& r = file_.refinements();
  Refinements& out = machine_.refinements_;
  out.synchronization = r.synchronization() == machine::Refinements::SERVER ? Synchronization::kServer
                                                                            : Synchronization::kCollectives;
  out.collectives = r.collectives();
  out.message_holds_device = r.message_holds_device();
  out.overlap_slowdown = r.has_overlap_slowdown() ? r.overlap_slowdown() : 1;
  out.copy_bandwidth = r.copy_bandwidth();
  out.reduction_bandwidth = r.reduction_bandwidth();
  out.message_overhead = r.message_overhead_ns();
  out.links_only = r.links_only();
  if (!std::isfinite(out.overlap_slowdown) || out.overlap_slowdown < 1) {
    fail("refinements: overlap_slowdown must be 1 or more");
  }
  if (!zero_or_more(out.copy_bandwidth) || !zero_or_more(out.reduction_bandwidth) ||
      out.message_overhead < 0) {
    fail("refinements: copy_bandwidth, reduction_bandwidth and message_overhead_ns must be 0 or more");
  }
}

void MachineBuilder::add_nodes(const Local& local, int count) {
  Machine::NodeKind routes = find_routes(local);
  if (count > kMaxDevices ||
      machine_.num_devices() + static_cast<int64_t>(count) * local.used > kMaxDevices) {
    fail("the machine has more than " + std::to_string(kMaxDevices) + " devices");
  }
  if (machine_.num_links() + static_cast<int64_t>(count) * static_cast<int64_t>(local.links.size()) >=
      kMaxLinks) {
    fail("the machine has more than " + std::to_string(kMaxLinks) + " links");
  }
  for (int i = 0; i < count; ++i) {
    const int node = machine_.num_nodes();
    const std::string prefix = "node" + std::to_string(node) + "/";
    machine_.nodes_.push_back(
        {static_cast<int>(machine_.node_kinds_.size()), machine_.num_devices(), machine_.num_links()});
    for (int d = 0; d < local.used; ++d) {
      machine_.devices_.push_back(
          {local.kinds[static_cast<size_t>(d)], node, prefix + local.names[static_cast<size_t>(d)]});
    }
    for (Link link : local.links) {
      link.name.insert(0, prefix);
      machine_.links_.push_back(std::move(link));
    }
  }
  machine_.node_kinds_.push_back(std::move(routes));
}

void MachineBuilder::add_network() {
  const machine::Network& n = file_.network();
  if (!zero_or_more(n.bandwidth()) || n.latency_ns() < 0)
    fail("network: bandwidth and latency_ns must be 0 or more");
  if (machine_.num_nodes() < 2) return;
  for (const machine::NodeGroup& group : file_.node()) {
    const bool joined = std::any_of(group.link().begin(), group.link().end(), [](const machine::Link& l) {
      return l.from() == "network" || l.to() == "network";
    });
    if (!joined) {
      fail("the machine has " + std::to_string(machine_.num_nodes()) + " nodes, and node kind " +
               quote(group.name().empty() ? "node" : group.name()) + " has no link to the network",
           "add link { kind: NIC from: \"host\" to: \"network\" bandwidth: 12.5e9 }");
    }
  }
  for (const Machine::Node& node : machine_.nodes_) {
    const Machine::NodeKind& kind = machine_.node_kinds_[static_cast<size_t>(node.kind)];
    for (int d = 0; d < kind.devices; ++d) {
      const auto i = static_cast<size_t>(d);
      if (!kind.up[i].links.empty() && !kind.down[i].links.empty()) continue;
      const auto device = static_cast<size_t>(node.first_device + d);
      fail("device " + quote(machine_.devices_[device].name) + " cannot reach the network",
           "add a link from it, its switch or its host");
    }
  }
  if (n.bandwidth() > 0) {
    machine_.core_switch_ = LinkId(machine_.num_links());
    machine_.links_.push_back({"network", LinkKind::kSwitch, n.bandwidth(), n.latency_ns()});
  } else if (n.latency_ns() > 0) {
    fail("network: latency_ns without bandwidth",
         "give the latency to the NIC links, or give the network a bandwidth");
  }
}

Machine Machine::with_refinements(const Refinements& r) const {
  machine::MachineFile file;
  FF_CHECK(google::protobuf::TextFormat::ParseFromString(text_, &file)) << name_;
  machine::Refinements& out = *file.mutable_refinements();
  out.Clear();
  if (r.synchronization == Synchronization::kServer) out.set_synchronization(machine::Refinements::SERVER);
  out.set_collectives(r.collectives);
  out.set_message_holds_device(r.message_holds_device);
  if (r.overlap_slowdown != 1) out.set_overlap_slowdown(r.overlap_slowdown);
  out.set_copy_bandwidth(r.copy_bandwidth);
  out.set_reduction_bandwidth(r.reduction_bandwidth);
  out.set_message_overhead_ns(r.message_overhead);
  out.set_links_only(r.links_only);
  if (r == Refinements{}) file.clear_refinements();
  return MachineBuilder(file, name_).build();
}

}  // namespace ff
