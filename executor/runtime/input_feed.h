// The model's inputs, step by step: which file or made-up numbers each comes from, and the regions of them
// that this rank's programs read.
//
//   InputFeed feed(plan.inputs, {"image=train.gz", "labels=labels.gz"}, options);
//   feed.samples();                                  // 60000
//   feed.fill(interpreter, "train_step", batch);     // writes the input buffers of that entry
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/plan/plan.h"
#include "executor/data/input_source.h"
#include "executor/runtime/interpreter.h"

namespace ff {

struct FeedOptions {
  std::string flag = "--data";         // whose values the files are, for messages
  bool synthetic = false;              // made-up numbers for inputs without a file
  std::vector<std::string> normalize;  // "NAME=SCALE" or "NAME=SCALE,MEAN,STD"
  uint64_t seed = 0;
};

class InputFeed {
 public:
  /// `files` are "NAME=FILE". UserError for a name that is no input, an input without a file, files that do
  /// not fit their input, or whose numbers of samples differ.
  InputFeed(const std::vector<Input>& inputs, const std::vector<std::string>& files,
            const FeedOptions& options);

  /// Samples of the files; nothing if all is made up.
  std::optional<int64_t> samples() const { return samples_; }
  /// One line an input: where it comes from.
  std::vector<std::string> describe() const;

  /// Fills the input buffers that an entry reads with their regions of one batch.
  void fill(Interpreter& interpreter, const std::string& entry, const Batch& batch);
  /// One whole input of a batch, dense and row-major.
  std::string whole(const std::string& input, const Batch& batch);

 private:
  size_t find(const std::string& name) const;
  void open(const std::vector<std::string>& files, const FeedOptions& options);
  void check_samples(const FeedOptions& options);

  std::vector<Input> inputs_;
  std::vector<std::unique_ptr<InputSource>> sources_;
  std::optional<int64_t> samples_;
};

}  // namespace ff
