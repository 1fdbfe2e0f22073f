// oneDNN 2.6 (operation descriptors) and 3 (none) under one face, and what every kernel on it shares:
// descriptors of operands, errors turned into ours, scratch memory given by the caller.
//
//   auto pd = matmul_desc(plain_desc(call.operands[0]), plain_desc(call.operands[1]), {},
//   plain_desc(call.operands[2])); Primitive matmul(pd);                       // throws InternalError with
//   oneDNN's words workspace_bytes = matmul.scratchpad_bytes(); matmul.run({{DNNL_ARG_SRC, a},
//   {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}}, workspace);
#pragma once

#include <algorithm>
#include <cstdint>
#include <dnnl.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/base/check.h"
#include "compiler/plan/kernel_call.h"
#include "executor/kernels/cpu/image.h"

namespace ff::cpu {

using DnnlDims = dnnl::memory::dims;
using DnnlDesc = dnnl::memory::desc;

/// Runs `body`; what oneDNN throws becomes an InternalError that says what was being made or run.
template <typename Body>
auto guard_dnnl(const std::string& what, Body&& body) {
  try {
    return body();
  } catch (const dnnl::error& e) {
    throw InternalError(what + ": oneDNN: " + e.what());
  }
}

/// The CPU as oneDNN's engine: a handle without state of ours.
inline const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

inline dnnl::memory::data_type dnnl_type(DType type) {
  FF_CHECK(type == DType::f32 || type == DType::bf16 || type == DType::i32 || type == DType::u8)
      << "oneDNN type " << name(type);
  switch (type) {
    case DType::bf16:
      return dnnl::memory::data_type::bf16;
    case DType::i32:
      return dnnl::memory::data_type::s32;
    case DType::u8:
      return dnnl::memory::data_type::u8;
    default:
      return dnnl::memory::data_type::f32;
  }
}

/// The operand as it lies in memory.
inline DnnlDesc plain_desc(const Operand& operand) {
  return DnnlDesc(operand.shape, dnnl_type(operand.dtype), dense_strides(operand.shape, operand.layout));
}

/// A tensor of this shape in whatever order the primitive likes best.
inline DnnlDesc any_desc(const Operand& operand) {
  return DnnlDesc(operand.shape, dnnl_type(operand.dtype), dnnl::memory::format_tag::any);
}

#if DNNL_VERSION_MAJOR >= 3
inline DnnlDims dims_of(const DnnlDesc& desc) { return desc.get_dims(); }
inline dnnl::memory::data_type type_of(const DnnlDesc& desc) { return desc.get_data_type(); }
#else
inline DnnlDims dims_of(const DnnlDesc& desc) { return desc.dims(); }
inline dnnl::memory::data_type type_of(const DnnlDesc& desc) { return desc.data_type(); }
#endif

/// Scratch memory comes from the kernel's workspace, never from inside oneDNN.
inline dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

/// Space for one more buffer of a workspace: returns its offset and moves the end on, in steps of 64 bytes.
inline int64_t reserve_bytes(int64_t& end, int64_t bytes) {
  const int64_t at = end;
  end += (bytes + 63) / 64 * 64;
  return at;
}

/// A primitive with its scratch pad and memory objects made once; `run` sets pointers and executes on the
/// calling thread.
class Primitive {
 public:
  using Arguments = std::initializer_list<std::pair<int, void*>>;

  Primitive() = default;
  /// `args`: the memory descriptor of each argument that will be passed.
  template <typename Desc>
  Primitive(std::string what, const Desc& desc, const std::vector<std::pair<int, DnnlDesc>>& args)
      : what_(std::move(what)) {
    guard_dnnl(what_, [&] {
      primitive_ = dnnl::primitive(desc.get());
      stream_ = dnnl::stream(cpu_engine());
      for (const auto& [arg, md] : args) memories_.emplace(arg, dnnl::memory(md, cpu_engine(), nullptr));
      const DnnlDesc scratch = desc.scratchpad_desc();
      scratchpad_bytes_ = static_cast<int64_t>(scratch.get_size());
      if (scratchpad_bytes_ > 0)
        memories_.emplace(DNNL_ARG_SCRATCHPAD, dnnl::memory(scratch, cpu_engine(), nullptr));
    });
  }

  explicit operator bool() const { return static_cast<bool>(primitive_); }
  int64_t scratchpad_bytes() const { return scratchpad_bytes_; }

  void run(Arguments arguments, void* scratchpad) {
    guard_dnnl(what_, [&] {
      for (const auto& [arg, pointer] : arguments) memories_.at(arg).set_data_handle(pointer);
      if (scratchpad_bytes_ > 0) memories_.at(DNNL_ARG_SCRATCHPAD).set_data_handle(scratchpad);
      primitive_.execute(stream_, memories_);
    });
  }

 private:
  std::string what_;
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::unordered_map<int, dnnl::memory> memories_;
  int64_t scratchpad_bytes_ = 0;
};

/// A copy from one order to another.
inline Primitive make_reorder(const DnnlDesc& from, const DnnlDesc& to) {
  return guard_dnnl("reorder", [&] {
    const dnnl::reorder::primitive_desc pd(cpu_engine(), from, cpu_engine(), to, user_scratchpad());
    return Primitive("reorder", pd, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  });
}

/// Windows as oneDNN counts them: a dilation of 0 is a dense window.
struct DnnlWindows {
  DnnlDims strides, dilations, pads_begin, pads_end;
};

// Descriptors of operations. An empty `bias` descriptor: no bias.
#if DNNL_VERSION_MAJOR >= 3

inline auto matmul_desc(const DnnlDesc& a, const DnnlDesc& b, const DnnlDesc& bias, const DnnlDesc& c,
                        const dnnl::primitive_attr& attr = user_scratchpad()) {
  if (bias.is_zero()) return dnnl::matmul::primitive_desc(cpu_engine(), a, b, c, attr);
  return dnnl::matmul::primitive_desc(cpu_engine(), a, b, bias, c, attr);
}

inline auto conv_forward_desc(const DnnlDesc& x, const DnnlDesc& w, const DnnlDesc& bias, const DnnlDesc& y,
                              const DnnlWindows& v, const dnnl::primitive_attr& attr = user_scratchpad()) {
  return dnnl::convolution_forward::primitive_desc(cpu_engine(), dnnl::prop_kind::forward_training,
                                                   dnnl::algorithm::convolution_direct, x, w, bias, y,
                                                   v.strides, v.dilations, v.pads_begin, v.pads_end, attr);
}

inline auto conv_data_desc(const DnnlDesc& dx, const DnnlDesc& w, const DnnlDesc& dy, const DnnlWindows& v,
                           const dnnl::convolution_forward::primitive_desc& forward) {
  return dnnl::convolution_backward_data::primitive_desc(cpu_engine(), dnnl::algorithm::convolution_direct,
                                                         dx, w, dy, v.strides, v.dilations, v.pads_begin,
                                                         v.pads_end, forward, user_scratchpad());
}

inline auto conv_weight_desc(const DnnlDesc& x, const DnnlDesc& dw, const DnnlDesc& db, const DnnlDesc& dy,
                             const DnnlWindows& v, const dnnl::convolution_forward::primitive_desc& forward) {
  return dnnl::convolution_backward_weights::primitive_desc(
      cpu_engine(), dnnl::algorithm::convolution_direct, x, dw, db, dy, v.strides, v.dilations, v.pads_begin,
      v.pads_end, forward, user_scratchpad());
}

inline void append_relu(dnnl::post_ops& ops) {
  ops.append_eltwise(dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
}

#else

inline auto matmul_desc(const DnnlDesc& a, const DnnlDesc& b, const DnnlDesc& bias, const DnnlDesc& c,
                        const dnnl::primitive_attr& attr = user_scratchpad()) {
  const auto desc = bias.is_zero() ? dnnl::matmul::desc(a, b, c) : dnnl::matmul::desc(a, b, bias, c);
  return dnnl::matmul::primitive_desc(desc, attr, cpu_engine());
}

inline auto conv_forward_desc(const DnnlDesc& x, const DnnlDesc& w, const DnnlDesc& bias, const DnnlDesc& y,
                              const DnnlWindows& v, const dnnl::primitive_attr& attr = user_scratchpad()) {
  const dnnl::convolution_forward::desc desc(dnnl::prop_kind::forward_training,
                                             dnnl::algorithm::convolution_direct, x, w, bias, y, v.strides,
                                             v.dilations, v.pads_begin, v.pads_end);
  return dnnl::convolution_forward::primitive_desc(desc, attr, cpu_engine());
}

inline auto conv_data_desc(const DnnlDesc& dx, const DnnlDesc& w, const DnnlDesc& dy, const DnnlWindows& v,
                           const dnnl::convolution_forward::primitive_desc& forward) {
  const dnnl::convolution_backward_data::desc desc(dnnl::algorithm::convolution_direct, dx, w, dy, v.strides,
                                                   v.dilations, v.pads_begin, v.pads_end);
  return dnnl::convolution_backward_data::primitive_desc(desc, user_scratchpad(), cpu_engine(), forward);
}

inline auto conv_weight_desc(const DnnlDesc& x, const DnnlDesc& dw, const DnnlDesc& db, const DnnlDesc& dy,
                             const DnnlWindows& v, const dnnl::convolution_forward::primitive_desc& forward) {
  const dnnl::convolution_backward_weights::desc desc(dnnl::algorithm::convolution_direct, x, dw, db, dy,
                                                      v.strides, v.dilations, v.pads_begin, v.pads_end);
  return dnnl::convolution_backward_weights::primitive_desc(desc, user_scratchpad(), cpu_engine(), forward);
}

inline void append_relu(dnnl::post_ops& ops) {
  ops.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
}

#endif

}  // namespace ff::cpu
