// f32 kernels of images against the f64 loops, on random calls. The loops themselves are held to finite
// differences and to brute-force regions with the ops (test/ops).
#include <algorithm>
#include <cmath>
#include <vector>

#include "compiler/base/rng.h"
#include "executor/kernels/cpu/registry.h"
#include "test/catch.h"

using namespace ff;

namespace {

/// A buffer in f64 and its image in the operand's type.
struct Value {
  std::vector<double> exact;
  std::vector<std::byte> bytes;
};

std::vector<double> random_values(Rng& rng, int64_t count, double lo = -1, double hi = 1) {
  std::vector<double> out(static_cast<size_t>(count));
  // Values that f32 holds exactly, so that both types compute with the same numbers.
  for (double& v : out) v = static_cast<double>(static_cast<float>(lo + (hi - lo) * rng.uniform()));
  return out;
}

template <typename T>
void encode(const std::vector<double>& values, std::vector<std::byte>& bytes) {
  bytes.resize(values.size() * sizeof(T) + 64);
  auto* out = reinterpret_cast<T*>(bytes.data());
  for (size_t i = 0; i < values.size(); ++i) out[i] = static_cast<T>(values[i]);
}

template <typename T>
std::vector<double> decode(const std::vector<std::byte>& bytes, int64_t count) {
  const auto* in = reinterpret_cast<const T*>(bytes.data());
  return std::vector<double>(in, in + count);
}

/// Runs a call on values given in f64 (all operands; outputs are written over). Outputs start as NaN.
std::vector<std::vector<double>> run(KernelCall call, const std::vector<std::vector<double>>& values,
                                     DType type, cpu::Flavor flavor) {
  std::vector<std::vector<std::byte>> buffers(call.operands.size());
  std::vector<void*> pointers(call.operands.size(), nullptr);
  for (size_t i = 0; i < call.operands.size(); ++i) {
    Operand& o = call.operands[i];
    if (is_absent(o)) continue;
    if (is_float(o.dtype)) o.dtype = type;
    std::vector<double> v = values[i];
    if (o.access == Access::out)
      v.assign(static_cast<size_t>(volume(o.shape)), is_float(o.dtype) ? std::nan("") : -7);
    if (o.dtype == DType::f64) encode<double>(v, buffers[i]);
    if (o.dtype == DType::f32) encode<float>(v, buffers[i]);
    if (o.dtype == DType::i32) encode<int32_t>(v, buffers[i]);
    pointers[i] = buffers[i].data();
  }
  const auto kernel = cpu::make_kernel(call, flavor);
  std::vector<std::byte> workspace(static_cast<size_t>(kernel->workspace_bytes()) + 64);
  void* aligned = workspace.data() + (64 - reinterpret_cast<uintptr_t>(workspace.data()) % 64) % 64;
  kernel->run(pointers, aligned, RunContext{});
  std::vector<std::vector<double>> out(call.operands.size());
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const Operand& o = call.operands[i];
    if (is_absent(o) || o.access == Access::in) continue;
    const int64_t n = volume(o.shape);
    out[i] = o.dtype == DType::f64   ? decode<double>(buffers[i], n)
             : o.dtype == DType::f32 ? decode<float>(buffers[i], n)
                                     : decode<int32_t>(buffers[i], n);
  }
  return out;
}

/// Largest difference over the largest value.
double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0, scale = 1e-6;
  for (size_t i = 0; i < b.size(); ++i) {
    const double d = std::abs(a[i] - b[i]);
    most = std::max(most, std::isfinite(d) ? d : 1e30);
    scale = std::max(scale, std::abs(b[i]));
  }
  return most / scale;
}

/// Runs the call in f64 and both f32 flavours, and wants all outputs within `tolerance`.
void compare(const KernelCall& call, const std::vector<std::vector<double>>& values,
             double tolerance = 2e-5) {
  INFO(to_string(call));
  const auto exact = run(call, values, DType::f64, cpu::Flavor::reference);
  for (cpu::Flavor flavor : {cpu::Flavor::reference, cpu::Flavor::fast}) {
    INFO((flavor == cpu::Flavor::fast ? "fast" : "loops"));
    const auto got = run(call, values, DType::f32, flavor);
    for (size_t i = 0; i < exact.size(); ++i) {
      INFO("operand " << i);
      CHECK(distance(got[i], exact[i]) <= tolerance);
    }
  }
}

std::vector<std::vector<double>> random_operands(Rng& rng, const KernelCall& call) {
  std::vector<std::vector<double>> out;
  for (const Operand& o : call.operands)
    out.push_back(random_values(rng, is_absent(o) ? 0 : volume(o.shape)));
  return out;
}

Operand operand(Shape shape, Layout layout, Access access = Access::in, DType type = DType::f64) {
  return {.dtype = type, .layout = layout, .access = access, .shape = std::move(shape)};
}

/// Random windows over `axes` axes and shapes that fit them.
struct RandomWindows {
  Ints kernel, strides, dilations, pads;
  Shape in, out;

  RandomWindows(Rng& rng, size_t axes, bool pool) : pads(2 * axes, 0) {
    for (size_t a = 0; a < axes; ++a) {
      kernel.push_back(1 + rng.below(4));
      strides.push_back(1 + rng.below(3));
      dilations.push_back(1 + rng.below(2));
      const int64_t reach = (kernel[a] - 1) * dilations[a] + 1;
      for (int64_t* pad : {&pads[a], &pads[axes + a]})
        *pad = rng.below(std::min<int64_t>(3, pool ? (kernel[a] + 1) / 2 : reach + 1));
      out.push_back(1 + rng.below(6));
      // Windows that need this much, and rows that none reads.
      const int64_t need = (out[a] - 1) * strides[a] + reach - pads[a] - pads[axes + a];
      in.push_back(std::max<int64_t>(1, need) + (need >= 1 ? rng.below(strides[a]) : 0));
      out[a] = (in[a] + pads[a] + pads[axes + a] - reach) / strides[a] + 1;
    }
  }
  void set(Attributes& attributes) const {
    attributes.set("strides", strides);
    attributes.set("dilations", dilations);
    attributes.set("pads", pads);
  }
  static Shape image(int64_t n, int64_t c, const Shape& spatial) {
    Shape s{n, c};
    s.insert(s.end(), spatial.begin(), spatial.end());
    return s;
  }
};

Layout random_layout(Rng& rng) { return rng.below(3) == 0 ? Layout::row_major : Layout::channels_last; }

TEST_CASE("f32 convolutions equal the f64 loops on random shapes") {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed);
    const RandomWindows v(rng, static_cast<size_t>(1 + rng.below(3)), false);
    const int64_t n = 1 + rng.below(3), group = rng.below(3) == 0 ? 1 + rng.below(4) : 1;
    const int64_t ci = 1 + rng.below(9), co = 1 + rng.below(9);
    const Layout layout = random_layout(rng);
    const auto image = [&](int64_t c, const Shape& s, Access access) {
      return operand(v.image(n, c, s), layout, access);
    };
    const auto weight = [&](Access access) {
      return operand(v.image(co * group, ci, v.kernel), Layout::row_major, access);
    };
    const bool bias = rng.below(2) == 0;
    const auto vector = [&](Access access) {
      return bias ? operand({co * group}, Layout::row_major, access) : absent_operand();
    };
    KernelCall call{.kernel = "Conv", .attributes = {{"group", group}}, .operands = {}};
    v.set(call.attributes);

    KernelCall forward = call;
    if (rng.below(2) == 0) forward.attributes.set("relu", int64_t{1});
    forward.operands = {image(ci * group, v.in, Access::in), weight(Access::in), vector(Access::in),
                        image(co * group, v.out, Access::out)};
    compare(forward, random_operands(rng, forward));

    KernelCall data = call;
    data.kernel = "ConvGradData";
    data.operands = {image(co * group, v.out, Access::in), weight(Access::in),
                     image(ci * group, v.in, Access::out)};
    compare(data, random_operands(rng, data));

    KernelCall weights = call;
    weights.kernel = "ConvGradWeight";
    weights.operands = {image(ci * group, v.in, Access::in), image(co * group, v.out, Access::in),
                        weight(Access::out), vector(Access::out)};
    compare(weights, random_operands(rng, weights));
  }
}

TEST_CASE("f32 convolutions of blocks of channels equal the f64 loops") {
  Rng rng(11);
  for (const auto& [ci, co, window] : {std::tuple{32, 48, 1}, {16, 16, 3}, {64, 32, 3}, {48, 40, 1}}) {
    const Shape x{2, ci, 5, 5}, w{co, ci, window, window}, y{2, co, 6 - window, 6 - window};
    const auto last = [](const Shape& shape, Access access) {
      return operand(shape, Layout::channels_last, access);
    };
    const auto row = [](const Shape& shape, Access access) {
      return operand(shape, Layout::row_major, access);
    };
    KernelCall call{.kernel = "Conv", .attributes = {{"group", int64_t{1}}}, .operands = {}};
    call.attributes.set("strides", Ints{1, 1});
    call.attributes.set("dilations", Ints{1, 1});
    call.attributes.set("pads", Ints{0, 0, 0, 0});
    call.operands = {last(x, Access::in), row(w, Access::in), absent_operand(), last(y, Access::out)};
    compare(call, random_operands(rng, call));
    call.kernel = "ConvGradData";
    call.operands = {last(y, Access::in), row(w, Access::in), last(x, Access::out)};
    compare(call, random_operands(rng, call));
    call.kernel = "ConvGradWeight";
    call.operands = {last(x, Access::in), last(y, Access::in), row(w, Access::out), absent_operand()};
    compare(call, random_operands(rng, call));
  }
}

TEST_CASE("a convolution whose window is all padding gives the bias") {
  KernelCall call{.kernel = "Conv",
                  .attributes = {{"group", int64_t{1}},
                                 {"strides", Ints{1, 1}},
                                 {"dilations", Ints{1, 1}},
                                 {"pads", Ints{2, 1, 0, 1}}},
                  .operands = {operand({1, 3, 0, 4}, Layout::channels_last),
                               operand({2, 3, 2, 3}, Layout::row_major), operand({2}, Layout::row_major),
                               operand({1, 2, 1, 4}, Layout::channels_last, Access::out)}};
  std::vector<std::vector<double>> values{
      {}, std::vector<double>(36, 1.0), {0.5, -2.0}, std::vector<double>(8)};
  for (DType type : {DType::f64, DType::f32}) {
    const auto out = run(call, values, type, cpu::Flavor::fast);
    CHECK(out[3] == std::vector<double>{0.5, -2.0, 0.5, -2.0, 0.5, -2.0, 0.5, -2.0});
  }
}

TEST_CASE("f32 pooling equals the f64 loops on random shapes") {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed);
    const RandomWindows v(rng, static_cast<size_t>(1 + rng.below(3)), true);
    const int64_t n = 1 + rng.below(3), c = 1 + rng.below(40);
    const Layout layout = random_layout(rng);
    const Operand x = operand(v.image(n, c, v.in), layout), y = operand(v.image(n, c, v.out), layout);
    const auto out = [](Operand o, DType type = DType::f64) {
      o.access = Access::out, o.dtype = type;
      return o;
    };
    KernelCall call{.kernel = "MaxPool",
                    .attributes = {{"kernel_shape", v.kernel}},
                    .operands = {x, out(y), out(y, DType::i32)}};
    v.set(call.attributes);
    std::vector<std::vector<double>> values = random_operands(rng, call);
    // Few different values, so that there are ties.
    for (double& e : values[0]) e = std::round(e * 3);
    compare(call, values);

    KernelCall grad = call;
    grad.kernel = "MaxPoolGrad";
    Operand index = y;
    index.dtype = DType::i32;
    grad.operands = {y, index, out(x)};
    auto grad_values = random_operands(rng, grad);
    grad_values[1] = run(call, values, DType::f64, cpu::Flavor::reference)[2];
    compare(grad, grad_values);

    KernelCall average = call;
    average.kernel = "AveragePool";
    Ints begin, end;
    const size_t axes = v.kernel.size();
    for (size_t a = 0; a < axes; ++a) {
      const bool padding = seed % 2 == 0;
      begin.push_back(padding ? -v.pads[a] : 0);
      end.push_back(v.in[a] + (padding ? v.pads[axes + a] : 0));
    }
    average.attributes.set("count_begin", begin);
    average.attributes.set("count_end", end);
    average.operands = {x, out(y)};
    compare(average, random_operands(rng, average));
    average.kernel = "AveragePoolGrad";
    average.operands = {y, out(x)};
    compare(average, random_operands(rng, average));

    const Operand one = operand(v.image(n, c, Shape(axes, 1)), layout);
    KernelCall global{
        .kernel = "GlobalAveragePool", .attributes = {{"scale", 0.125}}, .operands = {x, out(one)}};
    compare(global, random_operands(rng, global));
    global.kernel = "GlobalAveragePoolGrad";
    global.operands = {one, out(x)};
    compare(global, random_operands(rng, global));
  }
}

TEST_CASE("f32 norms of windows and resized images equal the f64 loops on random shapes") {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng(seed);
    const size_t axes = static_cast<size_t>(1 + rng.below(3));
    const RandomWindows v(rng, axes, true);
    const int64_t n = 1 + rng.below(3), c = 1 + rng.below(40);
    const Layout layout = random_layout(rng);
    const Operand x = operand(v.image(n, c, v.in), layout), y = operand(v.image(n, c, v.out), layout);
    const auto out = [](Operand o) {
      o.access = Access::out;
      return o;
    };
    KernelCall norm{.kernel = "LpPool",
                    .attributes = {{"kernel_shape", v.kernel}, {"p", 1 + rng.below(3)}},
                    .operands = {x, out(y)}};
    v.set(norm.attributes);
    std::vector<std::vector<double>> values = random_operands(rng, norm);
    compare(norm, values);
    KernelCall grad = norm;
    grad.kernel = "LpPoolGrad";
    grad.operands = {x, y, y, out(x)};
    values = {values[0],
              run(norm, values, DType::f64, cpu::Flavor::reference)[1],
              random_values(rng, volume(y.shape)),
              {}};
    compare(grad, values, 1e-4);

    constexpr const char* kModes[] = {"nearest", "linear", "cubic"};
    KernelCall resize{.kernel = "Resize",
                      .attributes = {{"mode", std::string(kModes[rng.below(3)])},
                                     {"rounding", std::string("floor")},
                                     {"result_shift", 0.5},
                                     {"from", Reals(v.in.begin(), v.in.end())},
                                     {"to", Reals(v.out.begin(), v.out.end())},
                                     {"shifts", Reals(axes, 0.5)},
                                     {"coefficient", -0.75},
                                     {"exclude_outside", rng.below(2)},
                                     {"factors", Ints(axes, 0)}},
                      .operands = {x, out(y)}};
    compare(resize, random_operands(rng, resize));
    resize.kernel = "ResizeGrad";
    resize.operands = {y, out(x)};
    compare(resize, random_operands(rng, resize));
  }
}

TEST_CASE("max pooling takes the first of equal maxima and the NaN") {
  const auto x = operand({1, 1, 2, 3}, Layout::channels_last),
             y = operand({1, 1, 1, 2}, Layout::channels_last, Access::out);
  Operand index = y;
  index.dtype = DType::i32;
  const KernelCall call{.kernel = "MaxPool",
                        .attributes = {{"kernel_shape", Ints{2, 2}},
                                       {"strides", Ints{1, 1}},
                                       {"dilations", Ints{1, 1}},
                                       {"pads", Ints{0, 0, 0, 0}}},
                        .operands = {x, y, index}};
  for (DType type : {DType::f64, DType::f32}) {
    // Rows 1 5 5 and 5 2 5: both windows hold 5 several times.
    const auto out = run(call, {{1, 5, 5, 5, 2, 5}, {}, {}}, type, cpu::Flavor::fast);
    CHECK(out[1] == std::vector<double>{5, 5});
    CHECK(out[2] == std::vector<double>{1, 0});
    const auto nan = run(call, {{1, 5, 5, std::nan(""), 2, 7}, {}, {}}, type, cpu::Flavor::fast);
    CHECK(std::isnan(nan[1][0]));
    CHECK(nan[2] == std::vector<double>{2, 3});
  }
}

/// x, dy, scale, bias (only with relu), mean, var: the operands that the gradients of batch normalisation
/// share.
struct RandomNorm {
  Shape shape;
  Layout layout;
  bool relu;
  std::vector<std::vector<double>> values;  // x, dy, scale, bias, mean, var

  explicit RandomNorm(Rng& rng) : layout(random_layout(rng)), relu(rng.below(2) == 0) {
    shape = {1 + rng.below(4), 1 + rng.below(40)};
    for (int64_t a = rng.below(4); a > 0; --a) shape.push_back(1 + rng.below(12));
    const int64_t c = shape[1], rows = volume(shape) / c;
    values = {random_values(rng, volume(shape), 2, 4), random_values(rng, volume(shape)),
              random_values(rng, c, 0.5, 2),           random_values(rng, c),
              random_values(rng, c, 2.8, 3.2),         random_values(rng, c, 0.2, 0.5)};
    if (rows < 2) shape[0] = 1;
  }
  Operand image(Access access = Access::in) const { return operand(shape, layout, access); }
  Operand vector(Access access = Access::in) const { return operand({shape[1]}, Layout::row_major, access); }
  Attributes attributes(bool count, bool epsilon = true) const {
    Attributes a;
    if (epsilon) a.set("epsilon", 1e-5);
    if (count) a.set("scale", static_cast<double>(shape[1]) / static_cast<double>(volume(shape)));
    if (epsilon && relu) a.set("relu", int64_t{1});
    return a;
  }
};

TEST_CASE("f32 batch normalisation equals the f64 loops on random shapes") {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed);
    const RandomNorm r(rng);
    const auto& v = r.values;
    const Operand x = r.image(), y = r.image(Access::out), in = r.vector(), out = r.vector(Access::out);
    if (volume(r.shape) / r.shape[1] >= 8) {  // of very few values the deviation may be near nothing
      compare({"BatchNorm", r.attributes(true), {x, in, in, y, out, out}}, {v[0], v[2], v[3], {}, {}, {}},
              1e-4);
    }
    compare({"BatchNormSum", r.attributes(true, false), {x, out}}, {v[0], {}});
    compare({"BatchNormSquares", r.attributes(true, false), {x, in, out}}, {v[0], v[4], {}});
    compare({"BatchNormNormalize", r.attributes(false), {x, in, in, in, in, y}},
            {v[0], v[2], v[3], v[4], v[5], {}}, 1e-4);

    const Operand bias = r.relu ? in : absent_operand();
    const std::vector<std::vector<double>> given{v[0], v[1], v[2], r.relu ? v[3] : std::vector<double>{},
                                                 v[4], v[5]};
    const auto with = [&](std::vector<std::vector<double>> more) {
      auto all = given;
      all.insert(all.end(), more.begin(), more.end());
      return all;
    };
    compare({"BatchNormGrad", r.attributes(true), {x, x, in, bias, in, in, y, out, out}}, with({{}, {}, {}}),
            1e-4);
    compare({"BatchNormInferenceGrad", r.attributes(false), {x, x, in, bias, in, in, y, out, out}},
            with({{}, {}, {}}), 1e-4);
    compare({"BatchNormInferenceGrad",
             r.attributes(false),
             {x, x, in, bias, in, in, y, absent_operand(), absent_operand()}},
            with({{}, {}, {}}), 1e-4);
    compare({"BatchNormGradSums", r.attributes(false), {x, x, in, bias, in, in, out, out}}, with({{}, {}}),
            1e-4);
    compare({"BatchNormGradData", r.attributes(true), {x, x, in, bias, in, in, in, in, y}},
            with({v[3], v[4], {}}), 1e-4);
  }
}

TEST_CASE("batch normalisation in f32 stands values far from zero") {
  // 4,096 values a channel around 1,000 with deviation near 0.29: the square of the mean is 10^7 times the
  // variance.
  Rng rng(3);
  const Shape shape{4, 8, 32, 32};
  const Operand x = operand(shape, Layout::channels_last), vector = operand({8}, Layout::row_major);
  Operand y = x, out = vector;
  y.access = out.access = Access::out;
  const auto values = random_values(rng, volume(shape), 999.5, 1000.5);
  const KernelCall call{
      "BatchNorm", {{"epsilon", 1e-5}, {"scale", 1.0 / 4096}}, {x, vector, vector, y, out, out}};
  const auto got = run(call, {values, std::vector<double>(8, 1), std::vector<double>(8, 0), {}, {}, {}},
                       DType::f32, cpu::Flavor::fast);
  for (size_t c = 0; c < 8; ++c) CHECK(got[5][c] == Approx(1.0 / 12).epsilon(0.03));
  const auto exact = run(call, {values, std::vector<double>(8, 1), std::vector<double>(8, 0), {}, {}, {}},
                         DType::f64, cpu::Flavor::reference);
  CHECK(distance(got[5], exact[5]) < 1e-5);
}

TEST_CASE("running statistics move by one minus the momentum") {
  Operand in = operand({2}, Layout::row_major), state = operand({2}, Layout::row_major, Access::inout);
  const KernelCall call{
      "BatchNormRunning", {{"momentum", 0.75}}, {in, in, state, state, absent_operand(), absent_operand()}};
  const auto out = run(call, {{4, 8}, {1, 2}, {0, 4}, {1, 6}, {}, {}}, DType::f32, cpu::Flavor::fast);
  CHECK(out[2] == std::vector<double>{1, 5});  // 0.75 * 0 + 0.25 * 4 and 0.75 * 4 + 0.25 * 8
  CHECK(out[3] == std::vector<double>{1, 5});
}

TEST_CASE("f32 local response normalisation equals the f64 loops on random channel blocks") {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng(seed);
    const int64_t channels = 1 + rng.below(30), size = rng.below(2) == 0 ? 5 : 1 + rng.below(7);
    const Layout layout = random_layout(rng);
    const int64_t lo = rng.below(channels), hi = lo + 1 + rng.below(channels - lo);
    const auto clip = [&](int64_t before, int64_t after) {
      return std::pair(std::max<int64_t>(0, lo - before), std::min(channels, hi + after));
    };
    const auto image = [&](std::pair<int64_t, int64_t> c, Access access = Access::in) {
      return operand({2, c.second - c.first, 3, 4}, layout, access);
    };
    const int64_t before = (size - 1) / 2, after = size / 2;
    const double beta = rng.below(2) == 0 ? 0.75 : 0.6;
    Attributes attributes{{"size", size}, {"alpha", 0.5}, {"beta", beta}, {"bias", 1.5}};
    const auto x = clip(before, after), wide = clip(size - 1, size - 1), dy = clip(after, before);
    attributes.set("begin", lo - x.first);
    KernelCall call{"LRN", attributes, {image(x), image({lo, hi}, Access::out)}};
    compare(call, random_operands(rng, call));
    attributes.set("begin", lo - wide.first);
    attributes.set("dy_begin", lo - dy.first);
    KernelCall grad{"LRNGrad", attributes, {image(wide), image(dy), image({lo, hi}, Access::out)}};
    compare(grad, random_operands(rng, grad));
  }
}

}  // namespace
