// Internal to the room: a parsed machine file becomes a Machine. Checks everything the grammar cannot say.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/machine/machine.h"
#include "compiler/machine/machine.pb.h"

namespace ff {

class MachineBuilder {
 public:
  MachineBuilder(const machine::MachineFile& file, std::string source)
      : file_(file), source_(std::move(source)) {}
  Machine build();

 private:
  // A link of a node kind, one direction, between endpoints: devices first, then switches, host and network.
  struct Hop {
    int from = 0;
    int to = 0;
    int link = 0;  // into Local::links
  };
  struct Local {
    std::string name;                // of the node kind
    std::vector<std::string> names;  // of its endpoints
    std::vector<int> kinds;          // of its devices
    int devices = 0;                 // written in the file
    int used = 0;                    // of them, the first so many
    std::vector<Link> links;         // named inside the node
    std::vector<Hop> hops;
  };

  [[noreturn]] void fail(const std::string& message, const std::string& hint = {}) const;
  void add_kinds();
  void add_refinements();
  Local read_node(const machine::NodeGroup& group) const;
  void read_devices(const machine::NodeGroup& group, Local& local) const;
  void read_link(const machine::Link& link, Local& local) const;
  void add_link(const machine::Link& link, int from, int to, Local& local) const;
  std::vector<int> match(const machine::Link& link, const std::string& pattern, const Local& local) const;
  // Longest part of a route: inside the node, or from a device to the network.
  static constexpr size_t kMaxRouteDepth = 6;
  static_assert(2 * kMaxRouteDepth + 1 <= Route::kMaxLinks);
  static std::vector<Machine::LocalRoute> routes_from(const Local& local, int start);
  Machine::NodeKind find_routes(const Local& local) const;
  void add_nodes(const Local& local, int count);
  void add_network();

  const machine::MachineFile& file_;
  std::string source_;
  Machine machine_;
};

}  // namespace ff
