#include "test/support/evaluate.h"

#include <algorithm>
#include <cstring>

#include "compiler/base/check.h"
#include "executor/kernels/cpu/class_rows.h"

namespace ff::test {
namespace {

constexpr size_t kAlignment = 64;

/// Aligned memory of a dense buffer.
class Buffer {
 public:
  explicit Buffer(int64_t bytes) : bytes_(static_cast<size_t>(bytes) + kAlignment) {
    const auto address = reinterpret_cast<uintptr_t>(bytes_.data());
    start_ = (kAlignment - address % kAlignment) % kAlignment;
  }
  void* data() { return bytes_.data() + start_; }

 private:
  std::vector<std::byte> bytes_;
  size_t start_ = 0;
};

/// Calls body with a pointer of the type's element.
template <typename Body>
void with_type(DType type, void* data, Body&& body) {
  switch (type) {
    case DType::f64:
      return body(static_cast<double*>(data));
    case DType::f32:
      return body(static_cast<float*>(data));
    case DType::i64:
      return body(static_cast<int64_t*>(data));
    case DType::i32:
      return body(static_cast<int32_t*>(data));
    case DType::u8:
    case DType::boolean:
      return body(static_cast<uint8_t*>(data));
    default:
      FF_CHECK(false) << "no values of type " << name(type);
  }
}

void write(const Operand& operand, const std::vector<double>& values, void* data) {
  const std::vector<int64_t> at = cpu::row_offsets(operand, -1);
  FF_CHECK_EQ(values.size(), at.size()) << to_string(operand.shape);
  with_type(operand.dtype, data, [&](auto* out) {
    for (size_t i = 0; i < at.size(); ++i)
      out[at[i]] = static_cast<std::remove_pointer_t<decltype(out)>>(values[i]);
  });
}

std::vector<double> read(const Operand& operand, void* data) {
  const std::vector<int64_t> at = cpu::row_offsets(operand, -1);
  std::vector<double> values(at.size());
  with_type(operand.dtype, data, [&](auto* in) {
    for (size_t i = 0; i < at.size(); ++i) values[i] = static_cast<double>(in[at[i]]);
  });
  return values;
}

/// The elements of `box` among those of a whole tensor, in logical order.
std::vector<size_t> places_of(const Box& box, const Shape& whole) {
  std::vector<size_t> out;
  const Shape extent = box.shape();
  for (int64_t n = 0; n < box.volume(); ++n) {
    int64_t rest = n, linear = 0, stride = 1;
    for (size_t axis = extent.size(); axis-- > 0;) {
      linear += (box[static_cast<int>(axis)].lo + rest % extent[axis]) * stride;
      rest /= extent[axis];
      stride *= whole[axis];
    }
    out.push_back(static_cast<size_t>(linear));
  }
  return out;
}

/// Runs one cell of an op and adds what it writes.
void run_cell(const Graph& graph, OpId id, const std::vector<Range>& blocks, cpu::Flavor flavor,
              const RunContext& context, Values& values) {
  const Op& op = graph.op(id);
  const Cell cell = cell_of(graph, op, space_of(graph, id), blocks);
  const KernelCall call = kernel_of(graph, op, cell);
  FF_CHECK_EQ(call.operands.size(), op.inputs.size() + op.outputs.size()) << op.name;
  std::vector<TensorId> ids = op.inputs;
  ids.insert(ids.end(), op.outputs.begin(), op.outputs.end());

  std::vector<Buffer> buffers;
  std::vector<void*> pointers;
  buffers.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const Operand& operand = call.operands[i];
    pointers.push_back(nullptr);
    if (is_absent(operand)) continue;
    pointers[i] = buffers.emplace_back(operand.bytes()).data();
    if (operand.access == Access::out) {
      std::memset(pointers[i], 0xff, static_cast<size_t>(operand.bytes()));  // not a number, unless written
      continue;
    }
    const auto it = values.find(graph.tensor(ids[i]).name);
    FF_CHECK(it != values.end()) << op.name << " reads " << graph.tensor(ids[i]).name
                                 << ", which has no value";
    std::vector<double> part;
    for (size_t place : places_of(cell.boxes[i], graph.tensor(ids[i]).shape))
      part.push_back(it->second.at(place));
    write(operand, part, pointers[i]);
  }
  const auto kernel = cpu::make_kernel(call, flavor);
  Buffer workspace(kernel->workspace_bytes());
  kernel->run(pointers, workspace.data(), context);
  for (size_t i = 0; i < ids.size(); ++i) {
    const Operand& operand = call.operands[i];
    if (is_absent(operand) || operand.access == Access::in) continue;
    const std::vector<double> result = read(operand, pointers[i]);
    const Shape& whole = graph.tensor(ids[i]).shape;
    std::vector<double>& value = values[graph.tensor(ids[i]).name];
    value.resize(static_cast<size_t>(volume(whole)), 0);
    const std::vector<size_t> places = places_of(cell.boxes[i], whole);
    for (size_t e = 0; e < places.size(); ++e) {
      double& element = value[places[e]];
      element = operand.access == Access::out ? element + result[e] : result[e];
    }
  }
}

std::vector<Range> whole_blocks(const OpSpace& space) {
  std::vector<Range> blocks;
  for (const IterDim& d : space.dims) blocks.push_back({0, d.extent});
  return blocks;
}

void run_op(const Graph& graph, OpId id, cpu::Flavor flavor, const RunContext& context, Values& values) {
  run_cell(graph, id, whole_blocks(space_of(graph, id)), flavor, context, values);
}

}  // namespace

Values evaluate_split(const Graph& graph, const Values& given, const std::string& dim, int64_t degree) {
  Values values = given;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const OpId id(static_cast<int64_t>(i));
    const OpSpace space = space_of(graph, id);
    const int at = space.dim_index(dim);
    const int64_t extent = at < 0 ? 1 : space.dims[static_cast<size_t>(at)].extent;
    const int64_t blocks = at < 0 ? 1 : std::min(degree, extent);
    for (int64_t b = 0; b < blocks; ++b) {
      std::vector<Range> cell = whole_blocks(space);
      if (at >= 0) cell[static_cast<size_t>(at)] = block(extent, blocks, b);
      run_cell(graph, id, cell, cpu::Flavor::fast, {}, values);
    }
  }
  return values;
}

Values evaluate(const Graph& graph, const Values& given, cpu::Flavor flavor, Form form,
                const RunContext& context) {
  Values values = given;
  std::vector<bool> has_stages(graph.ops.size(), false);
  for (const Op& op : graph.ops) {
    if (op.stage_of.valid()) has_stages[op.stage_of.index()] = true;
  }
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const bool skip = form == Form::staged ? static_cast<bool>(has_stages[i]) : graph.ops[i].stage_of.valid();
    if (!skip) run_op(graph, OpId(static_cast<int64_t>(i)), flavor, context, values);
  }
  return values;
}

OpId add_op(Graph& graph, std::string name, std::string type, Attributes attributes,
            std::vector<TensorId> inputs) {
  Op op{.name = name,
        .type = std::move(type),
        .attributes = std::move(attributes),
        .inputs = std::move(inputs),
        .outputs = {},
        .phase = Phase::forward,
        .config_of = {},
        .stage_of = {}};
  size_t i = 0;
  for (TensorType& t : op_def(op.type).infer(graph, op)) {
    Tensor tensor;
    tensor.name = i == 0 ? name : name + "/" + std::to_string(i);
    tensor.shape = std::move(t.shape);
    tensor.dtype = t.dtype;
    op.outputs.push_back(graph.add_tensor(std::move(tensor)));
    ++i;
  }
  return graph.add_op(std::move(op));
}

TensorId RuleBuilder::gradient(TensorId of) {
  if (const auto it = gradients_.find(of); it != gradients_.end()) return it->second;
  Tensor t = graph_.tensor(of);
  t.name = "grad_" + t.name;
  t.kind = TensorKind::gradient;
  return gradients_[of] = graph_.add_tensor(std::move(t));
}

TensorId RuleBuilder::input_gradient(TensorId input) {
  return std::find(wanted_.begin(), wanted_.end(), input) != wanted_.end() ? gradient(input) : TensorId();
}

TensorId RuleBuilder::temporary(std::string_view part, TensorId like) {
  Tensor t = graph_.tensor(like);
  t.name = prefix_ + std::string(part);
  t.kind = TensorKind::gradient;
  return graph_.add_tensor(std::move(t));
}

TensorId RuleBuilder::temporary(std::string_view part, TensorType type) {
  Tensor t;
  t.name = prefix_ + std::string(part);
  t.shape = std::move(type.shape);
  t.dtype = type.dtype;
  return graph_.add_tensor(std::move(t));
}

void RuleBuilder::emit(std::string_view part, std::string type, Attributes attributes,
                       std::vector<TensorId> inputs, std::vector<TensorId> outputs) {
  graph_.add_op({.name = prefix_ + std::string(part),
                 .type = std::move(type),
                 .attributes = std::move(attributes),
                 .inputs = std::move(inputs),
                 .outputs = std::move(outputs),
                 .phase = replaces_.valid() ? graph_.op(replaces_).phase : Phase::backward,
                 .config_of = follows_,
                 .stage_of = replaces_});
}

void RuleBuilder::differentiate(OpId id, const std::vector<TensorId>& wanted) {
  wanted_ = wanted;
  follows_ = graph_.op(id).config_of;
  replaces_ = {};
  const Op op = graph_.op(id);
  prefix_ = op.name + "/";
  FF_CHECK(op_def(op.type).gradient != nullptr) << op.type;
  op_def(op.type).gradient(op, *this);
}

void RuleBuilder::stage(OpId id) {
  follows_ = graph_.op(id).config_of;
  replaces_ = id;
  const Op op = graph_.op(id);
  prefix_ = op.name + "/stage_";
  FF_CHECK(op_def(op.type).stages != nullptr) << op.type;
  op_def(op.type).stages(op, *this);
}

}  // namespace ff::test
