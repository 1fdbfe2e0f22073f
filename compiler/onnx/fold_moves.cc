// Folding of what moves elements: the result's shape, and for each of its elements the input's that stands
// there.

#include <numeric>

#include "compiler/onnx/fold.h"

namespace ff::onnx_import {
namespace {

Shape as_shape(const Constant& c) {
  Shape out;
  for (int64_t i = 0; i < c.size(); ++i) out.push_back(c.integer(i));
  return out;
}

/// An index that may count from the end.
int64_t entry(int64_t index, int64_t extent) {
  const int64_t at = index < 0 ? index + extent : index;
  if (at < 0 || at >= extent)
    throw UserError("index " + std::to_string(index) + " is outside an axis of " + std::to_string(extent));
  return at;
}

Constant gather(const Node& node, const Constant& x, const Constant& index) {
  const auto axis = static_cast<size_t>(positive_axis(node.integer("axis", 0), x.shape.size()));
  const auto a = static_cast<int64_t>(axis);
  Shape shape(x.shape.begin(), x.shape.begin() + a);
  shape.insert(shape.end(), index.shape.begin(), index.shape.end());
  shape.insert(shape.end(), x.shape.begin() + a + 1, x.shape.end());
  const size_t rank = index.shape.size();
  return select(x, shape, [&](int64_t i) {
    const Shape at = index_of(i, shape);
    const Shape which(at.begin() + a, at.begin() + a + static_cast<int64_t>(rank));
    Shape from(at.begin(), at.begin() + a);
    from.push_back(entry(index.integer(linear_of(which, index.shape)), x.shape[axis]));
    from.insert(from.end(), at.begin() + a + static_cast<int64_t>(rank), at.end());
    return linear_of(from, x.shape);
  });
}

Constant concat(const Node& node, const Constants& in) {
  const auto axis = static_cast<size_t>(positive_axis(node.integer("axis", 1), in[0].shape.size()));
  // Empty vectors (of another rank's leftovers) are skipped by exporters; shapes must agree otherwise.
  Shape shape = in[0].shape;
  shape[axis] = 0;
  for (const Constant& c : in) {
    if (c.shape.size() != shape.size()) throw UserError("operands of different rank");
    shape[axis] += c.shape[axis];
  }
  Constant out{.dtype = in[0].dtype, .shape = shape, .ints = {}, .reals = {}};
  for (int64_t i = 0; i < out.size(); ++i) {
    Shape at = index_of(i, shape);
    size_t part = 0;
    while (at[axis] >= in[part].shape[axis]) at[axis] -= in[part++].shape[axis];
    const int64_t from = linear_of(at, in[part].shape);
    if (is_float(out.dtype)) {
      out.reals.push_back(in[part].real(from));
    } else {
      out.ints.push_back(in[part].integer(from));
    }
  }
  return out;
}

Constant slice(const Node& node, const Constant& x) {
  const SliceRanges ranges = slice_ranges(node, x.shape);
  Shape shape;
  for (size_t d = 0; d < x.shape.size(); ++d) shape.push_back(ranges.count(d));
  return select(x, shape, [&](int64_t i) {
    Shape at = index_of(i, shape);
    for (size_t d = 0; d < at.size(); ++d) at[d] = ranges.starts[d] + at[d] * ranges.steps[d];
    return linear_of(at, x.shape);
  });
}

Constant with_shape(Constant c, Shape shape) {
  if (volume(shape) != c.size())
    throw UserError("cannot reshape " + to_string(c.shape) + " to " + to_string(shape));
  c.shape = std::move(shape);
  return c;
}

Constant reshaped(const Node& node, const Constant& x, const Constant& wanted) {
  Shape shape = as_shape(wanted);
  int64_t known = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0 && node.integer("allowzero", 0) == 0 && d < x.shape.size()) shape[d] = x.shape[d];
    known *= shape[d] == -1 ? 1 : shape[d];
  }
  for (int64_t& d : shape) d = d == -1 ? (known == 0 ? 0 : x.size() / known) : d;
  return with_shape(x, shape);
}

Constant transposed(const Constant& x, const Ints& perm) {
  Shape shape;
  for (int64_t p : perm) shape.push_back(x.shape.at(static_cast<size_t>(p)));
  return select(x, shape, [&](int64_t i) {
    const Shape at = index_of(i, shape);
    Shape from(at.size());
    for (size_t d = 0; d < perm.size(); ++d) from[static_cast<size_t>(perm[d])] = at[d];
    return linear_of(from, x.shape);
  });
}

Constant expanded(const Constant& x, const Constant& wanted) {
  const Shape shape = broadcast_shapes(x.shape, as_shape(wanted));
  return select(x, shape, [&](int64_t i) { return broadcast_place(index_of(i, shape), x.shape); });
}

Constant tiled(const Constant& x, const Constant& repeats) {
  Shape shape = x.shape;
  if (static_cast<size_t>(repeats.size()) != shape.size()) throw UserError("has not one repeat an axis");
  for (size_t d = 0; d < shape.size(); ++d) shape[d] *= repeats.integer(static_cast<int64_t>(d));
  return select(x, shape, [&](int64_t i) {
    Shape at = index_of(i, shape);
    for (size_t d = 0; d < at.size(); ++d) at[d] %= x.shape[d];
    return linear_of(at, x.shape);
  });
}

/// The indices of elements that are not zero, one row an axis.
Constant non_zero(const Constant& x) {
  std::vector<Shape> found;
  for (int64_t i = 0; i < x.size(); ++i) {
    if (x.real(i) != 0) found.push_back(index_of(i, x.shape));
  }
  const auto count = static_cast<int64_t>(found.size());
  return generate_integers(DType::i64, {static_cast<int64_t>(x.shape.size()), count}, [&](int64_t i) {
    return found[static_cast<size_t>(i % count)][static_cast<size_t>(i / count)];
  });
}

Constant triangle(const Node& node, Constant x, int64_t k) {
  const bool upper = node.integer("upper", 1) != 0;
  if (x.shape.size() < 2) throw UserError("of a tensor of shape " + to_string(x.shape));
  const int64_t columns = x.shape.back(), rows = x.shape[x.shape.size() - 2];
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t diagonal = i % columns - i / columns % rows;
    if (upper ? diagonal >= k : diagonal <= k) continue;
    if (is_float(x.dtype)) {
      x.reals[static_cast<size_t>(i)] = 0;
    } else {
      x.ints[static_cast<size_t>(i)] = 0;
    }
  }
  return x;
}

Constant cumulative(const Node& node, const Constant& x, int64_t wanted) {
  const auto axis = static_cast<size_t>(positive_axis(wanted, x.shape.size()));
  const bool exclusive = node.integer("exclusive", 0) != 0, reverse = node.integer("reverse", 0) != 0;
  const auto sum = [&](int64_t i, auto get) {
    Shape at = index_of(i, x.shape);
    const int64_t end = at[axis];
    auto total = get(0) - get(0);
    for (int64_t j = reverse ? end : 0; j < (reverse ? x.shape[axis] : end + 1); ++j) {
      if (exclusive && j == end) continue;
      at[axis] = j;
      total += get(linear_of(at, x.shape));
    }
    return total;
  };
  if (x.size() == 0) return x;
  if (is_float(x.dtype))
    return generate(x.dtype, x.shape,
                    [&](int64_t i) { return sum(i, [&](int64_t j) { return x.real(j); }); });
  return generate_integers(x.dtype, x.shape,
                           [&](int64_t i) { return sum(i, [&](int64_t j) { return x.integer(j); }); });
}

/// The data with slices replaced: the last index in the file's order wins.
Constant scattered(Constant data, const Constant& index, const Constant& updates) {
  const int64_t depth = index.shape.back();
  const Shape inner(data.shape.begin() + depth, data.shape.end());
  const int64_t width = volume(inner);
  for (int64_t n = 0; n < index.size() / depth; ++n) {
    int64_t at = 0;
    for (int64_t d = 0; d < depth; ++d) {
      const int64_t extent = data.shape[static_cast<size_t>(d)];
      at = at * extent + entry(index.integer(n * depth + d), extent);
    }
    for (int64_t e = 0; e < width; ++e) {
      const auto to = static_cast<size_t>(at * width + e);
      if (is_float(data.dtype)) {
        data.reals[to] = updates.real(n * width + e);
      } else {
        data.ints[to] = updates.integer(n * width + e);
      }
    }
  }
  return data;
}

bool split(Node& node, const Constant& x) {
  const auto axis = static_cast<size_t>(positive_axis(node.integer("axis", 0), x.shape.size()));
  int64_t begin = 0;
  int output = 0;
  for (int64_t size : split_sizes(node, x.shape[axis])) {
    Shape shape = x.shape;
    shape[axis] = size;
    node.result(select(x, shape,
                       [&](int64_t i) {
                         Shape at = index_of(i, shape);
                         at[axis] += begin;
                         return linear_of(at, x.shape);
                       }),
                output++);
    begin += size;
  }
  return true;
}

}  // namespace

Constant viewed(Constant c, const std::vector<View>& views) {
  for (const View& view : views) {
    if (view.kind == "reshape") {
      c = with_shape(std::move(c), view.attributes.ints("shape"));
    } else if (view.kind == "transpose") {
      c = transposed(c, view.attributes.ints("perm"));
    } else {
      FF_CHECK_EQ(view.kind, "slice");
      const auto axis = static_cast<size_t>(view.attributes.integer("axis"));
      const int64_t begin = view.attributes.integer("begin"), step = view.attributes.integer("step", 1);
      Shape shape = c.shape;
      shape[axis] = (view.attributes.integer("end") - begin + step - 1) / step;
      c = select(c, shape, [&](int64_t i) {
        Shape at = index_of(i, shape);
        at[axis] = begin + at[axis] * step;
        return linear_of(at, c.shape);
      });
    }
  }
  return c;
}

bool fold_moves(Node& node, const Constants& in) {
  const std::string& op = node.proto().op_type();
  const Constant& x = in[0];
  const auto give = [&](Constant c) {
    node.result(std::move(c));
    return true;
  };
  if (op == "Gather") return give(gather(node, x, in.at(1)));
  if (op == "Concat") return give(concat(node, in));
  if (op == "Slice") return give(slice(node, x));
  if (op == "Split") return split(node, x);
  if (op == "Unsqueeze") return give(with_shape(x, unsqueezed_shape(node, x.shape)));
  if (op == "Squeeze") return give(with_shape(x, squeezed_shape(node, x.shape)));
  if (op == "Reshape") return give(reshaped(node, x, in.at(1)));
  if (op == "Flatten") return give(with_shape(x, flattened_shape(node, x.shape)));
  if (op == "Transpose") {
    Ints reversed(x.shape.size());
    std::iota(reversed.rbegin(), reversed.rend(), 0);
    return give(transposed(x, node.ints("perm", reversed)));
  }
  if (op == "Expand") return give(expanded(x, in.at(1)));
  if (op == "Tile") return give(tiled(x, in.at(1)));
  if (op == "NonZero") return give(non_zero(x));
  if (op == "Trilu") return give(triangle(node, x, in.size() > 1 ? in[1].integer(0) : 0));
  if (op == "CumSum") return give(cumulative(node, x, in.at(1).integer(0)));
  if (op == "ScatterND" && node.string("reduction", "none") == "none")
    return give(scattered(x, in.at(1), in.at(2)));
  return false;
}

}  // namespace ff::onnx_import
