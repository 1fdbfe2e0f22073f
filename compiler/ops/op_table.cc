#include "compiler/ops/op_table.h"

#include <algorithm>
#include <map>

#include "compiler/base/check.h"
#include "compiler/ops/families.h"

namespace ff {
namespace {

const std::vector<OpDef>& table() {
  static const std::vector<OpDef> rows = [] {
    std::vector<OpDef> out;
    for (const auto& family :
         {conv_ops(),       conv_transpose_ops(), pool_ops(),        resize_ops(),   normalization_ops(),
          layer_norm_ops(), matmul_ops(),         elementwise_ops(), function_ops(), logic_ops(),
          recurrent_ops(),  reduce_ops(),         shape_ops(),       gather_ops(),   expand_ops(),
          element_ops(),    gather_nd_ops(),      along_axis_ops(),  softmax_ops(),  loss_ops(),
          update_ops()}) {
      out.insert(out.end(), family.begin(), family.end());
    }
    return out;
  }();
  return rows;
}

/// Marks the dimensions along which operand `id` counts samples.
void mark_samples(const Graph& graph, TensorId id, const AccessMap& map, bool& any,
                  std::vector<bool>& sample) {
  if (!id.valid()) return;
  const int axis = graph.tensor(id).batch_axis;
  if (axis < 0) return;
  any = true;
  if (static_cast<size_t>(axis) >= map.axes.size()) return;
  const AxisMap& m = map.axes[static_cast<size_t>(axis)];
  if (m.dim >= 0 && m.span == m.stride && m.offset == 0) sample[static_cast<size_t>(m.dim)] = true;
}

Operand operand_of(const Graph& graph, TensorId id, const Box& box, Access access) {
  if (!id.valid() || box.empty()) return absent_operand();
  const Tensor& t = graph.tensor(id);
  return {t.dtype, t.shape.size() >= 3 ? t.layout : Layout::row_major, access, box.shape()};
}

}  // namespace

const OpDef* find_op_def(std::string_view type) {
  static const auto index = [] {
    std::map<std::string_view, const OpDef*> out;
    for (const OpDef& row : table())
      FF_CHECK(out.emplace(row.type, &row).second) << "two rows for " << row.type;
    return out;
  }();
  const auto it = index.find(type);
  return it == index.end() ? nullptr : it->second;
}

const OpDef& op_def(std::string_view type) {
  const OpDef* def = find_op_def(type);
  FF_CHECK(def != nullptr) << "no op type " << type;
  return *def;
}

std::span<const OpDef> all_op_defs() { return table(); }

OpSpace space_of(const Graph& graph, OpId id) {
  const Op& op = graph.op(id);
  OpSpace space = op_def(op.type).space(graph, op);
  FF_CHECK_EQ(space.inputs.size(), op.inputs.size()) << "op " << op.name << " (" << op.type << ")";
  FF_CHECK_EQ(space.outputs.size(), op.outputs.size()) << "op " << op.name << " (" << op.type << ")";
  std::vector<bool> sample(space.dims.size(), false);
  bool any = false;
  for (size_t i = 0; i < op.inputs.size(); ++i)
    mark_samples(graph, op.inputs[i], space.inputs[i], any, sample);
  for (size_t i = 0; i < op.outputs.size(); ++i)
    mark_samples(graph, op.outputs[i], space.outputs[i], any, sample);
  for (size_t d = 0; any && d < space.dims.size(); ++d) {
    Role& role = space.dims[d].role;
    if (sample[d]) {
      role = Role::sample;
    } else if (role == Role::sample) {
      role = Role::attribute;
    }
  }
  return space;
}

Cell cell_of(const Graph& graph, const Op& op, const OpSpace& space, std::span<const Range> blocks) {
  Cell cell{{blocks.begin(), blocks.end()}, {}};
  const auto add = [&](TensorId id, const AccessMap& map) {
    cell.boxes.push_back(id.valid() ? region(map, graph.tensor(id).shape, blocks) : Box({0}, {0}));
  };
  for (size_t i = 0; i < op.inputs.size(); ++i) add(op.inputs[i], space.inputs[i]);
  for (size_t i = 0; i < op.outputs.size(); ++i) add(op.outputs[i], space.outputs[i]);
  return cell;
}

Work work_of(const Graph& graph, const Op& op, const Cell& cell) {
  const OpDef& def = op_def(op.type);
  if (def.work != nullptr) return def.work(graph, op, cell);
  Work work;
  for (size_t i = 0; i < cell.boxes.size(); ++i) {
    const TensorId id = i < op.inputs.size() ? op.inputs[i] : op.outputs[i - op.inputs.size()];
    if (id.valid())
      work.bytes += static_cast<double>(cell.boxes[i].volume() * size_of(graph.tensor(id).dtype));
  }
  return work;
}

KernelCall kernel_of(const Graph& graph, const Op& op, const Cell& cell) {
  const OpDef& def = op_def(op.type);
  if (def.kernel != nullptr) return def.kernel(graph, op, cell);
  return default_call(graph, op, cell);
}

KernelCall default_call(const Graph& graph, const Op& op, const Cell& cell) {
  KernelCall call{op.type, op.attributes, {}};
  const auto in_place = [&](TensorId id) {
    return id.valid() && std::find(op.outputs.begin(), op.outputs.end(), id) != op.outputs.end();
  };
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    call.operands.push_back(
        operand_of(graph, op.inputs[i], cell.boxes[i], in_place(op.inputs[i]) ? Access::inout : Access::in));
  }
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    const TensorId id = op.outputs[i];
    const bool passed = std::find(op.inputs.begin(), op.inputs.end(), id) != op.inputs.end();
    call.operands.push_back(passed ? absent_operand()
                                   : operand_of(graph, id, cell.boxes[op.inputs.size() + i], Access::out));
  }
  return call;
}

}  // namespace ff
