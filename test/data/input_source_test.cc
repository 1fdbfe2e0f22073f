// Regions: whatever the split and the storage order, every rank's part is that part of the one global batch.
#include "executor/data/input_source.h"

#include <cmath>

#include "compiler/base/rng.h"
#include "test/catch.h"
#include "test/data/files.h"

namespace ff {
namespace {

std::shared_ptr<const DataFile> file_of(const TempFolder& folder, const std::string& descr,
                                        const std::string& shape, const std::string& elements) {
  return open_data_file(folder.write("x.npy", npy(1, descr, "False", shape, elements)));
}

template <typename T>
std::vector<T> fill(InputSource& source, const Batch& batch, const InputRegion& region) {
  std::vector<T> out(static_cast<size_t>(region.box.volume()), T(77));
  source.fill(batch, region, out.data());
  return out;
}

// Fills each block of a split and puts its elements where they belong in the whole input.
std::vector<float> assemble(InputSource& source, const Batch& batch, const Shape& shape, const Shape& degrees,
                            const std::vector<int>& order) {
  std::vector<float> whole(static_cast<size_t>(volume(shape)), -1e9F);
  for (int64_t cell = 0; cell < volume(degrees); ++cell) {
    Box box = Box::whole(shape);
    int64_t rest = cell;
    for (size_t a = 0; a < shape.size(); ++a) {
      box.set(static_cast<int>(a), block(shape[a], degrees[a], rest % degrees[a]));
      rest /= degrees[a];
    }
    const std::vector<float> part = fill<float>(source, batch, {box, order});
    for (size_t i = 0; i < part.size(); ++i) {
      auto left = static_cast<int64_t>(i);
      std::vector<int64_t> at(shape.size());
      for (size_t level = shape.size(); level-- > 0;) {
        const int axis = order.empty() ? static_cast<int>(level) : order[level];
        at[static_cast<size_t>(axis)] = box[axis].lo + left % box[axis].size();
        left /= box[axis].size();
      }
      int64_t offset = 0;
      for (size_t a = 0; a < shape.size(); ++a) offset = offset * shape[a] + at[a];
      whole[static_cast<size_t>(offset)] = part[i];
    }
  }
  return whole;
}

TEST_CASE("regions under every split and storage order assemble to the same batch") {
  const TempFolder folder;
  std::vector<float> values(6 * 3 * 4 * 5);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const InputSpec spec{.name = "image", .shape = {4, 3, 4, 5}};
  const Batch batch{{5, 0, 3, 2}, 4};
  std::vector<float> expected;
  for (int64_t sample : batch.samples) {
    for (int64_t i = 0; i < 60; ++i) expected.push_back(static_cast<float>(sample * 60 + i));
  }
  const auto from_file = file_source(spec, file_of(folder, "<f4", "(6, 3, 4, 5)", bytes_of(values)), {});
  const auto made_up = synthetic_source(spec, 3);
  const std::vector<float> synthetic = fill<float>(*made_up, batch, {Box::whole(spec.shape), {}});
  for (const Shape& degrees : {Shape{1, 1, 1, 1}, Shape{2, 1, 1, 1}, Shape{3, 2, 3, 2}, Shape{1, 3, 1, 5}}) {
    for (const std::vector<int>& order : {std::vector<int>{}, {0, 2, 3, 1}, {1, 2, 3, 0}}) {
      CHECK(assemble(*from_file, batch, spec.shape, degrees, order) == expected);
      CHECK(assemble(*made_up, batch, spec.shape, degrees, order) == synthetic);
    }
  }
}

TEST_CASE("samples go to the batch axis of a time-major input") {
  const TempFolder folder;
  // Two sentences of three words; the model reads [time, batch].
  const auto source =
      file_source({.name = "words", .shape = {3, 2}, .type = DType::i64, .batch_axis = 1},
                  file_of(folder, "<i4", "(2, 3)", bytes_of<int32_t>({1, 2, 3, 4, 5, 6})), {});
  const Batch batch{{1, 0}, 2};
  CHECK(fill<int64_t>(*source, batch, {Box({0, 0}, {3, 2}), {}}) == std::vector<int64_t>{4, 1, 5, 2, 6, 3});
  CHECK(fill<int64_t>(*source, batch, {Box({1, 1}, {3, 2}), {}}) == std::vector<int64_t>{2, 3});
}

TEST_CASE("bytes are scaled and normalized as stated") {
  const TempFolder folder;
  const std::shared_ptr<const DataFile> file =
      open_data_file(folder.write("i", idx(8, {2, 1, 2}, std::string("\0\x33\x66\xff", 4))));
  const InputSpec spec{.name = "image", .shape = {2, 1, 1, 2}};
  const InputRegion whole{Box::whole(spec.shape), {}};
  CHECK(fill<float>(*file_source(spec, file, Normalize{255}), {{1, 0}, 2}, whole) ==
        std::vector<float>{0.4F, 1.0F, 0.0F, 0.2F});
  // (1 - 0.5) / 0.25 and (0 - 0.5) / 0.25.
  const std::vector<float> centred =
      fill<float>(*file_source(spec, file, Normalize{255, 0.5, 0.25}), {{1, 0}, 2}, whole);
  CHECK(centred[1] == 2.0F);
  CHECK(centred[2] == -2.0F);
  CHECK(file_source(spec, file, Normalize{255, 0.5, 0.25})->describe() ==
        "image: " + file->path() +
            ", 2 samples of 1x2 uint8 read as 1x1x2, divided by 255, mean 0.5 and deviation 0.25 taken out");
}

TEST_CASE("integers of every width and byte order widen") {
  const TempFolder folder;
  const InputSpec spec{.name = "labels", .shape = {2}, .type = DType::i64};
  const auto read = [&](const std::string& descr, const std::string& elements) {
    return fill<int64_t>(*file_source(spec, file_of(folder, descr, "(2,)", elements), {}), {{0, 1}, 2},
                         {Box({0}, {2}), {}});
  };
  CHECK(read("|u1", bytes_of<uint8_t>({200, 9})) == std::vector<int64_t>{200, 9});
  CHECK(read("|i1", bytes_of<int8_t>({-5, 9})) == std::vector<int64_t>{-5, 9});
  CHECK(read("<i2", bytes_of<int16_t>({-300, 9})) == std::vector<int64_t>{-300, 9});
  CHECK(read(">i2", std::string("\x01\x02\xff\xff", 4)) == std::vector<int64_t>{258, -1});
  CHECK(read("<u4", bytes_of<uint32_t>({4000000000U, 9})) == std::vector<int64_t>{4000000000, 9});
  CHECK(read("<i8", bytes_of<int64_t>({-1LL << 40, 9})) == std::vector<int64_t>{-1LL << 40, 9});
}

TEST_CASE("positions past the last sample hold the padding value") {
  const TempFolder folder;
  const auto labels =
      file_source({.name = "labels", .shape = {4}, .type = DType::i64, .padding = -100},
                  open_data_file(folder.write("l", idx(8, {3}, std::string("\1\2\3", 3)))), {});
  CHECK(fill<int64_t>(*labels, {{2, -1, 0, -1}, 2}, {Box({0}, {4}), {}}) ==
        std::vector<int64_t>{3, -100, 1, -100});
  const auto made_up = synthetic_source({.name = "x", .shape = {2, 2}}, 1);
  const std::vector<float> x = fill<float>(*made_up, {{4, -1}, 1}, {Box({0, 0}, {2, 2}), {}});
  CHECK(x[0] != 0.0F);
  CHECK(x[2] == 0.0F);
  CHECK(x[3] == 0.0F);
}

TEST_CASE("synthetic numbers have mean 0 and variance 1 and labels cover their classes evenly") {
  const Batch batch{{0, 1, 2, 3}, 4};
  const auto floats = synthetic_source({.name = "image", .shape = {4, 25000}}, 11);
  const std::vector<float> x = fill<float>(*floats, batch, {Box({0, 0}, {4, 25000}), {}});
  double sum = 0, squares = 0;
  for (float v : x) sum += v, squares += static_cast<double>(v) * v;
  // 100,000 independent draws: the mean's deviation is 0.0032, the variance's below 0.0045; five of them.
  CHECK(std::abs(sum / 1e5) < 0.016);
  CHECK(std::abs(squares / 1e5 - 1) < 0.023);
  const auto labels =
      synthetic_source({.name = "labels", .shape = {4, 25000}, .type = DType::i64, .classes = 10}, 11);
  std::vector<int> counts(10);
  for (int64_t v : fill<int64_t>(*labels, batch, {Box({0, 0}, {4, 25000}), {}}))
    ++counts.at(static_cast<size_t>(v));
  for (int count : counts) CHECK(std::abs(count - 10000) < 500);  // deviation 95
}

TEST_CASE("synthetic numbers differ by seed and input and follow the sample") {
  const InputRegion whole{Box({0, 0}, {2, 8}), {}};
  const auto values = [&](const std::string& input, uint64_t seed, const Batch& batch) {
    return fill<float>(*synthetic_source({.name = input, .shape = {2, 8}}, seed), batch, whole);
  };
  const std::vector<float> a = values("a", 1, {{0, 1}, 2});
  CHECK(values("a", 1, {{0, 1}, 2}) == a);
  CHECK(values("b", 1, {{0, 1}, 2}) != a);
  CHECK(values("a", 2, {{0, 1}, 2}) != a);
  const std::vector<float> swapped = values("a", 1, {{1, 0}, 2});
  CHECK(std::vector<float>(swapped.begin() + 8, swapped.end()) ==
        std::vector<float>(a.begin(), a.begin() + 8));
}

std::string refusal(const InputSpec& spec, const std::shared_ptr<const DataFile>& file,
                    std::optional<Normalize> normalize = {}) {
  std::string message = user_error([&] { file_source(spec, file, normalize); });
  const size_t at = message.find(file->path());
  return at == std::string::npos ? message : message.replace(at, file->path().size(), "FILE");
}

TEST_CASE("a file of another shape is refused with both shapes", "[error]") {
  const TempFolder folder;
  const auto file = file_of(folder, "<f4", "(2, 3, 4)", std::string(96, 0));
  CHECK(refusal({.name = "x", .shape = {8, 1, 3, 4}}, file) == "no UserError");
  CHECK(refusal({.name = "x", .shape = {3, 8, 4, 1}, .batch_axis = 1}, file) == "no UserError");
  CHECK(
      refusal({.name = "x", .shape = {8, 1, 4, 3}}, file) ==
      "input 'x' is 8x1x4x3 (batch on axis 0), a sample of it 1x4x3, but FILE is 2x3x4, a sample of it 3x4");
  CHECK(refusal({.name = "x", .shape = {8, 12}}, file) ==
        "input 'x' is 8x12 (batch on axis 0), a sample of it 12, but FILE is 2x3x4, a sample of it 3x4");
  CHECK(refusal({.name = "x", .shape = {8, 4}}, file) ==
        "input 'x' is 8x4 (batch on axis 0), a sample of it 4, but FILE is 2x3x4, a sample of it 3x4");
  CHECK(
      refusal({.name = "x", .shape = {8, 2, 3, 4}}, file) ==
      "input 'x' is 8x2x3x4 (batch on axis 0), a sample of it 2x3x4, but FILE is 2x3x4, a sample of it 3x4");
}

TEST_CASE("a file of an unfit type is refused with both types", "[error]") {
  const TempFolder folder;
  const auto file = [&](const std::string& descr) {
    return file_of(folder, descr, "(1,)", std::string(8, 0));
  };
  const auto spec = [](DType type) { return InputSpec{.name = "x", .shape = {8}, .type = type}; };
  CHECK(refusal(spec(DType::f32), file("|u1")) ==
        "input 'x' is f32, FILE is uint8: integers become floats only by a stated scale");
  CHECK(refusal(spec(DType::f32), file("<i8")) ==
        "input 'x' is f32, FILE is int64: integers become floats only by a stated scale");
  CHECK(refusal(spec(DType::i32), file("<i8")) ==
        "input 'x' is i32, FILE is int64: integers widen, never narrow");
  CHECK(refusal(spec(DType::i32), file("<u4")) ==
        "input 'x' is i32, FILE is uint32: integers widen, never narrow");
  CHECK(refusal(spec(DType::i64), file("<u8")) ==
        "input 'x' is i64, FILE is uint64: integers widen, never narrow");
  CHECK(refusal(spec(DType::u8), file("|i1")) ==
        "input 'x' is u8, FILE is int8: integers widen, never narrow");
  CHECK(refusal(spec(DType::i64), file("<f4")) ==
        "input 'x' is i64, FILE is float32: floats do not become integers");
  CHECK(refusal(spec(DType::i64), file("|u1"), Normalize{255}) ==
        "input 'x' is i64, FILE is uint8: only floats can be normalized");
  CHECK(refusal(spec(DType::boolean), file("|u1")) ==
        "input 'x' is bool, FILE is uint8: only booleans become booleans");
  CHECK(refusal(spec(DType::bf16), file("<f4")) ==
        "input 'x' is bf16, FILE is float32: 16-bit inputs are not read from files");
  for (const char* fits : {"<f8", "|b1"}) CHECK(refusal(spec(DType::f32), file(fits)) == "no UserError");
  CHECK(user_error([&] { synthetic_source(spec(DType::i64), 1); }) ==
        "input 'x' holds integers: synthetic ones need to know below what");
}

TEST_CASE("a normalization is read as written or refused", "[error]") {
  const auto [name, n] = parse_normalize("image=255,0.5,0.25");
  CHECK(name == "image");
  CHECK(n.scale == 255);
  CHECK(n.mean == 0.5);
  CHECK(n.stddev == 0.25);
  CHECK(parse_normalize("a=2").second.stddev == 1);
  for (const char* text :
       {"image", "=255", "image=", "image=a", "image=1,2", "image=1,2,3,4", "image=1,2,3x"}) {
    CHECK(user_error([&] { parse_normalize(text); }) ==
          "--normalize " + std::string(text) + ": not NAME=SCALE or NAME=SCALE,MEAN,STD");
  }
  CHECK(user_error([] { parse_normalize("image=0"); }) == "--normalize image=0: divides by zero");
}

}  // namespace
}  // namespace ff
