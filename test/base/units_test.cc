#include "compiler/base/units.h"

#include "compiler/base/check.h"
#include "test/catch.h"

using namespace ff;

TEST_CASE("bytes are read with and without a suffix") {
  CHECK(parse_bytes("4096", "--memory-limit") == 4096);
  CHECK(parse_bytes("1.5KiB", "--memory-limit") == 1536);
  CHECK(parse_bytes("2 GiB", "--memory-limit") == int64_t{2} << 30);
}

TEST_CASE("a number of bytes that is none is refused with the option's name") {
  CHECK_THROWS_AS(parse_bytes("many", "--memory-limit"), UserError);
  CHECK_THROWS_AS(parse_bytes("12GB!", "--memory-limit"), UserError);
}
