// The file-backed source. A file is [samples, axes...]; the input has its batch axis anywhere. Their other
// axes are matched once, in order and without those of size 1; after that every run of a region is one
// strided conversion.
#include <bit>
#include <cstring>
#include <sstream>
#include <type_traits>

#include "compiler/base/check.h"
#include "executor/data/input_source.h"
#include "executor/data/region_walk.h"

namespace ff {
namespace {

// Converts `count` elements that lie `stride` bytes apart.
using Convert = void (*)(const std::byte* from, int64_t stride, int64_t count, const Normalize* normalize,
                         void* to);

template <typename T>
T load(const std::byte* from, bool swap) {
  std::array<std::byte, sizeof(T)> bytes;
  std::memcpy(bytes.data(), from, sizeof(T));
  if (swap) std::reverse(bytes.begin(), bytes.end());
  return std::bit_cast<T>(bytes);
}

template <typename From, typename To, bool kSwap>
void convert(const std::byte* from, int64_t stride, int64_t count, const Normalize* normalize, void* to) {
  To* const out = static_cast<To*>(to);
  if (normalize == nullptr) {
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<To>(load<From>(from + i * stride, kSwap));
    return;
  }
  const Normalize n = *normalize;
  for (int64_t i = 0; i < count; ++i) {
    const auto x = static_cast<double>(load<From>(from + i * stride, kSwap));
    out[i] = static_cast<To>((x / n.scale - n.mean) / n.stddev);
  }
}

template <typename From, typename To>
Convert convert_from_order(bool big_endian) {
  return big_endian != (std::endian::native == std::endian::big) ? convert<From, To, true>
                                                                 : convert<From, To, false>;
}

template <typename From>
Convert convert_to(DType to, bool big_endian) {
  switch (to) {
    case DType::f64:
      return convert_from_order<From, double>(big_endian);
    case DType::f32:
      return convert_from_order<From, float>(big_endian);
    case DType::i64:
      return convert_from_order<From, int64_t>(big_endian);
    case DType::i32:
      return convert_from_order<From, int32_t>(big_endian);
    case DType::u8:
    case DType::boolean:
      return convert_from_order<From, uint8_t>(big_endian);
    default:
      return nullptr;
  }
}

Convert conversion(const ElementType& from, DType to) {
  const bool big = from.big_endian;
  if (from.kind == 'f') return from.bytes == 8 ? convert_to<double>(to, big) : convert_to<float>(to, big);
  const bool is_signed = from.kind == 'i';
  switch (from.bytes) {
    case 1:
      return is_signed ? convert_to<int8_t>(to, big) : convert_to<uint8_t>(to, big);
    case 2:
      return is_signed ? convert_to<int16_t>(to, big) : convert_to<uint16_t>(to, big);
    case 4:
      return is_signed ? convert_to<int32_t>(to, big) : convert_to<uint32_t>(to, big);
    default:
      return is_signed ? convert_to<int64_t>(to, big) : convert_to<uint64_t>(to, big);
  }
}

// Whether every value of an integer type of a file is one of the input's integer type.
bool widens(const ElementType& from, DType to) {
  const bool to_unsigned = to == DType::u8;
  const int to_bytes = static_cast<int>(size_of(to));
  if (from.kind == 'i') return !to_unsigned && from.bytes <= to_bytes;
  return to_unsigned ? from.bytes == 1 : from.bytes < to_bytes;
}

// The first words of every message: "input 'image' (float32) from images.npy (uint8)".
std::string pairing(const InputSpec& spec, const DataFile& file) {
  return "input '" + spec.name + "' is " + std::string(name(spec.type)) + ", " + file.path() + " is " +
         name(file.type());
}

void check_types(const InputSpec& spec, const DataFile& file, bool normalized) {
  const ElementType from = file.type();
  const DType to = spec.type;
  const std::string both = pairing(spec, file);
  if (to == DType::bf16 || to == DType::f16)
    throw UserError(both + ": 16-bit inputs are not read from files");
  if (normalized && !is_float(to))
    throw UserError(both + ": only floats can be normalized", "leave --normalize out");
  if (from.kind == 'b') return;
  if (to == DType::boolean)
    throw UserError(both + ": only booleans become booleans", "save array.astype(bool)");
  if (is_float(to)) {
    if (from.is_float() || normalized) return;
    throw UserError(
        both + ": integers become floats only by a stated scale",
        "--normalize " + spec.name + (from.bytes == 1 ? "=255 divides by 255" : "=1 takes them as they are"));
  }
  if (from.is_float()) {
    throw UserError(both + ": floats do not become integers", "save it as integers: array.astype('int64')");
  }
  if (!widens(from, to)) {
    throw UserError(both + ": integers widen, never narrow", "save array.astype('" +
                                                                 std::string(to == DType::u8    ? "uint8"
                                                                             : to == DType::i32 ? "int32"
                                                                                                : "int64") +
                                                                 "')");
  }
}

// Bytes between neighbours along each axis of the input in the file; 0 on the batch axis and on axes of
// size 1.
std::vector<int64_t> match_axes(const InputSpec& spec, const DataFile& file) {
  std::vector<int64_t> strides(spec.shape.size(), 0);
  const Shape& from = file.shape();
  int64_t stride = file.type().bytes;
  size_t f = from.size();  // file axis after the next one to match, from innermost
  const auto skip_ones = [&] {
    while (f > 1 && from[f - 1] == 1) --f;
  };
  bool same = true;
  for (size_t axis = spec.shape.size(); axis-- > 0;) {
    if (static_cast<int>(axis) == spec.batch_axis || spec.shape[axis] == 1) continue;
    skip_ones();
    same = same && f > 1 && from[f - 1] == spec.shape[axis];
    if (!same) break;
    strides[axis] = stride;
    stride *= from[--f];
  }
  skip_ones();
  if (same && f == 1) return strides;
  Shape sample = spec.shape;
  sample.erase(sample.begin() + spec.batch_axis);
  throw UserError("input '" + spec.name + "' is " + to_string(spec.shape) + " (batch on axis " +
                      std::to_string(spec.batch_axis) + "), a sample of it " + to_string(sample) + ", but " +
                      file.path() + " is " + to_string(from) + ", a sample of it " +
                      to_string(Shape(from.begin() + 1, from.end())),
                  "axis 0 of a file is samples; the others must be the input's, axes of size 1 aside");
}

class FileSource : public InputSource {
 public:
  FileSource(InputSpec spec, std::shared_ptr<const DataFile> file, std::optional<Normalize> normalize)
      : spec_(std::move(spec)), file_(std::move(file)), normalize_(normalize) {
    FF_CHECK(spec_.batch_axis >= 0 && spec_.batch_axis < static_cast<int>(spec_.shape.size()))
        << "batch axis " << spec_.batch_axis << " of input " << spec_.name;
    check_types(spec_, *file_, normalize_.has_value());
    strides_ = match_axes(spec_, *file_);
    convert_ = conversion(file_->type(), spec_.type);
    FF_CHECK(convert_ != nullptr);
  }

  void fill(const Batch& batch, const InputRegion& region, void* destination) override {
    FF_CHECK(Box::whole(spec_.shape).contains(region.box)) << region.box << " of " << to_string(spec_.shape);
    FF_CHECK_EQ(static_cast<int64_t>(batch.samples.size()),
                spec_.shape[static_cast<size_t>(spec_.batch_axis)]);
    auto* const out = static_cast<std::byte*>(destination);
    const auto element = static_cast<int64_t>(size_of(spec_.type));
    walk_region(region, [&](RegionPoint at, int inner, Range run, int64_t offset) {
      if (inner != spec_.batch_axis) {
        fill_run(batch, at, inner, run.size(), out + offset * element);
        return;
      }
      for (int64_t b = run.lo; b < run.hi; ++b) {
        at[static_cast<size_t>(inner)] = b;
        fill_run(batch, at, inner, 1, out + (offset + b - run.lo) * element);
      }
    });
  }

  std::optional<int64_t> samples() const override { return file_->samples(); }

  std::string describe() const override {
    std::ostringstream text;
    Shape sample = spec_.shape;
    sample.erase(sample.begin() + spec_.batch_axis);
    const Shape stored(file_->shape().begin() + 1, file_->shape().end());
    text << spec_.name << ": " << file_->path() << ", " << file_->samples() << " samples of "
         << to_string(stored) << " " << name(file_->type());
    if (sample != stored) text << " read as " << to_string(sample);
    if (normalize_) {
      text << ", divided by " << normalize_->scale;
      if (normalize_->mean != 0 || normalize_->stddev != 1) {
        text << ", mean " << normalize_->mean << " and deviation " << normalize_->stddev << " taken out";
      }
    }
    return text.str();
  }

 private:
  void fill_run(const Batch& batch, const RegionPoint& at, int inner, int64_t count, std::byte* to) const {
    const int64_t sample = batch.samples[static_cast<size_t>(at[static_cast<size_t>(spec_.batch_axis)])];
    if (sample == Batch::kPadding) {
      pad(count, to);
      return;
    }
    FF_CHECK(sample >= 0 && sample < file_->samples()) << "sample " << sample << " of " << file_->path();
    const std::byte* from = file_->sample(sample);
    for (size_t axis = 0; axis < strides_.size(); ++axis) from += at[axis] * strides_[axis];
    convert_(from, strides_[static_cast<size_t>(inner)], count, normalize_ ? &*normalize_ : nullptr, to);
  }

  void pad(int64_t count, std::byte* to) const {
    double value = spec_.padding;
    const Convert from_double = convert_to<double>(spec_.type, std::endian::native == std::endian::big);
    from_double(reinterpret_cast<const std::byte*>(&value), 0, count, nullptr, to);
  }

  InputSpec spec_;
  std::shared_ptr<const DataFile> file_;
  std::optional<Normalize> normalize_;
  std::vector<int64_t> strides_;
  Convert convert_ = nullptr;
};

}  // namespace

std::unique_ptr<InputSource> file_source(InputSpec spec, std::shared_ptr<const DataFile> file,
                                         std::optional<Normalize> normalize) {
  return std::make_unique<FileSource>(std::move(spec), std::move(file), normalize);
}

}  // namespace ff
