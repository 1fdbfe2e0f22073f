#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "compiler/ops/op_table.h"
#include "compiler/training/training.h"

namespace ff {
namespace {

/// Images are what these families compute on; elementwise families pass the layout on.
bool is_image_family(std::string_view family) {
  return family == "conv" || family == "pool" || family == "norm";
}

bool passes_layout_on(const Op& op) {
  static const std::set<std::string_view> moves{"Concat",  "ConcatGrad", "Pad",
                                                "PadGrad", "Slice",      "SliceGrad"};
  return op_def(op.type).family == "elementwise" || moves.contains(op.type);
}

class Classes {
 public:
  explicit Classes(size_t n) : parent_(n), image_(n, false), rows_(n, false) {
    std::iota(parent_.begin(), parent_.end(), size_t{0});
  }
  size_t find(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(size_t a, size_t b) {
    a = find(a);
    b = find(b);
    parent_[b] = a;
    image_[a] = image_[a] || image_[b];
    rows_[a] = rows_[a] || rows_[b];
  }
  void mark(size_t i) { image_[find(i)] = true; }
  void mark_rows(size_t i) { rows_[find(i)] = true; }
  bool image(size_t i) { return image_[find(i)] && !rows_[find(i)]; }

 private:
  std::vector<size_t> parent_;
  std::vector<bool> image_, rows_;
};

bool is_candidate(const Tensor& t) { return t.kind != TensorKind::parameter && t.shape.size() >= 3; }

/// What a convolution's windows are multiplied by lies in rows, be it a parameter or computed.
bool is_kernel(const Op& op, size_t tensor) {
  return op_def(op.type).family == "conv" && op.phase == Phase::forward && op.inputs.size() > 1 &&
         op.inputs[1].index() == tensor;
}

}  // namespace

void assign_layouts(Graph& graph) {
  Classes classes(graph.tensors.size());
  for (const Op& op : graph.ops) {
    std::vector<size_t> operands;
    for (const auto* list : {&op.inputs, &op.outputs}) {
      for (TensorId id : *list) {
        if (id.valid() && is_candidate(graph.tensor(id))) operands.push_back(id.index());
      }
    }
    const bool image = is_image_family(op_def(op.type).family);
    for (size_t t : operands) {
      if (op_def(op.type).row_major || is_kernel(op, t)) classes.mark_rows(t);
      if (image && graph.tensors[t].name.rfind("grad:", 0) != 0) classes.mark(t);
      if (passes_layout_on(op) && graph.tensors[t].shape.size() == graph.tensors[operands[0]].shape.size())
        classes.join(operands[0], t);
    }
  }
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    if (is_candidate(graph.tensors[t]) && classes.image(t)) graph.tensors[t].layout = Layout::channels_last;
  }
  // A gradient lies as what it is the gradient of; that of a parameter as the parameter.
  std::map<std::string, Layout> by_name;
  for (const Tensor& t : graph.tensors) by_name["grad:" + t.name] = t.layout;
  for (Tensor& t : graph.tensors) {
    if (t.kind != TensorKind::gradient) continue;
    if (const auto of = by_name.find(t.name); of != by_name.end()) t.layout = of->second;
  }
}

}  // namespace ff
