// What an import found, for a person.
#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "tools/fftopo/topology.h"

namespace ff {
namespace {

std::string numa_text(const Topology& t) {
  const bool known = std::any_of(t.gpus.begin(), t.gpus.end(), [](const Gpu& g) { return g.numa >= 0; });
  if (t.numa.empty() || !known) return "unknown: the input does not say";
  std::vector<std::string> ids, of_gpus;
  for (int id : t.numa) ids.push_back(std::to_string(id));
  for (const Gpu& gpu : t.gpus) of_gpus.push_back(gpu.numa < 0 ? "?" : std::to_string(gpu.numa));
  return std::to_string(t.numa.size()) + " (" + joined(ids) + "; of the GPUs: " + joined(of_gpus) + ")";
}

std::string nic_text(const Topology& t) {
  std::map<double, std::vector<std::string>> by_speed;
  std::vector<std::string> ignored;
  size_t real = 0;
  for (const Nic& nic : t.nics) {
    if (nic.virtual_interface) {
      ignored.push_back(nic.name);
    } else {
      by_speed[nic.gbits].push_back(nic.name);
      ++real;
    }
  }
  std::string text = std::to_string(real);
  for (const auto& [gbits, names] : by_speed) {
    text += text.find(':') == std::string::npos ? ": " : "; ";
    text +=
        std::to_string(names.size()) + " x " + (gbits > 0 ? number_text(gbits) + " Gbit/s" : "unknown speed");
    text += " (" + joined(names) + ")";
  }
  if (!ignored.empty()) text += "; left out, as virtual: " + joined(ignored);
  return text;
}

}  // namespace

std::string facts_text(const Topology& t, const std::string& source) {
  std::ostringstream out;
  out << t.format << ": " << source << "\n";
  out << "GPUs: " << t.gpus.size();
  if (t.hosts > 1) out << " on each of " << t.hosts << " hosts";
  if (t.gpus.size() > 1 && t.gpus[0].chip >= 0 && t.gpus[0].chip == t.gpus[1].chip) {
    int chips = 0;
    for (const Gpu& gpu : t.gpus) chips = std::max(chips, gpu.chip + 1);
    out << " logical, " << chips << " physical";
  }
  out << " (" << t.kind.name << (t.kind_note.empty() ? "" : ", assumed") << ")\n";
  out << "NUMA nodes: " << numa_text(t) << "\n";
  out << "NICs: " << nic_text(t) << "\n";
  out << "link GPU0-GPU1: " << (t.link01.empty() ? "none, there is one GPU" : t.link01) << "\n";
  out << "NVLinks of GPU0: " << t.gpus[0].all_nvlinks() << "\n";
  for (const std::string& note : t.notes) out << "note: " << note << "\n";
  if (!t.kind_note.empty()) {
    out << "note: " << t.kind_note << ": taken for " << t.kind.name << "; say it with --gpu\n";
  }
  if (std::any_of(t.cards.begin(), t.cards.end(), [](const Card& c) { return c.assumed; })) {
    out << "note: the input does not say how fast network cards are: assumed, say it with --nic-gbits\n";
  }
  return out.str();
}

}  // namespace ff
