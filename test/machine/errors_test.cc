#include "compiler/base/check.h"
#include "compiler/machine/machine.h"
#include "test/catch.h"

namespace ff {
namespace {

template <typename F>
std::string message_of(F f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

std::string load_error(const std::string& name) {
  return message_of([&] { load_machine(name); });
}

std::string parse_error(const std::string& text) {
  return message_of([&] { parse_machine(text, "machine.txt"); });
}

const std::string kKind =
    "name: \"m\"\ndevice_kind { name: \"g\" backend: CUDA memory: \"1 GiB\" flops_f32: 1e12 "
    "memory_bandwidth: 1e11 }\n";

TEST_CASE("what is wrong with a name is said with the nearest preset") {
  CHECK(load_error("p100-4x5") ==
        "machine 'p100-4x5' is neither a preset nor a file; the nearest preset is 'p100-4x4'");
  CHECK(load_error("k81-16x4:nodes=2") ==
        "machine 'k81-16x4' is neither a preset nor a file; the nearest preset is 'k80-16x4'");
  CHECK(load_error("p100-4x4:racks=2") ==
        "machine 'p100-4x4:racks=2': 'racks=2' is neither nodes=K nor devices=K with K of 1 or more");
  CHECK(load_error("p100-4x4:nodes=0") ==
        "machine 'p100-4x4:nodes=0': 'nodes=0' is neither nodes=K nor devices=K with K of 1 or more");
  CHECK(load_error("p100-4x4:devices=99999") ==
        "machine 'p100-4x4:devices=99999': devices=99999 is more than the 2048 that a machine may have");
  CHECK(load_error("p100-4x4:nodes=2000") == "p100-4x4:nodes=2000: the machine has more than 2048 devices");
  CHECK(load_error("p100-4x4:devices=99999999999999999999") ==
        "machine 'p100-4x4:devices=99999999999999999999': devices=99999999999999999999 is more than the 2048 "
        "that a "
        "machine may have");
}

TEST_CASE("a folder is no machine file") { CHECK(load_error(".") == ".: is a folder, not a machine file"); }

TEST_CASE("a text that is no machine file is refused with its line and column") {
  CHECK(parse_error("name: \"m\"\n\nnodes { }\n") ==
        "machine.txt:3:7: Message type \"ff.machine.MachineFile\" has no field named \"nodes\".");
}

TEST_CASE("a link that names a missing device says which there are") {
  CHECK(parse_error(kKind + "node { name: \"n\" device { kind: \"g\" count: 4 }\n"
                            "link { name: \"x\" from: \"gpu0\" to: \"gpu7\" bandwidth: 1e9 } }") ==
        "machine.txt: link 'x' names device 'gpu7' of node kind 'n', which has devices gpu0..gpu3");
}

TEST_CASE("links and nodes that cannot work are refused") {
  const std::string two = "node { name: \"n\" device { kind: \"g\" count: 2 } ";
  CHECK(parse_error(kKind + two + "}") ==
        "machine.txt: devices 'gpu0' and 'gpu1' of node kind 'n' cannot reach each other");
  CHECK(parse_error(kKind + two + "link { name: \"x\" from: \"gpu0\" to: \"gpu1\" bandwidth: 0 } }") ==
        "machine.txt: link 'x' of node kind 'n' has no bandwidth");
  CHECK(parse_error(kKind + "node { name: \"n\" count: 2 device { kind: \"g\" } }") ==
        "machine.txt: the machine has 2 nodes, and node kind 'n' has no link to the network");
  CHECK(load_error("cpu-2:nodes=2") ==
        "cpu-2:nodes=2: the machine has 2 nodes, and node kind 'node' has no link to the network");
  CHECK(parse_error(kKind + "node { device { kind: \"h\" } }") ==
        "machine.txt: node kind 'node' names device kind 'h', which is not given");
  CHECK(parse_error(kKind) == "machine.txt: the machine has no devices");
}

TEST_CASE("a device kind without memory or rates is refused") {
  CHECK(parse_error("name: \"m\" device_kind { name: \"g\" flops_f32: 1e12 memory_bandwidth: 1e11 }") ==
        "machine.txt: device kind 'g' has no memory");
  CHECK(parse_error("name: \"m\" device_kind { name: \"g\" memory: \"1 GiB\" memory_bandwidth: 1e11 }") ==
        "machine.txt: device kind 'g' has no flops_f32");
  CHECK(parse_error("device_kind { name: \"g\" }") == "machine.txt: the machine has no name");
  CHECK(parse_error(kKind + "node { device { kind: \"g\" } } refinements { overlap_slowdown: 0.5 }") ==
        "machine.txt: refinements: overlap_slowdown must be 1 or more");
}

}  // namespace
}  // namespace ff
