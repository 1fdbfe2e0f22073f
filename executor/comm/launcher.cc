#include <charconv>
#include <cstdlib>
#include <cstring>

#include "executor/comm/mpi_communicator.h"

namespace ff {

std::optional<int> launcher_world_size() {
  // Open MPI; MPICH's and Intel's process managers; Slurm's step, which counts before the whole allocation.
  constexpr const char* kVariables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS",
                                        "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"};
  for (const char* variable : kVariables) {
    const char* text = std::getenv(variable);
    if (text == nullptr) continue;
    int size = 0;
    const char* end = text + std::strlen(text);
    const auto [stop, error] = std::from_chars(text, end, size);
    if (error == std::errc() && stop == end && size > 0) return size;
  }
  return std::nullopt;
}

}  // namespace ff
