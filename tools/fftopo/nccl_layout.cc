// The tree as a Topology: which switches stay, who is linked to whom, whose card is whose.
#include <algorithm>
#include <map>
#include <set>

#include "tools/fftopo/nccl_xml.h"

namespace ff {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string gpu_name(size_t i) { return "GPU" + std::to_string(i); }

}  // namespace

/// A route has room for one level of switches on each side: the lowest that joins two or more things stays.
void NcclImport::keep_switches() {
  bool nested = false;
  for (Device& gpu : devices_) {
    int s = gpu.parent;
    for (; s >= 0 && up(s).leaves < 2; s = up(s).parent) gpu.pcie = std::min(gpu.pcie, up(s).bandwidth);
    if (s < 0 || up(s).place >= 0) continue;
    double bandwidth = up(s).bandwidth;
    for (int above = up(s).parent; above >= 0; above = up(above).parent) {
      bandwidth = std::min(bandwidth, up(above).bandwidth);
      nested |= up(above).leaves > up(s).leaves;
    }
    up(s).place = static_cast<int>(out_.bridges.size());
    out_.bridges.push_back({gpu.cpu, bandwidth});
  }
  if (nested) {
    out_.notes.emplace_back(
        "of nested PCIe switches the lowest are kept: what they share above is not modelled");
  }
}

void NcclImport::make_gpus() {
  out_.sockets = static_cast<int>(numa_of_.size());
  std::map<std::string, int> chips;
  bool reordered = false;
  for (size_t i = 0; i < devices_.size(); ++i) {
    const Device& device = devices_[i];
    Gpu gpu;
    gpu.numa = numa_of_[static_cast<size_t>(device.cpu)];
    gpu.socket = device.cpu;
    gpu.pcie = device.pcie;
    gpu.nvlinks.assign(devices_.size(), 0);
    for (int s = device.parent; s >= 0 && gpu.bridge < 0; s = up(s).parent) gpu.bridge = up(s).place;
    const std::string bus = device.pci.attribute("busid").value();
    for (size_t other = 0; other < devices_.size(); ++other) {
      if (other == i || devices_[other].dev != device.dev) continue;
      if (devices_[other].pci.attribute("busid").value() == bus) {
        gpu.chip = chips.emplace(bus, static_cast<int>(chips.size())).first->second;
      }
    }
    reordered |= i > 0 && device.rank >= 0 && device.rank < devices_[i - 1].rank;
    out_.gpus.push_back(std::move(gpu));
  }
  if (reordered) out_.notes.emplace_back("GPUs are numbered by device; NCCL's ranks went in another order");
  if (!chips.empty()) {
    out_.notes.emplace_back("GPUs that are parts of one device share its memory, arithmetic and links");
  }
}

void NcclImport::read_nvlinks() {
  std::map<std::string, size_t> gpu_at;
  for (size_t i = 0; i < devices_.size(); ++i) {
    gpu_at.emplace(lower(devices_[i].pci.attribute("busid").value()), i);
  }
  for (size_t i = 0; i < devices_.size(); ++i) {
    for (const pugi::xml_node& link : devices_[i].node.children("nvlink")) {
      const int count = link.attribute("count").as_int();
      const auto target = gpu_at.find(lower(link.attribute("target").value()));
      const bool display = std::string(link.attribute("tclass").value()).rfind("0x03", 0) == 0;
      if (target != gpu_at.end()) {
        out_.gpus[i].nvlinks[target->second] += count;
      } else if (display) {
        out_.gpus[i].foreign_links += count;
      } else {
        out_.gpus[i].switch_links += count;
      }
    }
    if (out_.gpus[i].foreign_links > 0) {
      out_.notes.push_back(gpu_name(i) + " has NVLinks to GPUs that the file does not list: left out");
    }
  }
}

/// All NVLinks to switches lead to one fabric, under however many names a GPU sees it.
void NcclImport::check_fabric() {
  std::map<size_t, std::vector<size_t>> by_targets;  // how many switches are seen, by which GPUs
  std::set<int> totals;
  for (size_t i = 0; i < devices_.size(); ++i) {
    const auto links = devices_[i].node.children("nvlink");
    if (out_.gpus[i].switch_links == 0) continue;
    by_targets[static_cast<size_t>(std::distance(links.begin(), links.end()))].push_back(i);
    totals.insert(out_.gpus[i].switch_links);
  }
  if (by_targets.size() > 1) {
    const auto few = std::min_element(by_targets.begin(), by_targets.end(), [](const auto& a, const auto& b) {
      return a.second.size() < b.second.size();
    });
    for (size_t i : few->second) {
      out_.notes.push_back(gpu_name(i) + " sees " + std::to_string(few->first) +
                           " NVLink target(s), other GPUs other numbers: taken for the same fabric");
    }
  }
  if (totals.size() > 1) out_.notes.emplace_back("the GPUs have different numbers of NVLinks to the switch");
}

/// How far up from the GPU the switch is that it shares with the card; large: the socket, larger: the host.
int NcclImport::steps_between(const Device& gpu, const Slot& card) const {
  int steps = 0;
  for (int s = gpu.parent; s >= 0; s = up(s).parent, ++steps) {
    for (int c = card.parent; c >= 0; c = up(c).parent) {
      if (c == s) return steps;
    }
  }
  return gpu.cpu == card.cpu ? 1000 : 2000;
}

void NcclImport::choose_cards() {
  for (const Slot& slot : slots_) {
    const double wire = slot.gbits * 1e9 / 8;
    out_.cards.push_back({slot.pcie > 0 ? std::min(wire, slot.pcie) : wire, slot.assumed});
  }
  for (size_t i = 0; i < devices_.size(); ++i) {
    std::pair<int, double> best{3000, 0};
    std::vector<int>& chosen = out_.gpus[i].cards;
    for (size_t c = 0; c < slots_.size(); ++c) {
      const std::pair<int, double> is{steps_between(devices_[i], slots_[c]), -out_.cards[c].bandwidth};
      if (is < best) chosen.clear();
      best = std::min(best, is);
      if (is == best) chosen.push_back(static_cast<int>(c));
    }
  }
}

std::string NcclImport::link_of_first_two() const {
  if (devices_.size() < 2) return {};
  const Gpu& a = out_.gpus[0];
  const Gpu& b = out_.gpus[1];
  if (a.chip >= 0 && a.chip == b.chip) return "the same chip";
  if (a.nvlinks[1] > 0) return "NV" + std::to_string(a.nvlinks[1]);
  if (a.switch_links > 0 && b.switch_links > 0) {
    return "NV" + std::to_string(std::min(a.switch_links, b.switch_links)) + ", by NVSwitch";
  }
  for (int s = devices_[0].parent; s >= 0; s = up(s).parent) {
    for (int t = devices_[1].parent; t >= 0; t = up(t).parent) {
      if (s != t) continue;
      const bool both = s == devices_[0].parent && t == devices_[1].parent;
      return both ? "PIX (one PCIe switch)" : "PXB (several PCIe switches)";
    }
  }
  return a.socket == b.socket ? "NODE (the same socket)" : "SYS (from socket to socket)";
}

}  // namespace ff
