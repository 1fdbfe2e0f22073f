// fftopo: machine files out of what people know about their machines.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "compiler/base/check.h"
#include "compiler/machine/machine.h"
#include "tools/cli/command_line.h"
#include "tools/fftopo/host.h"
#include "tools/fftopo/topology.h"

namespace ff {
namespace {

struct Flags {
  std::string import, import_nccl, import_smi, preset, output;
  ImportOptions options;
};

bool parse(int argc, char** argv, Flags& f) {
  CommandLine line(
      "fftopo",
      "Writes machine files, which ffcompile --machine reads: of this host, or of one that is described.");
  line.option("-o,--output", &f.output, "MACHINE", "Where to write the machine file; default: stdout");
  line.group("From (one of; by default this host)");
  line.option("--import", &f.import, "FILE",
              "An NCCL topology dump, nvidia-smi topo -m output or nccl-tests output, told apart by content");
  line.option("--import-nccl", &f.import_nccl, "FILE.xml", "The same, if it is an NCCL topology dump");
  line.option("--import-nvidia-smi", &f.import_smi, "FILE", "The same, if it is nvidia-smi topo -m output");
  line.option("--preset", &f.preset, "NAME", "A machine that is known by name (ffcompile --list-presets)");
  line.group("What imports may not say");
  line.option("--gpu", &f.options.gpu, "NAME", "What the GPUs are: v100, a100-80, h100, ...");
  line.option("--nic-gbits", &f.options.nic_gbits, "X", "Gbit/s of network cards whose speed is not said");
  return line.parse(argc, argv);
}

std::string read_text(const std::string& path) {
  if (std::filesystem::is_directory(path)) throw UserError(path + ": is a folder", "give one file of it");
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) throw UserError(path + ": cannot be read", "check the name, or whether it is empty");
  return text.str();
}

/// To the file, with `summary` on stdout, or all to stdout. Only what loads is written.
void write_machine(const std::string& machine, const std::string& summary, const std::string& output) {
  const Machine loaded = parse_machine(machine, output.empty() ? "machine file" : output);
  if (output.empty()) {
    std::cout << machine;
    return;
  }
  const std::string partial = output + ".tmp";
  std::ofstream out(partial, std::ios::binary);
  out << machine;
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(partial, output, error);
  if (!out || error) {
    std::filesystem::remove(partial, error);
    throw RunError(output + ": cannot be written");
  }
  std::cout << summary << "machine file: " << output << "; devices: " << loaded.num_devices()
            << ", nodes: " << loaded.num_nodes() << "\n";
}

void import(const Flags& f) {
  const std::string& path = !f.import.empty()        ? f.import
                            : !f.import_nccl.empty() ? f.import_nccl
                                                     : f.import_smi;
  if (f.options.nic_gbits <= 0) throw UserError("--nic-gbits must be above 0", "100 is a common speed");
  const std::string text = read_text(path);
  const Format format = recognise(text, path);
  if (!f.import_nccl.empty() && format != Format::kNcclXml) {
    throw UserError(path + ": is not an NCCL topology dump", "give it to --import, which tells by content");
  }
  if (!f.import_smi.empty() && format != Format::kSmiMatrix) {
    throw UserError(path + ": is not nvidia-smi topo -m output",
                    "give it to --import, which tells by content");
  }
  const Imported found = import_text(text, path, f.options);
  write_machine(found.machine, found.facts, f.output);
}

void describe_host(const std::string& output) {
  Host host = detect_host(/*heed_binding=*/true);
  host.rates = measure_rates(host);
  const std::string facts = host_facts(host);
  write_machine(machine_file(host.name, facts, host_machine_text(host)), facts, output);
}

int run(int argc, char** argv) {
  Flags flags;
  if (!parse(argc, argv, flags)) return 0;
  const int chosen =
      !flags.import.empty() + !flags.import_nccl.empty() + !flags.import_smi.empty() + !flags.preset.empty();
  if (chosen > 1) throw UserError("give one source of the machine file", "fftopo --help lists them");
  if (!flags.preset.empty()) {
    write_machine(preset_text(flags.preset), "", flags.output);
  } else if (chosen == 1) {
    import(flags);
  } else {
    describe_host(flags.output);
  }
  return 0;
}

}  // namespace
}  // namespace ff

int main(int argc, char** argv) { return ff::report_errors("fftopo", ff::run, argc, argv); }
