// fftopo: machine files out of what people know about their machines.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "compiler/base/check.h"
#include "compiler/machine/machine.h"
#include "executor/comm/mpi_communicator.h"
#include "tools/cli/command_line.h"
#include "tools/fftopo/host.h"
#include "tools/fftopo/measure.h"
#include "tools/fftopo/topology.h"

namespace ff {
namespace {

struct Flags {
  std::string import, import_nccl, import_smi, preset, output;
  bool measure = false;
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
  line.option("--preset", &f.preset, "NAME",
              "A machine that is known by name (ffcompile --list-presets); k80-16x4:nodes=2 is a part of it");
  line.flag("--measure", &f.measure, "What ranks reach among each other: mpirun -n N fftopo --measure");
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

int measure(Communicator& comm, const std::string& output) {
  const Measured measured = measure_ranks(comm);
  if (comm.rank() != 0) return 0;
  const std::string facts = measured_facts(measured);
  const std::string text = measured_machine_text(measured);
  write_machine(machine_file("measured-" + std::to_string(measured.ranks()), facts, text), facts, output);
  return 0;
}

int work(const Flags& flags, Communicator* comm) {
  const int chosen = !flags.import.empty() + !flags.import_nccl.empty() + !flags.import_smi.empty() +
                     !flags.preset.empty() + flags.measure;
  if (chosen > 1) throw UserError("give one source of the machine file", "fftopo --help lists them");
  if (flags.measure) {
    FF_CHECK(comm != nullptr);
    return measure(*comm, flags.output);
  }
  if (!flags.preset.empty()) {
    const bool cut = flags.preset.find(':') != std::string::npos;
    write_machine(cut ? load_machine(flags.preset).text() : preset_text(flags.preset), "", flags.output);
  } else if (chosen == 1) {
    import(flags);
  } else {
    describe_host(flags.output);
  }
  return 0;
}

/// Under mpirun rank 0 alone answers --help and complains of flags.
int run_ranks(int argc, char** argv) {
  MpiRuntime mpi(&argc, &argv);
  return mpi.run("fftopo", [&](Communicator& comm) {
    Flags flags;
    try {
      if (comm.rank() != 0) std::cout.setstate(std::ios::failbit);
      if (!parse(argc, argv, flags)) return 0;
      if (comm.size() == 1 && launcher_world_size().value_or(1) > 1) {
        throw UserError("--measure: world is 1, launcher says " + std::to_string(*launcher_world_size()),
                        "start it with Open MPI's mpirun");
      }
      return work(flags, &comm);
    } catch (const UserError&) {
      std::string message;
      const int status = describe_current_exception("fftopo", message);
      if (comm.rank() == 0) std::cerr << message;
      return status;
    }
  });
}

int run(int argc, char** argv) {
  const bool measures =
      std::any_of(argv, argv + argc, [](const char* a) { return std::string(a) == "--measure"; });
  if (measures) return run_ranks(argc, argv);
  Flags flags;
  return parse(argc, argv, flags) ? work(flags, nullptr) : 0;
}

}  // namespace
}  // namespace ff

int main(int argc, char** argv) { return ff::report_errors("fftopo", ff::run, argc, argv); }
