// Checkpoints: every parameter and all state, whole, with the place in the data. Keyed by names, so that a
// run under another plan of the model, with other ranks, goes on from one; no plan is needed to read it.
//
//   write_checkpoint("ckpt", {.step = 500, .batch = 64, .samples = 60000, .seed = 1}, plan.parameters,
//   values); CheckpointReader last("ckpt");   // last.position().step == 500; last.loader() loads by box
//
// One file, `checkpoint.ff`, replaced as a whole. Little-endian: "FFCKPT\r\n"; u64 version, step, batch,
// samples, seed, shuffled, number of parameters; for each: u64 length and name, u64 kind, type, rank,
// extents, and its bytes, dense and row-major; at last a hash of everything before.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/model_data.h"
#include "compiler/plan/plan.h"
#include "executor/runtime/parameters.h"

namespace ff {

/// How far a run was. The order of samples is a function of samples, seed and shuffling.
struct CheckpointPosition {
  int64_t step = 0;  // steps done
  int64_t batch = 0;
  int64_t samples = 0;
  uint64_t seed = 0;
  bool shuffle = false;
};

/// Makes the folder if it is not there. Throws RunError if the file cannot be written; the one before it is
/// kept then.
void write_checkpoint(const std::string& folder, const CheckpointPosition& position,
                      const std::vector<Parameter>& parameters, const ParameterValues& values);

class CheckpointReader {
 public:
  /// UserError if there is no checkpoint in the folder, or it is damaged.
  explicit CheckpointReader(const std::string& folder);
  const CheckpointPosition& position() const { return position_; }
  /// Loads by box; UserError for a parameter that the checkpoint lacks or has in another shape or type. Must
  /// not outlive this.
  ParameterLoader loader() const;

 private:
  struct Record {
    Shape shape;
    DType dtype;
    std::string_view bytes;
  };
  void load(const Parameter& parameter, const Box& box, void* out) const;

  std::string path_;
  std::unique_ptr<MappedFile> file_;
  CheckpointPosition position_;
  std::map<std::string, Record, std::less<>> records_;
};

}  // namespace ff
