#include "compiler/onnx/value.h"

#include "compiler/base/model_data.h"

namespace ff::onnx_import {

Constant Constant::of_ints(Shape shape, std::vector<int64_t> values) {
  return {.dtype = DType::i64, .shape = std::move(shape), .ints = std::move(values), .reals = {}};
}

Constant Constant::of_real(double value, DType dtype) {
  return {.dtype = dtype, .shape = {}, .ints = {}, .reals = {value}};
}

Constant Constant::of_bytes(Shape shape, DType dtype, std::string_view bytes) {
  Constant c{.dtype = dtype, .shape = std::move(shape), .ints = {}, .reals = {}};
  const int64_t n = c.size();
  for (int64_t i = 0; i < n; ++i) {
    if (is_float(dtype)) {
      c.reals.push_back(element_as_double(bytes, dtype, i));
    } else if (dtype == DType::i64) {
      int64_t v = 0;
      std::memcpy(&v, bytes.data() + i * 8, 8);
      c.ints.push_back(v);
    } else {
      c.ints.push_back(static_cast<int64_t>(element_as_double(bytes, dtype, i)));
    }
  }
  return c;
}

double Constant::real(int64_t i) const {
  return is_float(dtype) ? reals[static_cast<size_t>(i)] : static_cast<double>(ints[static_cast<size_t>(i)]);
}

int64_t Constant::integer(int64_t i) const {
  return is_float(dtype) ? static_cast<int64_t>(reals[static_cast<size_t>(i)]) : ints[static_cast<size_t>(i)];
}

std::string Constant::bytes(DType as) const {
  std::string out;
  for (int64_t i = 0; i < size(); ++i) {
    if (as == DType::i64) {
      const int64_t v = integer(i);
      out.append(reinterpret_cast<const char*>(&v), sizeof v);
    } else {
      append_element(out, as, real(i));
    }
  }
  return out;
}

}  // namespace ff::onnx_import
