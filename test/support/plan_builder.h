// Programs by hand, for tests: f32 vectors at given offsets and instructions over them.
//
//   ProgramBuilder p;
//   const int32_t x = p.input("x", {0, 4}, 0), y = p.scratch("y", {0, 4}, 64);
//   p.entry("train_step");
//   const int32_t sent = p.send(x, /*peer=*/1, /*tag=*/7);
//   p.kernel("Copy", {{x, Access::in}, {y, Access::out}}, {sent});   // waits for the send
#pragma once

#include <utility>
#include <vector>

#include "compiler/plan/plan.h"

namespace ff::test {

class ProgramBuilder {
 public:
  int32_t scratch(const std::string& tensor, Range elements, int64_t offset) {
    return buffer(Region::scratch, Origin::computed, tensor, elements, offset);
  }
  int32_t input(const std::string& tensor, Range elements, int64_t offset) {
    return buffer(Region::scratch, Origin::input, tensor, elements, offset);
  }
  int32_t parameter(const std::string& tensor, Range elements, int64_t offset) {
    return buffer(Region::persistent, Origin::parameter, tensor, elements, offset);
  }

  void entry(const std::string& name) { program_.entries.push_back({name, {}, {}}); }
  void output(int32_t b) { program_.entries.back().outputs.push_back(b); }

  int32_t kernel(const std::string& name, const std::vector<std::pair<int32_t, Access>>& operands,
                 std::vector<int32_t> waits = {}, const std::string& op = "op", int32_t workspace = -1) {
    Instruction in;
    in.call.kernel = name;
    for (const auto& [b, access] : operands) {
      const Buffer& buffer = at(b);
      in.call.operands.push_back({buffer.dtype, buffer.layout, access, buffer.box.shape()});
      in.operands.push_back(b);
    }
    in.workspace = workspace;
    return add(std::move(in), std::move(waits), op);
  }
  int32_t send(int32_t b, int32_t peer, int32_t tag, std::vector<int32_t> waits = {}) {
    return message(InstructionKind::send, b, peer, tag, std::move(waits));
  }
  int32_t receive(int32_t b, int32_t peer, int32_t tag, std::vector<int32_t> waits = {}) {
    return message(InstructionKind::receive, b, peer, tag, std::move(waits));
  }
  int32_t collective(InstructionKind kind, int32_t group, std::vector<int32_t> operands,
                     std::vector<int64_t> counts = {}, std::vector<int32_t> waits = {},
                     const std::string& op = "op") {
    Instruction in;
    in.kind = kind;
    in.stream = Stream::comm;
    in.group = group;
    in.operands = std::move(operands);
    in.counts = std::move(counts);
    return add(std::move(in), std::move(waits), op);
  }

  Buffer& at(int32_t b) { return program_.buffers[static_cast<size_t>(b)]; }
  Instruction& last() { return program_.entries.back().instructions.back(); }
  const Program& program() const { return program_; }

 private:
  int32_t buffer(Region region, Origin origin, const std::string& tensor, Range elements, int64_t offset) {
    Buffer b;
    b.region = region;
    b.origin = origin;
    b.box = Box::of_ranges(std::vector<Range>{elements});
    b.tensor = tensor;
    b.offset = offset;
    b.bytes = elements.size() * 4;
    int64_t& size = region == Region::persistent ? program_.persistent_bytes : program_.scratch_bytes;
    size = std::max(size, (offset + b.bytes + 63) / 64 * 64);
    program_.buffers.push_back(b);
    return static_cast<int32_t>(program_.buffers.size()) - 1;
  }
  int32_t message(InstructionKind kind, int32_t b, int32_t peer, int32_t tag, std::vector<int32_t> waits) {
    Instruction in;
    in.kind = kind;
    in.stream = Stream::comm;
    in.peer = peer;
    in.tag = tag;
    in.operands = {b};
    return add(std::move(in), std::move(waits), at(b).tensor);
  }
  int32_t add(Instruction in, std::vector<int32_t> waits, const std::string& op) {
    in.waits = std::move(waits);
    in.op = op;
    auto& list = program_.entries.back().instructions;
    list.push_back(std::move(in));
    return static_cast<int32_t>(list.size()) - 1;
  }

  Program program_;
};

/// A trained f32 parameter of the model.
inline Parameter parameter_of(const std::string& name, Shape shape) {
  Parameter p;
  p.name = p.model_name = name;
  p.shape = std::move(shape);
  return p;
}

/// A plan of these programs, device i executing the i-th.
inline Plan plan_of(const std::vector<Program>& programs, std::vector<std::vector<int32_t>> groups = {}) {
  Plan plan;
  plan.num_devices = static_cast<int64_t>(programs.size());
  plan.groups = std::move(groups);
  plan.programs = programs;
  for (size_t d = 0; d < programs.size(); ++d) plan.program_of.push_back(static_cast<int32_t>(d));
  return plan;
}

}  // namespace ff::test
