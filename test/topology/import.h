// An import, as tests look at it.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/base/check.h"
#include "compiler/machine/machine.h"
#include "tools/fftopo/topology.h"

namespace ff {

struct Read {
  explicit Read(const std::string& text, const ImportOptions& options = {})
      : imported(import_text(text, "input", options)) {}

  /// What follows "NAME: " in the first fact of that name; "" if there is none.
  std::string fact(const std::string& name) const {
    std::istringstream lines(imported.facts);
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind(name + ": ", 0) == 0) return line.substr(name.size() + 2);
    }
    return {};
  }
  /// The machine file, loaded as a user would: with a suffix such as ":nodes=2".
  Machine machine_of(const std::string& suffix) const {
    const std::string path =
        std::filesystem::temp_directory_path() / ("ff_test_topology." + std::to_string(getpid()));
    std::ofstream(path) << imported.machine;
    const Machine machine = load_machine(path + suffix);
    std::filesystem::remove(path);
    return machine;
  }
  double bandwidth(int from, int to) const {
    return parse_machine(imported.machine, "machine").route(DeviceId(from), DeviceId(to)).bandwidth;
  }

  Imported imported;
};

}  // namespace ff
