#include "tools/fftopo/gpu_kinds.h"

#include <algorithm>

#include "compiler/base/check.h"
#include "tools/cli/command_line.h"
#include "tools/fftopo/topology.h"

namespace ff {
namespace {

constexpr double kGen3 = 11e9, kGen4 = 22e9, kGen5 = 44e9, kGen6 = 88e9;

// NVIDIA's data sheets and announcements; peaks of dense arithmetic at boost clocks.
std::vector<GpuKind> make_kinds() {
  return {
      {"k80", "12 GiB", 4.4e12, 1.45e12, 4.4e12, 240e9, 0, kGen3, {"0x102d"}, {"K80"}},
      {"p40", "24 GiB", 11.8e12, 0.37e12, 11.8e12, 346e9, 0, kGen3, {"0x1b38"}, {"P40"}},
      {"p100", "16 GiB", 10.6e12, 5.3e12, 10.6e12, 732e9, 20e9, kGen3, {"0x15f9"}, {"P100"}},
      {"v100-32", "32 GiB", 15.7e12, 7.8e12, 15.7e12, 900e9, 25e9, kGen3, {"0x1db5"}, {"V100", "32GB"}},
      {"v100", "16 GiB", 15.7e12, 7.8e12, 15.7e12, 900e9, 25e9, kGen3, {"0x1db1", "0x1db4"}, {"V100"}},
      {"rtx2080ti", "11 GiB", 13.4e12, 0.42e12, 13.4e12, 616e9, 25e9, kGen3, {"0x1e07"}, {"2080 Ti"}},
      {"a100-80", "80 GiB", 19.5e12, 9.7e12, 312e12, 2039e9, 25e9, kGen4, {"0x20b2"}, {"A100", "80GB"}},
      {"a100", "40 GiB", 19.5e12, 9.7e12, 312e12, 1555e9, 25e9, kGen4, {"0x20b0"}, {"A100"}},
      {"rtx3090", "24 GiB", 35.6e12, 0.56e12, 71e12, 936e9, 14e9, kGen4, {"0x2204"}, {"3090"}},
      {"a6000", "48 GiB", 38.7e12, 0.6e12, 155e12, 768e9, 14e9, kGen4, {"0x2230"}, {"A6000"}},
      {"rtx4090", "24 GiB", 82.6e12, 1.3e12, 165e12, 1008e9, 0, kGen4, {"0x2684"}, {"4090"}},
      {"rtx6000-ada", "48 GiB", 91.1e12, 1.4e12, 364e12, 960e9, 0, kGen4, {"0x26b1"}, {"6000 Ada"}},
      {"l20", "48 GiB", 59.8e12, 0.93e12, 119e12, 864e9, 0, kGen4, {"0x26ba"}, {"L20"}},
      {"h800", "80 GiB", 67e12, 1e12, 989e12, 3350e9, 25e9, kGen5, {"0x2324"}, {"H800"}},
      {"h100", "80 GiB", 67e12, 34e12, 989e12, 3350e9, 25e9, kGen5, {"0x2330"}, {"H100"}},
      {"h200", "139 GiB", 67e12, 34e12, 989e12, 4800e9, 25e9, kGen5, {"0x2335"}, {"H200"}},
      {"gh200", "96 GiB", 67e12, 34e12, 989e12, 4000e9, 25e9, kGen5, {"0x2342"}, {"GH200"}},
      {"b200", "180 GiB", 80e12, 40e12, 2250e12, 8000e9, 50e9, kGen5, {"0x2901"}, {"B200"}},
      {"vr200", "288 GiB", 130e12, 33e12, 4000e12, 22e12, 50e9, kGen6, {"0x307f"}, {"VR200"}},
  };
}

}  // namespace

const std::vector<GpuKind>& gpu_kinds() {
  static const std::vector<GpuKind> kinds = make_kinds();
  return kinds;
}

const GpuKind& gpu_kind(const std::string& name) {
  std::vector<std::string> names;
  for (const GpuKind& kind : gpu_kinds()) {
    if (kind.name == name) return kind;
    names.push_back(kind.name);
  }
  throw UserError("--gpu " + name + ": no such GPU is known; did you mean '" + nearest(name, names) + "'?",
                  "one of " + joined(names));
}

const GpuKind* find_gpu_device(const std::string& pci_device) {
  for (const GpuKind& kind : gpu_kinds()) {
    const auto& ids = kind.pci_devices;
    if (std::find(ids.begin(), ids.end(), pci_device) != ids.end()) return &kind;
  }
  return nullptr;
}

const GpuKind* find_gpu_name(const std::string& printed) {
  const GpuKind* best = nullptr;
  for (const GpuKind& kind : gpu_kinds()) {
    const bool all = std::all_of(kind.words.begin(), kind.words.end(), [&](const std::string& word) {
      return printed.find(word) != std::string::npos;
    });
    // "GH200" holds "H200", and "A100-SXM4-80GB" both A100s: the more that is matched, the better.
    const auto length = [](const GpuKind& k) {
      size_t n = 0;
      for (const std::string& word : k.words) n += word.size();
      return n;
    };
    if (all && (best == nullptr || length(kind) > length(*best))) best = &kind;
  }
  return best;
}

double pcie_bandwidth(double gigatransfers, double lanes) {
  // 8b/10b coding up to 5 GT/s, 128b/130b above; packet headers and flow control leave 0.7 of that.
  const double coding = gigatransfers <= 5 ? 8.0 / 10 : 128.0 / 130;
  return gigatransfers * 1e9 / 8 * coding * lanes * 0.7;
}

}  // namespace ff
