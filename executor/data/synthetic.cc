// Made-up inputs: counter-based, keyed by the element's place in its sample, so that no split changes them.
#include <cstring>

#include "compiler/base/check.h"
#include "compiler/base/rng.h"
#include "executor/data/input_source.h"
#include "executor/data/region_walk.h"

namespace ff {
namespace {

// The sum of four 16-bit uniforms, centred and scaled: mean 0 and variance 1 (a uniform's variance is 1/12).
double normal_like(uint64_t bits) {
  const uint64_t sum = (bits & 0xffff) + ((bits >> 16) & 0xffff) + ((bits >> 32) & 0xffff) + (bits >> 48);
  constexpr double kRootThree = 1.7320508075688772;
  return (static_cast<double>(sum) * 0x1.0p-16 - 2.0 + 2.0 * 0x1.0p-16) * kRootThree;
}

// The same string gives the same stream on every platform (FNV-1a).
uint64_t stream_of(const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

class SyntheticSource : public InputSource {
 public:
  SyntheticSource(InputSpec spec, uint64_t seed)
      : spec_(std::move(spec)), seed_(seed), stream_(stream_of(spec_.name)), strides_(spec_.shape.size(), 0) {
    const bool integers = spec_.type == DType::i64 || spec_.type == DType::i32 || spec_.type == DType::u8;
    if (integers && spec_.classes <= 0) {
      throw UserError("input '" + spec_.name + "' holds integers: synthetic ones need to know below what");
    }
    if (spec_.type == DType::bf16 || spec_.type == DType::f16) {
      throw UserError("input '" + spec_.name + "': 16-bit inputs are not made up");
    }
    int64_t stride = 1;
    for (size_t axis = strides_.size(); axis-- > 0;) {
      if (static_cast<int>(axis) == spec_.batch_axis) continue;
      strides_[axis] = stride;
      stride *= spec_.shape[axis];
    }
  }

  void fill(const Batch& batch, const InputRegion& region, void* destination) override {
    FF_CHECK(Box::whole(spec_.shape).contains(region.box)) << region.box << " of " << to_string(spec_.shape);
    FF_CHECK_EQ(static_cast<int64_t>(batch.samples.size()),
                spec_.shape[static_cast<size_t>(spec_.batch_axis)]);
    const auto below = [n = spec_.classes](uint64_t bits) { return to_below(bits, n); };
    switch (spec_.type) {
      case DType::f64:
        return fill_with(batch, region, static_cast<double*>(destination), normal_like);
      case DType::f32:
        return fill_with(batch, region, static_cast<float*>(destination),
                         [](uint64_t bits) { return static_cast<float>(normal_like(bits)); });
      case DType::i64:
        return fill_with(batch, region, static_cast<int64_t*>(destination), below);
      case DType::i32:
        return fill_with(batch, region, static_cast<int32_t*>(destination), below);
      case DType::u8:
        return fill_with(batch, region, static_cast<uint8_t*>(destination), below);
      case DType::boolean:
        return fill_with(batch, region, static_cast<uint8_t*>(destination),
                         [](uint64_t bits) { return bits >> 63; });
      default:
        FF_CHECK(false) << "type of input " << spec_.name;
    }
  }

  std::optional<int64_t> samples() const override { return std::nullopt; }

  std::string describe() const override {
    return spec_.name + ": synthetic " +
           (spec_.classes > 0 ? "integers below " + std::to_string(spec_.classes) : std::string("numbers")) +
           ", seed " + std::to_string(seed_);
  }

 private:
  template <typename T, typename F>
  void fill_with(const Batch& batch, const InputRegion& region, T* to, F value) const {
    const auto batch_axis = static_cast<size_t>(spec_.batch_axis);
    walk_region(region, [&](const RegionPoint& at, int inner, Range run, int64_t offset) {
      uint64_t base = 0;
      for (size_t axis = 0; axis < strides_.size(); ++axis)
        base += static_cast<uint64_t>(at[axis] * strides_[axis]);
      const bool along_batch = inner == spec_.batch_axis;
      const auto stride = static_cast<uint64_t>(strides_[static_cast<size_t>(inner)]);
      uint64_t key = key_of(batch.samples[static_cast<size_t>(at[batch_axis])]);
      for (int64_t i = 0; i < run.size(); ++i) {
        const int64_t sample = batch.samples[static_cast<size_t>(along_batch ? run.lo + i : at[batch_axis])];
        if (along_batch) key = key_of(sample);
        to[offset + i] = sample == Batch::kPadding
                             ? static_cast<T>(spec_.padding)
                             : static_cast<T>(value(mix64(key ^ (base + static_cast<uint64_t>(i) * stride))));
      }
    });
  }

  // counter_random's outer part, once a sample instead of once an element.
  uint64_t key_of(int64_t sample) const {
    return counter_random(seed_, stream_, static_cast<uint64_t>(sample));
  }

  InputSpec spec_;
  uint64_t seed_;
  uint64_t stream_;
  std::vector<int64_t> strides_;  // of an element's number within its sample
};

}  // namespace

std::unique_ptr<InputSource> synthetic_source(InputSpec spec, uint64_t seed) {
  return std::make_unique<SyntheticSource>(std::move(spec), seed);
}

}  // namespace ff
