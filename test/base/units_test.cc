#include "compiler/base/units.h"

#include "compiler/base/check.h"
#include "compiler/base/spelling.h"
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

TEST_CASE("differences are written with their sign") {
  CHECK(format_byte_difference(1536) == "+1.5 KiB");
  CHECK(format_byte_difference(-640) == "-640 B");
  CHECK(format_byte_difference(0) == "0 B");
  CHECK(format_time_difference(56'700) == "+56.7 us");
  CHECK(format_time_difference(-1'500'000) == "-1.50 ms");
  CHECK(format_time_difference(0) == "0 ns");
}

TEST_CASE("the nearest few words contain the word, or are few edits away") {
  CHECK(nearest_few("conv", {"fc1", "conv22", "cone", "conv1"}, 3) ==
        std::vector<std::string>{"conv1", "conv22", "cone"});
  CHECK(nearest_few("a", {"b"}, 3) == std::vector<std::string>{"b"});
}
