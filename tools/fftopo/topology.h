// What an import found out about a host: GPUs, who is near whom, NVLinks, network cards. The importers fill
// it in, machine_text and facts_text read it.
//
//   const Imported found = import_topology("topo.txt", options);   // nvidia-smi topo -m of two GPUs
//   found.facts      // "nvidia-smi topo -m: topo.txt\nGPUs: 2 ...\nlink GPU0-GPU1: NV4\n..."
//   found.machine    // "# nvidia-smi topo -m: topo.txt\n...device_kind { ... } node { ... }"
#pragma once

#include <string>
#include <vector>

#include "tools/fftopo/gpu_kinds.h"

namespace ff {

struct Nic {
  std::string name;
  double gbits = 0;  // per second; 0: not said
  bool virtual_interface = false;
  int card = -1;  // into Topology::cards; none for virtual interfaces
};

/// What joins the host to the network: one or more ports that share a PCIe slot.
struct Card {
  double bandwidth = 0;  // bytes per second each way
  bool assumed = false;  // the input does not say it
};

/// A PCIe switch that GPUs share.
struct Bridge {
  int socket = 0;
  double bandwidth = 0;  // to its socket
};

struct Gpu {
  int numa = -1;             // id; -1: not said
  int socket = 0;            // group of GPUs that reach each other without crossing to another socket
  int bridge = -1;           // into Topology::bridges
  int chip = -1;             // GPUs with the same one are parts of one device
  double pcie = 0;           // bytes per second to its bridge or socket
  std::vector<int> nvlinks;  // direct ones, to each GPU
  int switch_links = 0;      // NVLinks to an NVSwitch
  int foreign_links = 0;     // NVLinks to GPUs that are not listed
  std::vector<int> cards;    // the nearest, of those the fastest
  int all_nvlinks() const {
    int n = switch_links + foreign_links;
    for (int direct : nvlinks) n += direct;
    return n;
  }
};

struct Topology {
  std::string format;  // "NCCL topology (XML)"
  int hosts = 1;
  GpuKind kind;
  std::string kind_note;  // why that kind, if it is a guess
  std::vector<Gpu> gpus;
  std::vector<int> numa;  // ids; empty: not said
  int sockets = 1;
  double socket_bandwidth = 16e9;  // between sockets, bytes per second
  std::vector<Bridge> bridges;
  std::vector<std::pair<int, int>> bridge_links;  // bridges that reach each other without the host
  std::vector<Nic> nics;
  std::vector<Card> cards;
  std::string link01;  // "NV4", "PIX"; empty with one GPU
  std::vector<std::string> notes;
};

struct ImportOptions {
  std::string gpu;         // the GPUs' kind; empty: what the input says
  double nic_gbits = 100;  // of cards whose speed the input does not say
};

struct Imported {
  std::string facts;    // lines for a person
  std::string machine;  // the machine file, facts included as comments
};

enum class Format { kNcclXml, kSmiMatrix, kNcclTests };

/// Which of the three a text is. Throws UserError that says what it is instead, and what to import.
Format recognise(const std::string& text, const std::string& source);

/// `source` is what errors and facts call the text. UserErrors name it.
Topology import_nccl_xml(const std::string& text, const std::string& source, const ImportOptions& options);
Topology import_smi_matrix(const std::string& text, const std::string& source, const ImportOptions& options);
/// nccl-tests output is a measurement, not a map: it becomes a machine file at once.
Imported import_nccl_tests(const std::string& text, const std::string& source, const ImportOptions& options);

/// Any of the three.
Imported import_text(const std::string& text, const std::string& source, const ImportOptions& options);

std::string facts_text(const Topology& topology, const std::string& source);
/// Device kind, nodes, links and refinements: a machine file but for its name.
std::string machine_text(const Topology& topology);

/// Parts of machine files that all imports share.
std::string device_kind_text(const GpuKind& kind, double share = 1);
/// `facts` as comments, the name (made of the source's file name) and the rest.
std::string machine_file(const std::string& source, const std::string& facts, const std::string& rest);
/// Splits at newlines; terminal colours, carriage returns and a byte order mark are taken out.
std::vector<std::string> clean_lines(const std::string& text);
/// Without bars, and the signs of comments and quotes in front.
std::string plain(std::string line);
std::vector<std::string> words_of(const std::string& line);
/// "a, b, c".
std::string joined(const std::vector<std::string>& words);
/// As short as it can be written: "12.5e9".
std::string number_text(double value, int digits = 6);

}  // namespace ff
