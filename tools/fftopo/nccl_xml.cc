#include "tools/fftopo/nccl_xml.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "compiler/base/check.h"

namespace ff {
namespace {

bool is_virtual(const std::string& name) {
  for (const char* prefix :
       {"br-", "veth", "docker", "lxcbr", "virbr", "cali", "cni", "flannel", "tun", "tap"}) {
    if (name.rfind(prefix, 0) == 0) return true;
  }
  return false;
}

/// 0 where the file does not say, or says what virtual machines make up: no lanes, or one of the first
/// generation.
double slot_bandwidth(const pugi::xml_node& pci) {
  const double rate = std::strtod(pci.attribute("link_speed").value(), nullptr);
  const double lanes = pci.attribute("link_width").as_double();
  if (rate <= 0 || lanes <= 0 || (rate <= 2.5 && lanes <= 1)) return 0;
  return pcie_bandwidth(rate, lanes);
}

double gpu_bandwidth(const pugi::xml_node& pci, const GpuKind& kind) {
  const double written = slot_bandwidth(pci);
  if (written > 0) return written;
  const double rate = std::strtod(pci.attribute("link_speed").value(), nullptr);
  return rate > 2.5 ? pcie_bandwidth(rate, 16) : kind.pcie;
}

}  // namespace

Topology import_nccl_xml(const std::string& text, const std::string& source, const ImportOptions& options) {
  pugi::xml_document document;
  const size_t first = text.find('<');
  FF_CHECK(first != std::string::npos && document.load_string(text.c_str() + first)) << source;
  return NcclImport(source, options).run(document.document_element());
}

Topology NcclImport::run(const pugi::xml_node& root) {
  out_.format = "NCCL topology (XML)";
  if (root.name() == std::string("system")) {
    std::set<std::string> hosts;
    for (const pugi::xml_node& cpu : root.children("cpu")) {
      read_cpu(cpu);
      hosts.insert(cpu.attribute("host_hash").value());
    }
    if (hosts.size() > 1) {
      out_.notes.push_back("the file has the processors of " + std::to_string(hosts.size()) +
                           " hosts: taken as one node");
    }
  } else if (root.name() == std::string("cpu")) {
    read_cpu(root);
  } else {
    numa_of_.push_back(-1);
    visit(root, 0, -1, {});
    out_.notes.emplace_back("the file is one <pci> of a dump: what else the host has is not known");
  }
  if (devices_.empty()) throw UserError(source_ + ": has no <gpu> below a <cpu>", "dump the topology again");
  std::stable_sort(devices_.begin(), devices_.end(), [](const Device& a, const Device& b) {
    return std::pair(a.dev, a.rank) < std::pair(b.dev, b.rank);
  });
  choose_kind();
  measure_switches();
  keep_switches();
  make_gpus();
  read_nvlinks();
  check_fabric();
  choose_cards();
  out_.link01 = link_of_first_two();
  return std::move(out_);
}

void NcclImport::read_cpu(const pugi::xml_node& cpu) {
  const int id = cpu.attribute("numaid").as_int(-1);
  if (id >= 0) out_.numa.push_back(id);
  numa_of_.push_back(id);
  // What a socket gives another, as NCCL counts it (its topo.h), by vendor and model.
  const int model = cpu.attribute("modelid").as_int();
  if (cpu.attribute("vendor").value() == std::string("GenuineIntel")) {
    out_.socket_bandwidth = model < 85 ? 6e9 : model < 106 ? 10e9 : 22e9;
  }
  for (const pugi::xml_node& child : cpu.children()) {
    visit(child, static_cast<int>(numa_of_.size()) - 1, -1, {});
  }
}

void NcclImport::visit(const pugi::xml_node& node, int cpu, int parent, const pugi::xml_node& pci) {
  const std::string name = node.name();
  pugi::xml_node inside = pci;
  if (name == "net") {
    read_net(node, cpu, parent, pci);
  } else if (name == "gpu") {
    const int dev = node.attribute("dev").as_int(), rank = node.attribute("rank").as_int(-1);
    devices_.push_back({node, pci, dev, rank, cpu, parent, 0});
    return;
  } else if (name == "pci") {
    inside = node;
    if (node.child("pci")) {
      switches_.push_back({parent, slot_bandwidth(node)});
      parent = static_cast<int>(switches_.size()) - 1;
    }
  } else if (name != "nic") {
    return;
  }
  for (const pugi::xml_node& child : node.children()) visit(child, cpu, parent, inside);
}

void NcclImport::read_net(const pugi::xml_node& net, int cpu, int parent, const pugi::xml_node& pci) {
  Nic nic;
  nic.name = net.attribute("name").value();
  nic.gbits = net.attribute("speed").as_double() / 1000;
  nic.virtual_interface = is_virtual(nic.name);
  if (!nic.virtual_interface) {
    nic.card = slot_of(net, cpu, parent, pci);
    Slot& slot = slots_[static_cast<size_t>(nic.card)];
    slot.gbits += nic.gbits > 0 ? nic.gbits : options_.nic_gbits;
    slot.assumed |= nic.gbits <= 0;
    if (slot.first_port.empty()) {
      slot.first_port = nic.name;
    } else {
      out_.notes.push_back(nic.name + " and " + slot.first_port + " are ports of one card: one way out");
    }
  }
  out_.nics.push_back(std::move(nic));
}

/// Ports of one PCI function with one GUID, or with none, are a card.
int NcclImport::slot_of(const pugi::xml_node& net, int cpu, int parent, const pugi::xml_node& pci) {
  const std::string key =
      pci ? std::string(pci.attribute("busid").value()) + " " + net.attribute("guid").value()
          : net.attribute("name").value();
  const auto [at, fresh] = slot_by_key_.emplace(key, static_cast<int>(slots_.size()));
  if (fresh) slots_.push_back({cpu, parent, slot_bandwidth(pci), 0, false, {}});
  return at->second;
}

void NcclImport::choose_kind() {
  const std::string device = devices_[0].pci.attribute("device").value();
  const GpuKind* known = find_gpu_device(device);
  if (!options_.gpu.empty()) {
    out_.kind = gpu_kind(options_.gpu);
  } else if (known != nullptr) {
    out_.kind = *known;
  } else {
    out_.kind = gpu_kind("a100");
    out_.kind_note =
        device.empty() ? "the GPUs' PCI device is not given" : "PCI device " + device + " is not known";
  }
  for (const Device& gpu : devices_) {
    if (gpu.pci.attribute("device").value() == device) continue;
    out_.notes.emplace_back("the GPUs are of different kinds: all are taken for the first");
    break;
  }
}

void NcclImport::measure_switches() {
  bool guessed = false;
  const auto count = [&](int parent, double bandwidth) {
    for (int s = parent; s >= 0; s = up(s).parent) {
      ++up(s).leaves;
      up(s).widest = std::max(up(s).widest, bandwidth);
    }
  };
  for (Device& gpu : devices_) {
    gpu.pcie = gpu_bandwidth(gpu.pci, out_.kind);
    guessed |= slot_bandwidth(gpu.pci) <= 0;
    count(gpu.parent, gpu.pcie);
  }
  for (const Slot& card : slots_) count(card.parent, card.pcie);
  for (Switch& s : switches_) {
    if (s.bandwidth > 0) continue;
    guessed |= s.leaves > 0;
    s.bandwidth = s.widest;
  }
  if (guessed) {
    out_.notes.emplace_back(
        "PCIe speeds that only a virtual machine gives (no lanes, one lane of 2.5 GT/s) are "
        "replaced by the GPUs' own");
  }
}

}  // namespace ff
