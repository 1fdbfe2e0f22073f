// The GPUs that are known by name: what a topology does not say and a machine file needs.
#pragma once

#include <string>
#include <vector>

namespace ff {

struct GpuKind {
  std::string name;  // "v100-32", as --gpu takes it
  std::string memory;
  double flops_f32 = 0, flops_f64 = 0, flops_bf16 = 0;  // peaks, per second
  double memory_bandwidth = 0;                          // bytes per second
  double nvlink = 0;                                    // bytes per second each way, one link; 0: has none
  double pcie = 0;                                      // bytes per second each way, 16 lanes
  std::vector<std::string> pci_devices;                 // PCI ids of NVIDIA's, "0x1db5"
  std::vector<std::string> words;                       // all of them are in the name that drivers print
};

const std::vector<GpuKind>& gpu_kinds();
/// The kind that --gpu names. Throws UserError with the nearest name.
const GpuKind& gpu_kind(const std::string& name);
/// By PCI device id, or by the name that a driver prints ("NVIDIA A100-SXM4-80GB"); null if it is not known.
const GpuKind* find_gpu_device(const std::string& pci_device);
const GpuKind* find_gpu_name(const std::string& printed);

/// What PCIe carries of its raw rate: a third generation x16 is 15.75e9 bytes/s on paper and gives 11e9.
double pcie_bandwidth(double gigatransfers, double lanes);

}  // namespace ff
