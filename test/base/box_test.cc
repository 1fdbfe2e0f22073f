#include "compiler/base/box.h"

#include "compiler/base/check.h"
#include "test/catch.h"

using namespace ff;

TEST_CASE("blocks cover an extent in order and differ by at most one") {
  // 50 in 8: boundaries floor(50 i / 8) = 0 6 12 18 25 31 37 43 50.
  const int64_t expected[] = {0, 6, 12, 18, 25, 31, 37, 43, 50};
  for (int i = 0; i < 8; ++i) CHECK(block(50, 8, i) == Range{expected[i], expected[i + 1]});
}

TEST_CASE("a degree and its double share cuts") {
  for (int64_t extent : {7, 16, 65}) {
    for (int i = 0; i <= 3; ++i) CHECK(block(extent, 3, i).lo == block(extent, 6, 2 * i).lo);
  }
}

TEST_CASE("a scalar is one element and an empty range empties a box") {
  CHECK(Box().volume() == 1);
  CHECK(Box({0, 3}, {4, 3}).empty());
  CHECK(intersect(Box({0}, {2}), Box({5}, {9})).empty());
}

TEST_CASE("subtracting leaves disjoint boxes that make up the rest") {
  const Box a({0, 0}, {6, 6});
  const Box hole({2, 1}, {4, 9});
  std::vector<Box> rest;
  subtract(a, hole, rest);
  int64_t total = intersect(a, hole).volume();
  for (size_t i = 0; i < rest.size(); ++i) {
    total += rest[i].volume();
    CHECK(intersect(rest[i], hole).empty());
    for (size_t j = 0; j < i; ++j) CHECK(intersect(rest[i], rest[j]).empty());
  }
  CHECK(total == 36);
}

TEST_CASE("a failed check prints both operands") {
  try {
    FF_CHECK_EQ(2 + 2, 5) << "in arithmetic";
    FAIL("no exception");
  } catch (const InternalError& e) {
    CHECK(std::string(e.what()).find("(4 against 5) in arithmetic") != std::string::npos);
  }
}
