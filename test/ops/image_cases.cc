#include "test/ops/op_cases.h"

namespace ff::test {
namespace {

constexpr int64_t kYes = 1;
constexpr const char* kGaps = "taps apart, or past the border, leave out elements of the box";

void add_lp_pool(std::vector<OpCase>& out) {
  const auto pool = [&](const Shape& x, const Ints& kernel, Attributes attributes, bool positive = true,
                        std::string inexact = {}) {
    attributes.set("kernel_shape", kernel);
    for (int64_t p : {1, 2, 3}) {
      attributes.set("p", p);
      out.push_back({.op = {"LpPool", attributes, {{"x", x}}},
                     .wanted = {0},
                     .positive = positive,
                     .inexact = p == 1 ? "the slope of |x| is the same on either side" : inexact});
    }
  };
  pool({2, 2, 4, 4}, {2, 2}, {{"strides", Ints{2, 2}}}, false);
  pool({1, 2, 4, 5}, {3, 3}, {{"pads", Ints{1, 1, 1, 1}}});
  pool({1, 2, 5, 4}, {3, 3}, {{"strides", Ints{2, 2}}, {"ceil_mode", kYes}});
  pool({1, 1, 5, 4}, {2, 2}, {{"dilations", Ints{2, 2}}, {"pads", Ints{1, 1, 0, 1}}}, true, kGaps);
  pool({2, 2, 7}, {3}, {{"strides", Ints{2}}});
  pool({1, 2, 3, 2, 2}, {3, 2, 2}, {});
}

void add_conv_transpose(std::vector<OpCase>& out) {
  const auto add = [&](const Shape& x, const Shape& w, Attributes attributes, const Ints& result,
                       std::string inexact = {}) {
    attributes.set("output_shape", result);
    out.push_back({.op = {"ConvTranspose", std::move(attributes), {{"x", x}, {"w", w}}},
                   .wanted = {0, 1},
                   .inexact = std::move(inexact)});
  };
  constexpr const char* kBetween = "rows between windows, and after them, belong to a cell";
  add({2, 2, 3, 3}, {2, 3, 3, 3}, {}, {5, 5});
  add({1, 2, 3, 2}, {2, 2, 3, 2}, {{"strides", Ints{2, 1}}, {"pads", Ints{1, 0, 1, 0}}}, {5, 3});
  add({2, 2, 3, 2}, {2, 2, 2, 2}, {{"strides", Ints{2, 2}}}, {6, 4});
  add({1, 2, 3, 2}, {2, 3, 1, 2}, {{"strides", Ints{3, 3}}}, {7, 5}, kBetween);
  add({1, 2, 3, 2}, {2, 2, 3, 3}, {{"strides", Ints{3, 2}}}, {10, 6}, kBetween);
  add({1, 1, 3, 3}, {1, 2, 2, 2}, {{"dilations", Ints{2, 3}}}, {5, 6}, kGaps);
  add({1, 4, 3, 2}, {4, 1, 2, 2}, {{"group", int64_t{2}}, {"pads", Ints{0, 1, 0, 0}}}, {4, 2});
  add({2, 3, 2, 2}, {3, 1, 3, 3},
      {{"group", int64_t{3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}, {4, 4}, kBetween);
  add({2, 2, 4}, {2, 3, 3}, {{"strides", Ints{2}}}, {9});
  add({1, 2, 2, 2, 2}, {2, 2, 2, 2, 2}, {{"strides", Ints{1, 2, 1}}}, {3, 4, 3});
}

void add_resize(std::vector<OpCase>& out) {
  const auto add = [&](const std::string& mode, const Shape& x, const Ints& sizes, double shift,
                       const std::string& rounding, std::string inexact = {}) {
    Reals from(x.begin() + 2, x.end()), to(sizes.begin(), sizes.end());
    for (int64_t exclude : {0, 1}) {
      out.push_back({.op = {"Resize",
                            {{"sizes", sizes},
                             {"mode", mode},
                             {"rounding", rounding},
                             {"result_shift", shift},
                             {"from", from},
                             {"to", to},
                             {"shifts", Reals(from.size(), shift)},
                             {"coefficient", -0.75},
                             {"exclude_outside", exclude}},
                            {{"x", x}}},
                     .wanted = {0},
                     .inexact = inexact});
      if (mode != "cubic") return;
    }
  };
  constexpr const char* kUnread = "rows that no element is made of are read with the others";
  add("nearest", {2, 2, 2, 3}, {4, 6}, 0, "floor");
  add("nearest", {1, 2, 2, 3}, {6, 3}, 0.5, "round_prefer_floor");
  add("nearest", {1, 2, 2, 3}, {5, 5}, 0.5, "round_prefer_ceil");
  add("nearest", {2, 1, 5, 4}, {2, 8}, 0, "ceil", kUnread);
  add("linear", {2, 2, 2, 3}, {4, 5}, 0.5, "floor");
  add("linear", {1, 2, 4, 3}, {2, 3}, 0.5, "floor");
  add("linear", {2, 2, 3}, {7}, 0, "floor");
  add("linear", {1, 2, 2, 2, 3}, {3, 2, 2}, 0.5, "floor");
  add("cubic", {1, 2, 4, 3}, {5, 7}, 0.5, "floor");
}

}  // namespace

void add_image_ops(std::vector<OpCase>& out) {
  add_lp_pool(out);
  add_conv_transpose(out);
  add_resize(out);
}

}  // namespace ff::test
