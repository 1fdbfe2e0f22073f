#include "compiler/base/box.h"

#include <algorithm>
#include <sstream>

#include "compiler/base/check.h"

namespace ff {

Box::Box(std::initializer_list<int64_t> lo, std::initializer_list<int64_t> hi) {
  FF_CHECK_EQ(lo.size(), hi.size());
  auto h = hi.begin();
  for (int64_t l : lo) push_back({l, *h++});
}

Box Box::whole(const Shape& shape) {
  Box box;
  for (int64_t extent : shape) box.push_back({0, extent});
  return box;
}

Box Box::of_ranges(std::span<const Range> ranges) {
  Box box;
  for (Range r : ranges) box.push_back(r);
  return box;
}

void Box::push_back(Range r) {
  FF_CHECK_LT(rank_, kMaxRank);
  ranges_[static_cast<size_t>(rank_++)] = r;
}

Shape Box::shape() const {
  Shape shape;
  for (int i = 0; i < rank_; ++i) shape.push_back((*this)[i].size());
  return shape;
}

int64_t Box::volume() const {
  int64_t n = 1;
  for (int i = 0; i < rank_; ++i) n *= (*this)[i].size();
  return n;
}

bool Box::contains(const Box& inner) const {
  FF_CHECK_EQ(rank_, inner.rank_);
  if (inner.empty()) return true;
  for (int i = 0; i < rank_; ++i) {
    if (inner[i].lo < (*this)[i].lo || inner[i].hi > (*this)[i].hi) return false;
  }
  return true;
}

std::strong_ordering operator<=>(const Box& a, const Box& b) {
  if (auto c = a.rank_ <=> b.rank_; c != 0) return c;
  for (int i = 0; i < a.rank_; ++i) {
    if (auto c = a[i] <=> b[i]; c != 0) return c;
  }
  return std::strong_ordering::equal;
}

std::ostream& operator<<(std::ostream& out, const Box& box) {
  out << '[';
  for (int i = 0; i < box.rank(); ++i) out << (i ? "," : "") << box[i].lo << ':' << box[i].hi;
  return out << ']';
}

Box intersect(const Box& a, const Box& b) {
  FF_CHECK_EQ(a.rank(), b.rank());
  Box out = a;
  for (int i = 0; i < a.rank(); ++i) {
    Range r = intersect(a[i], b[i]);
    out.set(i, {r.lo, std::max(r.lo, r.hi)});
  }
  return out;
}

std::string to_string(const Box& box) {
  std::ostringstream out;
  out << box;
  return out.str();
}

void subtract(const Box& a, const Box& b, std::vector<Box>& out) {
  const Box common = intersect(a, b);
  if (common.empty()) {
    if (!a.empty()) out.push_back(a);
    return;
  }
  Box rest = a;
  for (int i = 0; i < a.rank(); ++i) {
    if (rest[i].lo < common[i].lo) {
      Box part = rest;
      part.set(i, {rest[i].lo, common[i].lo});
      out.push_back(part);
    }
    if (common[i].hi < rest[i].hi) {
      Box part = rest;
      part.set(i, {common[i].hi, rest[i].hi});
      out.push_back(part);
    }
    rest.set(i, common[i]);
  }
}

int64_t volume(const Shape& shape) {
  int64_t n = 1;
  for (int64_t extent : shape) n *= extent;
  return n;
}

std::string to_string(const Shape& shape) {
  if (shape.empty()) return "scalar";
  std::string out;
  for (int64_t extent : shape) out += (out.empty() ? "" : "x") + std::to_string(extent);
  return out;
}

}  // namespace ff
