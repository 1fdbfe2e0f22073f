// Machines: what a plan is made for. A machine file (protobuf text format, machine.proto) or a preset becomes
// devices, directed links and a route between any two devices. Comes before the search and the simulator,
// which read it only.
//
//   Machine m = load_machine("p100-4x4");                 // 4 nodes of 4 GPUs
//   m.num_devices()                                       // 16, node 0 first
//   m.route(DeviceId(0), DeviceId(1))                     // one NVLink: 20e9 bytes/s
//   m.route(DeviceId(0), DeviceId(4))                     // four links, by PCIe and both nodes' cards: 11e9
//   bytes/s
//
// A full-duplex link is two `Link`s; a half-duplex one is a single `Link` on the routes of both directions.
// Routes pass through switches and hosts, never through another device; the fewest links win, then the
// widest.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/ids.h"
#include "compiler/base/units.h"

namespace ff {

enum class Backend { kCpu, kCuda };
enum class LinkKind { kNvlink, kPcie, kHostMemory, kNic, kSwitch };

/// Roofline of an op family: an op of `w` flops runs at peak * fraction * w / (w + half_work_flops),
/// and moves its bytes at memory_bandwidth * memory_fraction.
struct Efficiency {
  std::string family;  // "default" serves families that have no entry
  double fraction = 1;
  double half_work_flops = 0;
  double memory_fraction = 1;
};

struct DeviceKind {
  std::string name;
  Backend backend = Backend::kCpu;
  int64_t memory_bytes = 0;
  double flops_f32 = 0;         // per second
  double flops_f64 = 0;         // flops_f32 / 2 unless given
  double flops_bf16 = 0;        // flops_f32 unless given; f16 as well
  double memory_bandwidth = 0;  // bytes per second
  std::vector<Efficiency> efficiencies;
  Nanoseconds kernel_launch = 0;   // no kernel takes less
  Nanoseconds message_launch = 0;  // no message takes less
  int threads = 1;                 // per rank

  /// The entry of this family, else "default", else the whole of the peaks.
  const Efficiency& efficiency(std::string_view family) const;
};

struct Device {
  int kind = 0;
  int node = 0;
  std::string name;  // "node0/gpu1"
};

/// One direction of a full-duplex link, or both of a half-duplex one.
struct Link {
  std::string name;  // "node0/gpu0>pcie", "node0/gpu0<>pcie"
  LinkKind kind = LinkKind::kPcie;
  double bandwidth = 0;  // bytes per second
  Nanoseconds latency = 0;
};

/// The links that a message passes, in order. Empty from a device to itself.
struct Route {
  static constexpr int kMaxLinks = 14;
  std::array<LinkId, kMaxLinks> links;
  int size = 0;
  Nanoseconds latency = 0;  // of all links together
  double bandwidth = 0;     // the least on the way; 0 for an empty route

  const LinkId* begin() const { return links.data(); }
  const LinkId* end() const { return links.data() + size; }
  bool empty() const { return size == 0; }
};

/// COLLECTIVES: a gradient is reduced among the replicas. SERVER: every weight is synchronised through one
/// server, the device of its first replica, piece by piece: new weights go out while gradients come in.
enum class Synchronization { kCollectives, kServer };

/// What goes beyond "a transfer takes size / bandwidth and the runtime adds nothing". The defaults add
/// nothing.
struct Refinements {
  Synchronization synchronization = Synchronization::kCollectives;
  bool collectives = false;  // collective algorithms are priced as such; off: point-to-point messages only
  bool message_holds_device = false;  // a message keeps both its devices busy: no overlap with compute
  double overlap_slowdown = 1;        // compute takes this many times longer while its device communicates
  double copy_bandwidth = 0;          // bytes per second of box copies inside a device; 0: free
  double reduction_bandwidth = 0;     // bytes per second of summing what arrived; 0: free
  Nanoseconds message_overhead = 0;   // per message, at each end
  bool links_only = false;  // a device has any number of messages in flight; off: one at a time, in or out

  friend bool operator==(const Refinements&, const Refinements&) = default;
};

/// Devices and links together fit the 16-bit resource ids of the simulator (two per device, one per link).
inline constexpr int kMaxDevices = 2048;
inline constexpr int kMaxLinks = 28000;

class Machine {
 public:
  const std::string& name() const { return name_; }
  const std::vector<DeviceKind>& kinds() const { return kinds_; }
  const std::vector<Device>& devices() const { return devices_; }
  const std::vector<Link>& links() const { return links_; }
  const Refinements& refinements() const { return refinements_; }
  int num_devices() const { return static_cast<int>(devices_.size()); }
  int num_nodes() const { return static_cast<int>(nodes_.size()); }
  int num_links() const { return static_cast<int>(links_.size()); }
  int node_of(DeviceId d) const { return devices_[d.index()].node; }
  const DeviceKind& kind_of(DeviceId d) const {
    return kinds_[static_cast<size_t>(devices_[d.index()].kind)];
  }
  /// Put together from tables of one node kind: a few copies, no search.
  Route route(DeviceId from, DeviceId to) const;
  /// Canonical text: the machine file without comments, which loads to this machine.
  const std::string& text() const { return text_; }
  /// Of text(): equal on every platform.
  uint64_t hash() const { return hash_; }
  /// The same machine under other refinements, e.g. Refinements{} for the paper's assumptions.
  Machine with_refinements(const Refinements& refinements) const;

 private:
  friend class MachineBuilder;
  struct LocalRoute {  // links counted from the node's first
    std::vector<int16_t> links;
    Nanoseconds latency = 0;
    double bandwidth = 0;
  };
  struct NodeKind {
    int devices = 0;
    std::vector<LocalRoute> between;   // [from * devices + to]
    std::vector<LocalRoute> up, down;  // device to network and back
  };
  struct Node {
    int kind = 0;
    int first_device = 0;
    int first_link = 0;
  };
  static void append(const LocalRoute& part, int first_link, Route& route);

  std::string name_, text_;
  uint64_t hash_ = 0;
  std::vector<DeviceKind> kinds_;
  std::vector<Device> devices_;
  std::vector<Link> links_;
  std::vector<Node> nodes_;
  std::vector<NodeKind> node_kinds_;
  LinkId core_switch_;  // on every route between nodes, if the file gives it a bandwidth
  Refinements refinements_;
};

/// A preset ("p100-4x4"), a preset with more or fewer nodes or devices ("p100-4x4:nodes=2",
/// "k80-16x4:devices=6"; nodes are filled in order), or a path to a machine file. Throws UserError naming the
/// file, its line where there is one, and what to change.
Machine load_machine(const std::string& file_or_preset);
/// The same from the text of a machine file; `source` is what errors call it.
Machine parse_machine(const std::string& text, const std::string& source);

std::vector<std::string> preset_names();
/// The text with its comments; throws UserError for a name that is not in preset_names().
std::string preset_text(const std::string& name);

}  // namespace ff
