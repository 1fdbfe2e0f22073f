// The plan: everything that `ffrun` needs to train a model on N devices, except the data and the weights
// themselves. Plain values; plan.proto is their form on disk, container.h the file around them.
//
// A program is what one device executes: instructions in one order, over buffers at fixed offsets of two
// regions. Each program is the projection on its device of one total order over all devices, so executing in
// order cannot deadlock.
//
//   #12 compute Conv pads=[1,1,1,1] ... (b3 in, b7 in, none, b9 out)  waits 8
//   #13 comm    send b9[0:16,0:64,27:28,0:56] to 1 tag 41
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/base/box.h"
#include "compiler/base/dtype.h"
#include "compiler/base/view.h"
#include "compiler/plan/kernel_call.h"

namespace ff {

/// A buffer lies in the persistent region (weights and state: it lives from step to step) or in the scratch
/// region.
enum class Region : uint8_t { persistent, scratch };

/// What fills a buffer that no instruction of the entry writes.
enum class Origin : uint8_t { computed, parameter, input };

struct Buffer {
  Region region = Region::scratch;
  Origin origin = Origin::computed;
  DType dtype = DType::f32;
  Layout layout = Layout::row_major;
  Box box;             // which part of the tensor it holds
  std::string tensor;  // name of the graph's tensor ("" for workspaces)
  int64_t offset = 0;  // bytes, in its region; a multiple of 64
  int64_t bytes = 0;   // of a workspace: what the kernel asked for
};

enum class Stream : uint8_t { compute, comm };

enum class InstructionKind : uint8_t {
  kernel,          // call
  send,            // the whole buffer operands[0] to `peer` with `tag`; contiguous
  receive,         // likewise, from `peer`
  all_reduce,      // operands[0] in, operands[1] out (the same buffer: in place); `combine_max`
  reduce_scatter,  // operands[0] in, member i gets counts[i] elements of it, operands[1] out
  all_gather,      // operands[0] in (counts[own place] elements), operands[1] out, in member order
  broadcast,       // operands[0] in place, from groups[group][root]
};

struct Instruction {
  InstructionKind kind = InstructionKind::kernel;
  Stream stream = Stream::compute;
  KernelCall call;                // kernel: what
  std::vector<int32_t> operands;  // buffers (of this program), as call.operands; -1: absent
  int32_t workspace = -1;         // kernel: its scratch buffer
  int32_t peer = -1;              // send, receive: rank
  int32_t tag = -1;               // send, receive: the message's number, unique in the entry
  int32_t group = -1;             // collectives: index into Plan::groups
  int32_t root = 0;               // broadcast: place in the group
  bool combine_max = false;
  std::vector<int64_t> counts;  // elements a member
  std::vector<int32_t>
      waits;       // earlier asynchronous instructions of this program and entry that must be complete first
  std::string op;  // name of the op or tensor it serves, for traces and messages
  int64_t start_ns = 0;  // predicted
  int64_t duration_ns = 0;
};

/// train_step, eval_step or reference.
struct Entry {
  std::string name;
  std::vector<Instruction> instructions;
  std::vector<int32_t>
      outputs;  // buffers that hold the loss (first, if the graph has one) and the model's outputs
};

struct Program {
  std::vector<Buffer> buffers;
  std::vector<Entry> entries;
  int64_t persistent_bytes = 0;
  int64_t scratch_bytes = 0;

  int64_t arena_bytes() const { return persistent_bytes + scratch_bytes; }
};

enum class ParameterKind : uint8_t { trained, frozen, state };

struct Parameter {
  std::string name;  // the graph's tensor
  ParameterKind kind = ParameterKind::trained;
  Shape shape;
  DType dtype = DType::f32;
  enum class Source : uint8_t { initializer, fill, inlined } source = Source::initializer;
  std::string model_name;  // the initializer; empty if the compiler made it
  double fill = 0;
  std::string bytes;
  std::vector<View> views;
};

/// An input of the model, read from data: `labels` last.
struct Input {
  std::string name;
  Shape shape;
  DType dtype = DType::f32;
  int batch_axis = 0;
  int64_t classes = 0;  // labels: their number, for synthetic data; 0 unknown
};

/// Opaque to the executor: shown by ffplan-dump. One op, as split.
struct OpSummary {
  std::string op;
  std::string type;
  std::vector<std::string> dims;  // "n:S"
  std::vector<int64_t> degrees;
  int64_t replicas = 1;
  std::vector<int32_t> devices;  // one a cell
  int64_t compute_ns = 0;        // forward, backward and update, summed over devices
  int64_t traffic_bytes = 0;
  int64_t memory_bytes = 0;
};

struct DevicePrediction {
  int64_t busy_ns = 0;
  int64_t live_peak_bytes = 0;
  int64_t peak_bytes = 0;  // the arena's
};

struct Plan {
  // Header.
  std::string
      model_path;  // as given; a file name only, looked up beside the plan unless --model says otherwise
  std::string model_hash;
  std::string machine_name;
  std::string machine_hash;
  std::string profile_hash;
  std::string options;  // the compile options that matter, as text
  std::string library_versions;
  int64_t num_devices = 1;
  int64_t batch = 0;
  int64_t threads_per_rank = 1;
  uint64_t seed = 0;
  std::string optimizer;
  std::string batchnorm = "sync";
  std::vector<std::string> required_features;
  // Body.
  std::vector<Parameter> parameters;
  std::vector<Input> inputs;
  std::vector<std::string> outputs;  // names of the model's outputs, as in Entry::outputs after the loss
  std::vector<std::vector<int32_t>>
      groups;            // ranks of each collective's group; communicators are made in this order
  std::string strategy;  // protobuf text, for ffplan-dump --strategy
  std::vector<OpSummary> ops;
  std::vector<Program> programs;  // of device i: programs[program_of[i]]
  std::vector<int32_t> program_of;
  std::optional<Program> reference;  // the training step on one device, entry `reference`
  // Predictions.
  int64_t step_ns = 0;
  int64_t data_parallel_ns = 0;
  std::vector<DevicePrediction> devices;
};

}  // namespace ff
