// Internal to the import of NCCL's topology dump: a tree of <cpu>, <pci>, <gpu> with <nvlink>, <nic> with
// <net>. nccl_xml.cc reads the tree, nccl_layout.cc makes a Topology of it.
#pragma once

#include <map>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "tools/fftopo/topology.h"

namespace ff {

class NcclImport {
 public:
  NcclImport(const std::string& source, const ImportOptions& options) : source_(source), options_(options) {}
  Topology run(const pugi::xml_node& root);

 private:
  // `parent` is the PCIe switch above, -1 if there is none.
  struct Switch {
    int parent = -1;
    double bandwidth = 0;  // bytes per second to what is above; 0: the file's figure is not believed
    int leaves = 0;        // GPUs and cards below
    double widest = 0;     // of them
    int place = -1;        // in Topology::bridges, if it is kept
  };
  struct Device {
    pugi::xml_node node, pci;
    int dev = 0, rank = -1, cpu = 0, parent = -1;
    double pcie = 0;
  };
  struct Slot {
    int cpu = 0, parent = -1;
    double pcie = 0;   // bytes per second; 0: not said
    double gbits = 0;  // of all its ports
    bool assumed = false;
    std::string first_port;
  };

  void read_cpu(const pugi::xml_node& cpu);
  void visit(const pugi::xml_node& node, int cpu, int parent, const pugi::xml_node& pci);
  void read_net(const pugi::xml_node& net, int cpu, int parent, const pugi::xml_node& pci);
  int slot_of(const pugi::xml_node& net, int cpu, int parent, const pugi::xml_node& pci);
  void choose_kind();

  void measure_switches();
  void keep_switches();
  void make_gpus();
  void read_nvlinks();
  void check_fabric();
  void choose_cards();
  int steps_between(const Device& gpu, const Slot& card) const;
  std::string link_of_first_two() const;
  Switch& up(int s) { return switches_[static_cast<size_t>(s)]; }
  const Switch& up(int s) const { return switches_[static_cast<size_t>(s)]; }

  const std::string& source_;
  const ImportOptions& options_;
  Topology out_;
  std::vector<int> numa_of_;  // of each <cpu>
  std::vector<Switch> switches_;
  std::vector<Device> devices_;  // the GPUs
  std::vector<Slot> slots_;
  std::map<std::string, int> slot_by_key_;
};

}  // namespace ff
