// A queue of tasks by (time, rank) for a clock that never goes back: a radix heap (Ahuja, Mehlhorn, Orlin,
// Tarjan: "Faster algorithms for the shortest path problem", JACM 1990). A push is a look at the highest bit
// in which its time differs from the last time popped; tasks of one time are sorted when their time comes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "compiler/base/units.h"

namespace ff {

struct QueuedTask {
  Nanoseconds time;
  int32_t task;
};

class RadixQueue {
 public:
  void clear() {
    for (auto& bucket : buckets_) bucket.clear();
    next_ = 0;
    size_ = 0;
    last_ = 0;
    sorted_ = false;
  }
  bool empty() const { return size_ == 0; }

  /// `time` is not before that of the task popped last.
  void push(Nanoseconds time, int32_t task) {
    const size_t b = bucket_of(time);
    if (b == 0) sorted_ = false;
    buckets_[b].push_back({time, task});
    ++size_;
  }

  /// The task with the least (time, rank(task)). `rank` gives an unsigned number, another for every task.
  template <typename Rank>
  QueuedTask pop(Rank rank) {
    auto& front = buckets_[0];
    if (next_ == front.size()) refill();
    if (!sorted_) {
      std::sort(front.begin() + static_cast<std::ptrdiff_t>(next_), front.end(),
                [&](const QueuedTask& a, const QueuedTask& b) { return rank(a.task) < rank(b.task); });
      sorted_ = true;
    }
    --size_;
    return front[next_++];
  }

  /// All that wait, in no order.
  template <typename F>
  void for_each(F visit) const {
    for (size_t i = next_; i < buckets_[0].size(); ++i) visit(buckets_[0][i]);
    for (size_t b = 1; b < buckets_.size(); ++b) {
      for (const QueuedTask& t : buckets_[b]) visit(t);
    }
  }

 private:
  size_t bucket_of(Nanoseconds time) const {
    return static_cast<size_t>(std::bit_width(static_cast<uint64_t>(time ^ last_)));
  }

  /// Makes the least time the front's.
  void refill() {
    buckets_[0].clear();
    next_ = 0;
    size_t b = 1;
    while (buckets_[b].empty()) ++b;
    auto& from = buckets_[b];
    last_ = std::min_element(from.begin(), from.end(), [](const QueuedTask& x, const QueuedTask& y) {
              return x.time < y.time;
            })->time;
    for (const QueuedTask& t : from) buckets_[bucket_of(t.time)].push_back(t);
    from.clear();
    sorted_ = false;
  }

  std::array<std::vector<QueuedTask>, 65> buckets_;
  size_t next_ = 0;  // in the front bucket
  size_t size_ = 0;
  Nanoseconds last_ = 0;
  bool sorted_ = false;
};

}  // namespace ff
