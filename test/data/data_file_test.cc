// Files: what the formats' documents say is read as they say, and everything else is refused by name.
#include "executor/data/data_file.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "executor/data/npy.h"
#include "executor/data/sample_order.h"
#include "test/catch.h"
#include "test/data/files.h"

namespace ff {
namespace {

std::string opening(const std::string& path) {
  const std::string message = user_error([&] { open_data_file(path); });
  if (message.rfind(path, 0) != 0) return message;
  return message.substr(path.size());
}

TEST_CASE("npy files of all three versions are read") {
  const TempFolder folder;
  for (int version : {1, 2, 3}) {
    const auto file = open_data_file(
        folder.write("a.npy", npy(version, "<f4", "False", "(2, 3)", bytes_of<float>({0, 1, 2, 3, 4, 5}))));
    CHECK(file->shape() == Shape{2, 3});
    CHECK(file->samples() == 2);
    CHECK(file->elements_per_sample() == 3);
    CHECK(name(file->type()) == "float32");
    float second = 0;
    std::memcpy(&second, file->sample(1), sizeof second);
    CHECK(second == 3.0F);
  }
}

TEST_CASE("npy types have their numpy names") {
  const TempFolder folder;
  const std::vector<std::pair<std::string, std::string>> types = {
      {"<f8", "float64"}, {"<i8", "int64"},  {"<i4", "int32"},  {"<i2", "int16"}, {"|i1", "int8"},
      {"|u1", "uint8"},   {"<u2", "uint16"}, {"<u4", "uint32"}, {"|b1", "bool"},  {">f4", "float32"}};
  for (const auto& [descr, expected] : types) {
    const auto file =
        open_data_file(folder.write("t.npy", npy(1, descr, "False", "(1,)", std::string(8, '\0'))));
    CHECK(name(file->type()) == expected);
  }
}

TEST_CASE("IDX files are read plain and gzipped") {
  const TempFolder folder;
  const std::string bytes = idx(0x08, {2, 2, 3}, std::string("\0\1\2\3\4\5\6\7\10\11\12\13", 12));
  for (const std::string& path : {folder.write("plain", bytes), gzipped(folder, "zipped", bytes)}) {
    const auto file = open_data_file(path);
    CHECK(file->shape() == Shape{2, 2, 3});
    CHECK(name(file->type()) == "uint8");
    CHECK(std::to_integer<int>(file->sample(1)[5]) == 11);
  }
}

TEST_CASE("a written npy file has the bytes that the format asks for") {
  const TempFolder folder;
  const std::vector<int32_t> values{1, 2, 3, 4, 5, 6};
  const std::string path = folder.path("w.npy");
  write_npy(path, {3, 2}, {'i', 4}, values.data());
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  CHECK(bytes.substr(0, 8) == std::string("\x93NUMPY\1\0", 8));
  const size_t length = static_cast<unsigned char>(bytes[8]) + 256U * static_cast<unsigned char>(bytes[9]);
  CHECK((10 + length) % 64 == 0);
  CHECK(bytes[10 + length - 1] == '\n');
  CHECK(bytes.find("'descr': '<i4'") != std::string::npos);
  CHECK(bytes.substr(10 + length) == bytes_of(values));
  CHECK(open_data_file(path)->shape() == Shape{3, 2});
}

TEST_CASE("a file that is not what it should be is refused by name", "[error]") {
  const TempFolder folder;
  CHECK(opening(folder.path("none.npy")) == ": cannot be opened: No such file or directory");
  CHECK(opening(folder.path(".")) == ": not a regular file");
  CHECK(opening(folder.write("e", "")) == ": neither a NumPy .npy nor an IDX file");
  CHECK(opening(folder.write("p", "\x89PNG\r\n")) == ": neither a NumPy .npy nor an IDX file");
  CHECK(opening(folder.write("f", npy(1, "<f4", "True", "(2, 2)", std::string(16, 0)))) ==
        ": the array is in Fortran order (fortran_order: True)");
  CHECK(opening(folder.write("c", npy(1, "<c8", "False", "(2,)", std::string(16, 0)))) ==
        ": elements of type '<c8' are not read");
  CHECK(opening(folder.write("v", npy(4, "<f4", "False", "(1,)", std::string(4, 0)))) ==
        ": .npy version 4 is not read (only 1 to 3)");
  CHECK(opening(folder.write("s", npy(1, "<f4", "False", "()", std::string(4, 0)))) ==
        ": a scalar, without an axis of samples");
  CHECK(opening(folder.write("t", npy(1, "<f4", "False", "(3, 2)", std::string(20, 0)))) ==
        ": truncated: 3x2 float32 takes 24 bytes, the file has 20");
  CHECK(opening(folder.write("h", npy(1, "<f4", "False", "(3, 2)", "").substr(0, 40))) ==
        ": truncated inside the .npy header");
  CHECK(opening(folder.write("i", idx(0x08, {5, 2}, "123456789"))) ==
        ": truncated: 5x2 uint8 takes 10 bytes, the file has 9");
  CHECK(opening(folder.write("o", npy(1, "<f4", "False", "(9223372036854775807, 8)", std::string(8, 0)))) ==
        ": the header's shape 9223372036854775807x8 is too large to be true");
}

TEST_CASE("damaged gzip data are refused", "[error]") {
  const TempFolder folder;
  const std::string path = gzipped(folder, "z", idx(0x08, {4, 500}, std::string(2000, 'x')));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 10);
  CHECK(opening(path).rfind(": the gzip data are damaged or truncated", 0) == 0);
}

TEST_CASE("files of different counts are refused with both counts", "[error]") {
  const TempFolder folder;
  const auto a = open_data_file(folder.write("a", idx(0x08, {3}, "abc")));
  const auto b = open_data_file(folder.write("b", idx(0x08, {2}, "ab")));
  CHECK(common_samples({{"image", a.get()}, {"labels", a.get()}}) == 3);
  CHECK(user_error([&] {
          common_samples({{"image", a.get()}, {"labels", b.get()}});
        }) == a->path() + " has 3 samples for 'image', " + b->path() + " has 2 for 'labels'");
}

TEST_CASE("a shuffled epoch is a permutation that seed and epoch alone determine") {
  SampleOrder order(1000, true, 7);
  const std::vector<int64_t> third = order.epoch(3);
  CHECK(std::set<int64_t>(third.begin(), third.end()).size() == 1000);
  CHECK(*std::min_element(third.begin(), third.end()) == 0);
  CHECK(*std::max_element(third.begin(), third.end()) == 999);
  CHECK(order.epoch(4) != third);
  CHECK(SampleOrder(1000, true, 7).epoch(3) == third);
  CHECK(SampleOrder(1000, true, 8).epoch(3) != third);
  // A random permutation has one fixed point on average (Poisson): 12 and more in one of 1000 are beyond
  // belief.
  int fixed = 0;
  for (int64_t i = 0; i < 1000; ++i) fixed += third[static_cast<size_t>(i)] == i ? 1 : 0;
  CHECK(fixed < 12);
}

TEST_CASE("without shuffling samples come as they lie in the file") {
  SampleOrder order(5, false, 7);
  CHECK(order.epoch(9) == std::vector<int64_t>{0, 1, 2, 3, 4});
}

TEST_CASE("training drops a last partial batch and evaluation pads it") {
  const Batches training = cut_batches(10, 4, true);
  CHECK(training.steps == 2);
  CHECK(training.dropped == 2);
  CHECK(training.padded == 0);
  const Batches evaluation = cut_batches(10, 4, false);
  CHECK(evaluation.steps == 3);
  CHECK(evaluation.dropped == 0);
  CHECK(evaluation.padded == 2);
  SampleOrder order(10, false, 0);
  CHECK(order.batch(training, 0, 1).samples == std::vector<int64_t>{4, 5, 6, 7});
  const Batch last = order.batch(evaluation, 0, 2);
  CHECK(last.samples == std::vector<int64_t>{8, 9, -1, -1});
  CHECK(last.real == 2);
}

TEST_CASE("too few samples to train on are refused", "[error]") {
  CHECK(user_error([] { cut_batches(3, 4, true); }) ==
        "the data files hold 3 samples, fewer than one batch of 4");
  CHECK(user_error([] { cut_batches(0, 4, false); }) == "the data files hold no samples");
  CHECK(cut_batches(3, 4, false).steps == 1);
}

}  // namespace
}  // namespace ff
