#include "compiler/ops/op_space.h"

#include "compiler/base/check.h"
#include "compiler/base/rng.h"
#include "test/catch.h"

using namespace ff;

namespace {

/// The stem of a residual network: 7x7 windows, stride 2, padding 3.
constexpr const char* kConv =
    "Conv(n:S=64, co:P=64, h:A=112, w:A=112, ci:C=3) [n, ci, 2h-3+7, 2w-3+7], [co, ci, :, :], [co]@ci -> [n, "
    "co, h, w]";

OpSpace random_space(Rng& rng) {
  OpSpace space;
  const int64_t dims = rng.below(5);
  for (int64_t d = 0; d < dims; ++d) {
    const int64_t extent = 1 + rng.below(100);
    space.dims.push_back(
        {"d" + std::to_string(d), static_cast<Role>(rng.below(4)), extent, rng.below(2) ? extent : 1});
  }
  const auto access = [&] {
    AccessMap map;
    for (int64_t axis = rng.below(4); axis > 0; --axis) {
      AxisMap m;
      m.dim = static_cast<int>(rng.below(dims + 1)) - 1;
      if (m.dim >= 0) m = {m.dim, 1 + rng.below(4), rng.below(9) - 4, 1 + rng.below(5)};
      map.axes.push_back(m);
    }
    if (dims > 0 && rng.below(3) == 0) map.first_block_of = static_cast<int>(rng.below(dims));
    if (rng.below(4) == 0) map.combiner = Combiner::max;
    return map;
  };
  for (int64_t i = rng.below(4); i > 0; --i) space.inputs.push_back(access());
  for (int64_t i = 1 + rng.below(2); i > 0; --i) space.outputs.push_back(access());
  return space;
}

}  // namespace

TEST_CASE("the text of a convolution is read as its access maps") {
  std::string type;
  const OpSpace space = parse_space(kConv, &type);
  CHECK(type == "Conv");
  REQUIRE(space.dims.size() == 5);
  CHECK(space.dims[4] == IterDim{"ci", Role::contracted, 3, 3});
  CHECK(space.inputs[0].axes[2] == AxisMap{2, 2, -3, 7});
  CHECK(space.inputs[1].axes[2] == AxisMap::whole());
  CHECK(space.inputs[2].first_block_of == 4);
  CHECK(to_text(type, space) == kConv);
}

TEST_CASE("halos fall out of the map") {
  const OpSpace space = parse_space(kConv);
  // Rows [28, 56) of the output read rows 2*28-3 .. 2*55-3+6 of the input; the first block is clipped at 0.
  std::vector<Range> cell{{0, 64}, {0, 64}, {28, 56}, {0, 112}, {0, 3}};
  CHECK(region(space.inputs[0], {64, 3, 224, 224}, cell)[2] == Range{53, 114});
  cell[2] = {0, 28};
  CHECK(region(space.inputs[0], {64, 3, 224, 224}, cell)[2] == Range{0, 58});
}

TEST_CASE("a bias is read by cells of the first block of the summed dimension only") {
  const OpSpace space = parse_space(kConv);
  std::vector<Range> cell{{0, 64}, {0, 32}, {0, 112}, {0, 112}, {0, 1}};
  CHECK(region(space.inputs[2], {64}, cell) == Box({0}, {32}));
  cell[4] = {1, 3};
  CHECK(region(space.inputs[2], {64}, cell).empty());
}

TEST_CASE("any space is what its text says") {
  Rng rng(11);
  for (int i = 0; i < 500; ++i) {
    const OpSpace space = random_space(rng);
    const std::string text = to_text("Op", space);
    INFO(text);
    CHECK(parse_space(text) == space);
  }
}

TEST_CASE("broken text is refused with its position") {
  CHECK_THROWS_AS(parse_space("Conv(n:S=64 [n] -> [n]"), UserError);
  CHECK_THROWS_AS(parse_space("Conv(n:X=64) [n] -> [n]"), UserError);
  CHECK_THROWS_AS(parse_space("Conv(n:S=64) [m] -> [n]"), UserError);
  CHECK_THROWS_AS(parse_space("Conv(n:S=64) [n] -> [n] more"), UserError);
}
