// What fills a model's input: a data file, or made-up numbers. Each rank asks only for the regions that its
// cells read.
//
//   // An input "image" of 64x1x28x28, from images of 28x28 bytes; this rank reads the first half of the
//   batch. InputSpec spec{.name = "image", .shape = {64, 1, 28, 28}, .type = DType::f32, .batch_axis = 0};
//   auto source = file_source(spec, open_data_file("train-images-idx3-ubyte.gz"), Normalize{255});
//   source->fill(order.batch(cut, epoch, step), {Box({0, 0, 0, 0}, {32, 1, 28, 28}), {}}, buffer);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/base/box.h"
#include "compiler/base/dtype.h"
#include "executor/data/data_file.h"
#include "executor/data/sample_order.h"

namespace ff {

/// An input of the model, whole: what all ranks together read in one step.
struct InputSpec {
  std::string name;
  Shape shape;  // with the global batch
  DType type = DType::f32;
  int batch_axis = 0;
  double padding = 0;   // what positions without a sample hold (an ignored class, say)
  int64_t classes = 0;  // synthetic integers are below this
};

/// A part of an input and how its buffer stores it.
struct InputRegion {
  Box box;  // of the whole input, batch axis included
  /// The input's axes from outermost to innermost in the buffer; empty: as they are. {0, 2, 3, 1} is NHWC.
  std::vector<int> order;
};

/// (x / scale - mean) / stddev.
struct Normalize {
  double scale = 1;
  double mean = 0;
  double stddev = 1;
};

/// Parses an option's "NAME=SCALE" or "NAME=SCALE,MEAN,STD". UserError if it is neither.
std::pair<std::string, Normalize> parse_normalize(const std::string& text);

class InputSource {
 public:
  virtual ~InputSource() = default;
  /// Writes a region of one batch, dense, as elements of the input's type.
  virtual void fill(const Batch& batch, const InputRegion& region, void* destination) = 0;
  /// How many samples there are; nothing if there is no end to them.
  virtual std::optional<int64_t> samples() const = 0;
  /// One line for people: where the numbers come from and what is done to them.
  virtual std::string describe() const = 0;
};

/// Reads from a file. UserError, naming input and file with both shapes or types, if
///  - a sample's shape is not the input's, axes of size 1 aside (28x28 is read as 1x28x28);
///  - the type does not fit: integers widen, never narrow; floats become integers never; integers become
///  floats only
///    with a stated `normalize`; booleans may become anything; between float32 and float64 values are
///    rounded.
std::unique_ptr<InputSource> file_source(InputSpec spec, std::shared_ptr<const DataFile> file,
                                         std::optional<Normalize> normalize);

/// Made-up numbers, a function of (seed, input, sample, element) alone: floats with mean 0 and variance 1
/// (the sum of four uniforms), integers uniform below `spec.classes`, booleans fair.
std::unique_ptr<InputSource> synthetic_source(InputSpec spec, uint64_t seed);

}  // namespace ff
