// Translation of Resize and Upsample. How ONNX's coordinate_transformation_mode places an element of the
// result is written as (o + s) * from / to - shift for each axis, in numbers that are whole where the model's
// sizes are.
//
//   half_pixel, 2 elements to 4 by `sizes`:  s = 0.5, from = 2, to = 4, shift = 0.5
//   align_corners, 3 elements to 5:          s = 0, from = 2, to = 4, shift = 0

#include <cmath>

#include "compiler/onnx/rules.h"

namespace ff::onnx_import {
namespace {

/// One axis: elements of the input and of the result, and the scale (0: from sizes) that was given.
struct ResizedAxis {
  int64_t in = 1, out = 1;
  double scale = 0;

  /// The result's length before it was rounded down to whole elements.
  double length() const { return scale > 0 ? scale * static_cast<double>(in) : static_cast<double>(out); }
};

/// As ONNX's shape inference: in f32.
ResizedAxis scaled(int64_t in, double scale) {
  if (!(scale > 0)) throw UserError("a scale is " + std::to_string(scale));
  const float length = static_cast<float>(in) * static_cast<float>(scale);
  return {.in = in, .out = static_cast<int64_t>(std::floor(length)), .scale = scale};
}

struct Placement {
  double result_shift = 0, from = 1, to = 1, shift = 0;
};

Placement placement(const std::string& mode, const ResizedAxis& axis) {
  const auto in = static_cast<double>(axis.in), out = static_cast<double>(axis.out);
  const Placement plain{.from = axis.scale > 0 ? 1 : in, .to = axis.scale > 0 ? axis.scale : out};
  const Placement half{.result_shift = 0.5, .from = plain.from, .to = plain.to, .shift = 0.5};
  const Placement first{.from = 0};
  if (mode == "asymmetric") return plain;
  if (mode == "half_pixel") return half;
  if (mode == "pytorch_half_pixel") {
    return {.result_shift = 0.5,
            .from = axis.out > 1 ? half.from : 0,
            .to = half.to,
            .shift = axis.out > 1 ? 0.5 : 0};
  }
  if (mode == "tf_half_pixel_for_nn") return {.result_shift = 0.5, .from = plain.from, .to = plain.to};
  if (mode == "align_corners")
    return axis.out > 1 ? Placement{.from = in - 1, .to = axis.length() - 1} : first;
  if (mode == "half_pixel_symmetric") {
    Placement p = half;
    p.shift -= in / 2 * (1 - out / axis.length());
    return p;
  }
  throw Unsupported("coordinate_transformation_mode '" + mode + "'");
}

/// `axes`: of the tensor, those of the spatial ones that are in it.
void emit_resize(Node& node, const std::vector<ResizedAxis>& axes, std::string mode,
                 const std::string& coordinates, const std::string& rounding) {
  if (mode == "bilinear" || mode == "trilinear") mode = "linear";
  if (mode != "nearest" && mode != "linear" && mode != "cubic") throw Unsupported("mode '" + mode + "'");
  if (!is_float(node.dtype(0)))
    throw Unsupported("an input of type " + std::string(name(node.dtype(0))) + ", which is no float type");
  if (axes.size() < 3 || axes.size() > 5)
    throw Unsupported("a tensor of rank " + std::to_string(axes.size()) +
                      ": images have 3 to 5 dimensions, samples and channels first");
  for (size_t a = 0; a < 2; ++a) {
    if (axes[a].out != axes[a].in || (axes[a].scale > 0 && axes[a].scale != 1))
      throw Unsupported("resizing of axis " + std::to_string(a) + ": samples and channels stay as they are");
  }
  Ints sizes;
  Reals from, to, shifts;
  double result_shift = 0;
  for (size_t a = 2; a < axes.size(); ++a) {
    const Placement p = placement(coordinates, axes[a]);
    sizes.push_back(axes[a].out);
    from.push_back(p.from);
    to.push_back(p.to);
    shifts.push_back(p.shift);
    result_shift = std::max(result_shift, p.result_shift);
  }
  node.result(node.emit("Resize",
                        {{"sizes", sizes},
                         {"mode", mode},
                         {"rounding", rounding},
                         {"result_shift", result_shift},
                         {"from", from},
                         {"to", to},
                         {"shifts", shifts},
                         {"coefficient", node.real("cubic_coeff_a", -0.75)},
                         {"exclude_outside", node.integer("exclude_outside", 0)}},
                        {node.operand(0)}));
}

/// A constant input that may be left out or empty.
std::optional<Constant> given(const Node& node, int input, const std::string& what) {
  if (!node.has(input) || volume(node.shape(input)) == 0) return std::nullopt;
  return node.required(input, what);
}

/// The axes that the scales or sizes are of; all unless attribute `axes` names some.
Ints resized_axes(const Node& node, size_t rank, int64_t count) {
  Ints axes = node.ints("axes", {});
  for (int64_t& a : axes) a = positive_axis(a, rank);
  for (size_t a = 0; !node.has_attribute("axes") && a < rank; ++a) axes.push_back(static_cast<int64_t>(a));
  if (count != static_cast<int64_t>(axes.size()))
    throw UserError("has " + std::to_string(count) + " scales or sizes for " + std::to_string(axes.size()) +
                    " axes");
  return axes;
}

std::vector<ResizedAxis> unchanged(const Shape& x) {
  std::vector<ResizedAxis> axes;
  for (int64_t extent : x) axes.push_back({.in = extent, .out = extent});
  return axes;
}

/// One scale for all axes: the one that makes the result as large as the sizes allow, or no smaller than they
/// ask.
void keep_ratio(const std::string& policy, const Ints& resized, std::vector<ResizedAxis>& axes) {
  if (policy == "stretch") return;
  if (policy != "not_larger" && policy != "not_smaller")
    throw UserError("keep_aspect_ratio_policy is '" + policy + "'");
  Reals scales;
  for (int64_t a : resized) {
    const ResizedAxis& axis = axes[static_cast<size_t>(a)];
    scales.push_back(static_cast<double>(axis.out) / static_cast<double>(axis.in));
  }
  const double scale = policy == "not_larger" ? *std::min_element(scales.begin(), scales.end())
                                              : *std::max_element(scales.begin(), scales.end());
  for (int64_t a : resized) {
    ResizedAxis& axis = axes[static_cast<size_t>(a)];
    axis.out = std::llround(scale * static_cast<double>(axis.in));
    axis.scale = scale;
  }
}

}  // namespace

void import_resize(Node& node) {
  if (node.integer("antialias", 0) != 0) throw Unsupported("antialias");
  const bool oldest = node.opset() < 11;
  const Shape x = node.shape(0);
  const auto scales = given(node, oldest ? 1 : 2, "the scales"),
             sizes = oldest ? std::nullopt : given(node, 3, "the sizes");
  if (scales.has_value() == sizes.has_value()) throw UserError("has not one of scales and sizes");
  std::vector<ResizedAxis> axes = unchanged(x);
  const Ints resized = resized_axes(node, x.size(), (scales ? scales : sizes)->size());
  for (size_t i = 0; i < resized.size(); ++i) {
    ResizedAxis& axis = axes[static_cast<size_t>(resized[i])];
    const auto at = static_cast<int64_t>(i);
    if (scales) {
      axis = scaled(axis.in, scales->real(at));
    } else {
      axis.out = sizes->integer(at);
    }
  }
  if (sizes) keep_ratio(node.string("keep_aspect_ratio_policy", "stretch"), resized, axes);
  // A model written for a fixed batch says it in its sizes.
  if (sizes && node.old_batch() > 0 && axes[0].out == node.old_batch()) axes[0].out = axes[0].in;
  emit_resize(node, axes, node.string("mode", "nearest"),
              node.string("coordinate_transformation_mode", oldest ? "asymmetric" : "half_pixel"),
              node.string("nearest_mode", oldest ? "floor" : "round_prefer_floor"));
}

void import_upsample(Node& node) {
  const Shape x = node.shape(0);
  std::vector<ResizedAxis> axes = unchanged(x);
  Reals scales;
  if (const auto* attribute = node.attribute("scales"); attribute != nullptr) {
    scales.assign(attribute->floats().begin(), attribute->floats().end());
  } else {
    const Constant input = node.required(1, "the scales");
    for (int64_t i = 0; i < input.size(); ++i) scales.push_back(input.real(i));
  }
  if (scales.size() != x.size())
    throw UserError("has " + std::to_string(scales.size()) + " scales for " + std::to_string(x.size()) +
                    " axes");
  for (size_t a = 0; a < axes.size(); ++a) axes[a] = scaled(x[a], scales[a]);
  emit_resize(node, axes, node.string("mode", "nearest"), "asymmetric", "floor");
}

}  // namespace ff::onnx_import
