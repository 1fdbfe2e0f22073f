// Peak memory along the order of delta simulation, in one pass.

#include <algorithm>

#include "compiler/simulator/delta.h"

namespace ff {

double DeltaSimulator::overrun(std::span<const int64_t> limits) {
  const auto worst = [&](const std::vector<int64_t>& bytes) {
    double over = 0;
    for (size_t d = 0; d < limits.size(); ++d)
      over = std::max(over, static_cast<double>(bytes[d]) / static_cast<double>(limits[d]) - 1);
    return over;
  };
  // Everything at once is a bound, and often enough.
  int64_t workspace = 0;
  for (const auto& runs : runs_)
    workspace = std::max(workspace, runs->active ? runs->cost.workspace_bytes : 0);
  std::vector<int64_t> most = most_bytes_;
  for (int64_t& bytes : most) bytes += workspace;
  return worst(most) == 0 ? 0 : worst(peak_bytes());
}

std::vector<int64_t> DeltaSimulator::peak_bytes() {
  const Graph& graph = problem_.graph();
  std::vector<int64_t> live(most_bytes_.size(), 0);
  std::vector<size_t> first_buffer;
  remaining_.clear();
  for (size_t t = 0; t < tensors_.size(); ++t) {
    first_buffer.push_back(remaining_.size());
    const bool input = graph.tensors[t].kind == TensorKind::input;
    for (const TensorPart::Buffer& buffer : tensors_[t]->buffers) {
      remaining_.push_back(buffer.home ? 0 : buffer.touches);
      if (buffer.home || input) live[buffer.device.index()] += buffer.bytes;
    }
  }
  std::vector<char> kept(tensors_.size(), 0);  // read when the step is over
  if (graph.loss.valid()) kept[graph.loss.index()] = 1;
  for (TensorId id : graph.outputs) kept[id.index()] = 1;
  std::vector<int64_t> peak = live;
  const auto visit = [&](int32_t tensor, int32_t owner, int32_t index, bool before) {
    const auto t = static_cast<size_t>(tensor);
    const TensorPart& part = *tensors_[t];
    const bool input = graph.tensors[t].kind == TensorKind::input;
    for (int32_t b : part.touched[part.node(owner, index)]) {
      const TensorPart::Buffer& buffer = part.buffers[static_cast<size_t>(b)];
      if (buffer.home) continue;
      int32_t& remaining = remaining_[first_buffer[t] + static_cast<size_t>(b)];
      int64_t& now = live[buffer.device.index()];
      if (before) {
        if (remaining == buffer.touches && !input) now += buffer.bytes;
        int64_t& most = peak[buffer.device.index()];
        most = std::max(most, now);
      } else if (--remaining == 0 && kept[t] == 0) {
        now -= buffer.bytes;
      }
    }
  };
  const auto run = [&](int32_t slot_number) {
    const Slot& slot = slots_[static_cast<size_t>(slot_number)];
    const auto touch_all = [&](bool before) {
      if (slot.owner >= num_ops_) return visit(slot.owner - num_ops_, 0, slot.index, before);
      for (const Attachment& a : touches_[static_cast<size_t>(slot.owner)])
        visit(a.tensor, a.owner, slot.index, before);
    };
    touch_all(true);
    if (slot.owner < num_ops_) {
      const auto d = static_cast<size_t>(slot.resources[0]);
      peak[d] = std::max(peak[d], live[d] + runs_[static_cast<size_t>(slot.owner)]->cost.workspace_bytes);
    }
    touch_all(false);
  };
  const size_t kept_places = pending_ ? static_cast<size_t>(resumed_) : order_.size();
  for (size_t i = 0; i < kept_places; ++i) run(order_[i]);
  if (pending_) {
    for (int32_t slot : new_order_) run(slot);
  }
  return peak;
}

}  // namespace ff
