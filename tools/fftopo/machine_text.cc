// A topology as a machine file.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "tools/fftopo/topology.h"

namespace ff {
namespace {

std::string gpu_name(size_t i) { return "gpu" + std::to_string(i); }
std::string bridge_name(int i) { return "plx" + std::to_string(i); }

class NodeText {
 public:
  explicit NodeText(const Topology& topology) : t_(topology) {}
  std::string run();

 private:
  void link(const std::string& kind, const std::string& from, const std::string& to, double bandwidth,
            int latency);
  void nvlinks();
  void pcie();
  void network();
  std::string socket_name(int socket) const;
  std::string above(size_t gpu) const;
  std::string common(const std::vector<size_t>& gpus) const;
  bool has_host() const { return t_.gpus[0].pcie > 0 && t_.gpus[0].chip < 0; }

  const Topology& t_;
  std::set<std::string> switches_;
  std::ostringstream links_;
};

void NodeText::link(const std::string& kind, const std::string& from, const std::string& to, double bandwidth,
                    int latency) {
  for (const std::string& end : {from, to}) {
    if (end.rfind("gpu", 0) != 0 && end != "host" && end != "network") switches_.insert(end);
  }
  links_ << "  link { kind: " << kind << " from: \"" << from << "\" to: \"" << to
         << "\" bandwidth: " << number_text(bandwidth) << " latency_ns: " << latency << " }\n";
}

std::string NodeText::socket_name(int socket) const {
  return t_.sockets > 1 ? "socket" + std::to_string(socket) : "host";
}

std::string NodeText::above(size_t gpu) const {
  const Gpu& g = t_.gpus[gpu];
  return g.bridge >= 0 ? bridge_name(g.bridge) : socket_name(g.socket);
}

/// The nearest endpoint that all of them reach without crossing another.
std::string NodeText::common(const std::vector<size_t>& gpus) const {
  const auto same = [&](auto of) {
    return std::all_of(gpus.begin(), gpus.end(),
                       [&](size_t g) { return of(t_.gpus[g]) == of(t_.gpus[gpus[0]]); });
  };
  const bool bridge = same([](const Gpu& g) { return g.bridge; });
  if (bridge && t_.gpus[gpus[0]].bridge >= 0) return above(gpus[0]);
  return same([](const Gpu& g) { return g.socket; }) ? socket_name(t_.gpus[gpus[0]].socket) : "host";
}

void NodeText::nvlinks() {
  const double one = t_.kind.nvlink > 0 ? t_.kind.nvlink : 25e9;
  std::set<int> chips;
  for (size_t a = 0; a < t_.gpus.size(); ++a) {
    const Gpu& gpu = t_.gpus[a];
    std::string end = gpu_name(a);
    if (gpu.chip >= 0) {
      end = "chip" + std::to_string(gpu.chip);
      link("NVLINK", gpu_name(a), end, t_.kind.memory_bandwidth / 2, 500);
      if (!chips.insert(gpu.chip).second) continue;
    }
    if (gpu.switch_links > 0) link("NVLINK", end, "nvswitch", gpu.switch_links * one, 500);
    for (size_t b = a + 1; b < t_.gpus.size(); ++b) {
      const int links = std::max(gpu.nvlinks[b], t_.gpus[b].nvlinks[a]);
      if (links > 0) link("NVLINK", end, gpu_name(b), links * one, 1000);
    }
  }
}

void NodeText::pcie() {
  if (!has_host()) return;
  std::set<int> sockets;
  for (size_t g = 0; g < t_.gpus.size(); ++g) {
    link("PCIE", gpu_name(g), above(g), t_.gpus[g].pcie, 1000);
    sockets.insert(t_.gpus[g].socket);
  }
  for (size_t b = 0; b < t_.bridges.size(); ++b) {
    link("PCIE", bridge_name(static_cast<int>(b)), socket_name(t_.bridges[b].socket), t_.bridges[b].bandwidth,
         500);
  }
  for (const auto& [a, b] : t_.bridge_links) {
    link("SWITCH", bridge_name(a), bridge_name(b),
         std::min(t_.bridges[static_cast<size_t>(a)].bandwidth, t_.bridges[static_cast<size_t>(b)].bandwidth),
         500);
  }
  if (t_.sockets < 2) return;
  for (int s : sockets) link("HOST_MEMORY", socket_name(s), "host", t_.socket_bandwidth, 250);
}

/// GPUs with the same nearest cards take them in turn. A card that GPUs share is a link of what they share;
/// one that is a GPU's own, or one of several at the same place, is a link of the GPU's own.
void NodeText::network() {
  std::map<std::vector<int>, size_t> turns;
  std::map<int, std::vector<size_t>> users;
  for (size_t g = 0; g < t_.gpus.size(); ++g) {
    const std::vector<int>& cards = t_.gpus[g].cards;
    if (!cards.empty()) users[cards[turns[cards]++ % cards.size()]].push_back(g);
  }
  std::map<std::string, int> at;
  for (const auto& [card, gpus] : users) ++at[common(gpus)];
  for (const auto& [card, gpus] : users) {
    const double bandwidth = t_.cards[static_cast<size_t>(card)].bandwidth;
    const std::string where = common(gpus);
    if (gpus.size() > 1 && at[where] == 1) {
      link("NIC", where, "network", bandwidth, 1000);
      continue;
    }
    for (size_t g : gpus) {
      const double part = bandwidth / static_cast<double>(gpus.size());
      link("NIC", gpu_name(g), "network", std::min(part, t_.gpus[g].pcie), 1500);
    }
  }
}

std::string NodeText::run() {
  nvlinks();
  pcie();
  network();
  std::ostringstream out;
  out << "node {\n";
  if (t_.hosts > 1) out << "  count: " << t_.hosts << "\n";
  out << "  device { kind: \"" << t_.kind.name << "\" count: " << t_.gpus.size() << " }\n";
  for (const std::string& name : switches_) out << "  switch: \"" << name << "\"\n";
  out << links_.str() << "}\n";
  return out.str();
}

}  // namespace

std::string device_kind_text(const GpuKind& kind, double share) {
  std::ostringstream out;
  out << "# Peaks from data sheets. Estimates, not measured: fractions, half_work, latencies and launch "
         "times.\n"
      << "device_kind {\n  name: \"" << kind.name << "\" backend: CUDA memory: \"" << kind.memory
      << "\" flops_f32: " << number_text(kind.flops_f32 * share)
      << " flops_f64: " << number_text(kind.flops_f64 * share)
      << "\n  flops_bf16: " << number_text(kind.flops_bf16 * share)
      << " memory_bandwidth: " << number_text(kind.memory_bandwidth * share)
      << "\n  efficiency { family: \"default\" fraction: 0.8 half_work: 2e9 memory_fraction: 0.8 }\n"
      << "  kernel_launch_ns: 5000 message_launch_ns: 5000\n}\n";
  return out.str();
}

std::string machine_text(const Topology& topology) {
  GpuKind kind = topology.kind;
  const int parts = static_cast<int>(
      std::count_if(topology.gpus.begin(), topology.gpus.end(), [](const Gpu& g) { return g.chip == 0; }));
  if (parts > 1) kind.memory = std::to_string(std::stoi(kind.memory) / parts) + " GiB";
  return device_kind_text(kind, parts > 1 ? 1.0 / parts : 1) + NodeText(topology).run() +
         "refinements { collectives: true }\n";
}

std::string machine_file(const std::string& source, const std::string& facts, const std::string& rest) {
  std::string text, name = std::filesystem::path(source).stem().string();
  std::istringstream lines(facts);
  for (std::string line; std::getline(lines, line);) text += "# " + line + "\n";
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '-';
  }
  return text + "name: \"" + (name.empty() ? "imported" : name) + "\"\n" + rest;
}

Imported import_text(const std::string& text, const std::string& source, const ImportOptions& options) {
  const Format format = recognise(text, source);
  if (format == Format::kNcclTests) return import_nccl_tests(text, source, options);
  const Topology topology = format == Format::kNcclXml ? import_nccl_xml(text, source, options)
                                                       : import_smi_matrix(text, source, options);
  const std::string facts = facts_text(topology, source);
  return {facts, machine_file(source, facts, machine_text(topology))};
}

}  // namespace ff
