// Convolution by oneDNN in f32. Images stay as they lie in memory; weights are dense in a plan and reordered
// into the workspace to what the primitive asks for, unless that is how they lie.
#include "executor/kernels/cpu/image.h"
#include "executor/kernels/cpu/onednn.h"
#include "executor/kernels/cpu/registry.h"
#include "executor/kernels/cpu/weight_reorder.h"

namespace ff::cpu {
namespace {

/// The descriptors that the three primitives share. `x`, `w`, `y`: the operands in these roles.
struct ConvDescs {
  DnnlDesc x, w, w_any, y, bias;
  DnnlWindows windows;

  ConvDescs(const KernelCall& call, const Operand& x_operand, const Operand& w_operand,
            const Operand& y_operand, const Operand& b)
      : x(plain_desc(x_operand)), y(plain_desc(y_operand)) {
    Operand weight = w_operand;
    if (const int64_t group = call.attributes.integer("group"); group > 1) {
      weight.shape[0] /= group;
      weight.shape.insert(weight.shape.begin(), group);
      FF_CHECK(w_operand.layout == Layout::row_major) << "weights of a grouped convolution";
    }
    w = plain_desc(weight);
    w_any = any_desc(weight);
    if (!ff::is_absent(b)) bias = plain_desc(b);
    const Ints& pads = call.attributes.ints("pads");
    windows.strides = call.attributes.ints("strides");
    windows.dilations = call.attributes.ints("dilations");
    for (int64_t& d : windows.dilations) --d;
    windows.pads_begin.assign(pads.begin(), pads.begin() + static_cast<int64_t>(pads.size() / 2));
    windows.pads_end.assign(pads.begin() + static_cast<int64_t>(pads.size() / 2), pads.end());
  }

  dnnl::convolution_forward::primitive_desc hint() const {
    return conv_forward_desc(x, w_any, {}, y, windows);
  }
};

/// A convolution primitive, and a reorder between the plan's weights and the primitive's where they differ.
class ConvKernel : public Kernel {
 public:
  int64_t workspace_bytes() const override { return end_; }

 protected:
  /// Makes the reorder from or to the plan's weights, and places the scratch pads and the reordered weights
  /// in the workspace. The reorder runs before or after the convolution, never at once, so that its scratch
  /// pad may share the convolution's place.
  void place(const DnnlDesc& plan, const DnnlDesc& primitive, bool gradient) {
    if (primitive != plan) {
      if (gradient) blocks_ = BlockedWeights::recognise(primitive, plan);
      if (!blocks_) reorder_ = gradient ? make_reorder(primitive, plan) : make_reorder(plan, primitive);
    }
    scratch_at_ =
        reserve_bytes(end_, std::max(conv_.scratchpad_bytes(), reorder_ ? reorder_.scratchpad_bytes() : 0));
    if (reorders()) weights_at_ = reserve_bytes(end_, static_cast<int64_t>(primitive.get_size()));
  }
  static void* at(void* workspace, int64_t offset) { return static_cast<std::byte*>(workspace) + offset; }
  void* scratch(void* workspace) const { return at(workspace, scratch_at_); }

  /// The weights as the primitive wants them.
  void* ready_weights(void* dense, void* workspace) {
    if (!reorder_) return dense;
    void* weights = at(workspace, weights_at_);
    reorder_.run({{DNNL_ARG_FROM, dense}, {DNNL_ARG_TO, weights}}, scratch(workspace));
    return weights;
  }

  /// Where the primitive writes the gradient of the weights, and from there to the plan's.
  void* weights_to_fill(void* dense, void* workspace) const {
    return reorders() ? at(workspace, weights_at_) : dense;
  }
  void finish_weights(void* weights, void* dense, void* workspace) {
    if (blocks_) {
      blocks_->unpack(static_cast<const float*>(weights), static_cast<float*>(dense));
    } else if (reorder_) {
      reorder_.run({{DNNL_ARG_FROM, weights}, {DNNL_ARG_TO, dense}}, scratch(workspace));
    }
  }

  Primitive conv_;

 private:
  bool reorders() const { return blocks_ || reorder_; }

  std::optional<BlockedWeights> blocks_;
  Primitive reorder_;
  int64_t scratch_at_ = 0, weights_at_ = 0, end_ = 0;
};

class ConvForward final : public ConvKernel {
 public:
  explicit ConvForward(const KernelCall& call) : last_(call.operands.size() - 1) {
    const Operand bias = last_ > 2 ? call.operands[2] : absent_operand();
    has_bias_ = !ff::is_absent(bias);
    guard_dnnl(to_string(call), [&] {
      const ConvDescs d(call, call.operands[0], call.operands[1], call.operands[last_], bias);
      dnnl::primitive_attr attr = user_scratchpad();
      if (call.attributes.integer("relu", 0) != 0) {
        dnnl::post_ops ops;
        append_relu(ops);
        attr.set_post_ops(ops);
      }
      const auto pd = conv_forward_desc(d.x, d.w_any, d.bias, d.y, d.windows, attr);
      std::vector<std::pair<int, DnnlDesc>> args{
          {DNNL_ARG_SRC, d.x}, {DNNL_ARG_WEIGHTS, pd.weights_desc()}, {DNNL_ARG_DST, d.y}};
      if (has_bias_) args.emplace_back(DNNL_ARG_BIAS, d.bias);
      conv_ = Primitive(to_string(call), pd, args);
      place(d.w, pd.weights_desc(), /*gradient=*/false);
    });
  }

  void run(std::span<void* const> operands, void* workspace, const RunContext&) override {
    void* weights = ready_weights(operands[1], workspace);
    if (has_bias_) {
      conv_.run({{DNNL_ARG_SRC, operands[0]},
                 {DNNL_ARG_WEIGHTS, weights},
                 {DNNL_ARG_BIAS, operands[2]},
                 {DNNL_ARG_DST, operands[last_]}},
                scratch(workspace));
    } else {
      conv_.run({{DNNL_ARG_SRC, operands[0]}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, operands[last_]}},
                scratch(workspace));
    }
  }

 private:
  size_t last_;
  bool has_bias_ = false;
};

class ConvGradData final : public ConvKernel {
 public:
  explicit ConvGradData(const KernelCall& call) {
    guard_dnnl(to_string(call), [&] {
      const ConvDescs d(call, call.operands[2], call.operands[1], call.operands[0], absent_operand());
      const auto pd = conv_data_desc(d.x, d.w_any, d.y, d.windows, d.hint());
      conv_ = Primitive(
          to_string(call), pd,
          {{DNNL_ARG_DIFF_DST, d.y}, {DNNL_ARG_WEIGHTS, pd.weights_desc()}, {DNNL_ARG_DIFF_SRC, d.x}});
      place(d.w, pd.weights_desc(), /*gradient=*/false);
    });
  }

  void run(std::span<void* const> operands, void* workspace, const RunContext&) override {
    void* weights = ready_weights(operands[1], workspace);
    conv_.run(
        {{DNNL_ARG_DIFF_DST, operands[0]}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DIFF_SRC, operands[2]}},
        scratch(workspace));
  }
};

class ConvGradWeight final : public ConvKernel {
 public:
  explicit ConvGradWeight(const KernelCall& call) {
    const Operand bias = call.operands.size() > 3 ? call.operands[3] : absent_operand();
    has_bias_ = !ff::is_absent(bias);
    guard_dnnl(to_string(call), [&] {
      const ConvDescs d(call, call.operands[0], call.operands[2], call.operands[1], bias);
      const auto pd = conv_weight_desc(d.x, d.w_any, d.bias, d.y, d.windows, d.hint());
      const DnnlDesc weights = pd.diff_weights_desc();
      std::vector<std::pair<int, DnnlDesc>> args{
          {DNNL_ARG_SRC, d.x}, {DNNL_ARG_DIFF_DST, d.y}, {DNNL_ARG_DIFF_WEIGHTS, weights}};
      if (has_bias_) args.emplace_back(DNNL_ARG_DIFF_BIAS, d.bias);
      conv_ = Primitive(to_string(call), pd, args);
      place(d.w, weights, /*gradient=*/true);
    });
  }

  void run(std::span<void* const> operands, void* workspace, const RunContext&) override {
    void* weights = weights_to_fill(operands[2], workspace);
    if (has_bias_) {
      conv_.run({{DNNL_ARG_SRC, operands[0]},
                 {DNNL_ARG_DIFF_DST, operands[1]},
                 {DNNL_ARG_DIFF_WEIGHTS, weights},
                 {DNNL_ARG_DIFF_BIAS, operands[3]}},
                scratch(workspace));
    } else {
      conv_.run(
          {{DNNL_ARG_SRC, operands[0]}, {DNNL_ARG_DIFF_DST, operands[1]}, {DNNL_ARG_DIFF_WEIGHTS, weights}},
          scratch(workspace));
    }
    finish_weights(weights, operands[2], workspace);
  }

 private:
  bool has_bias_ = false;
};

/// Empty windows and images are no business of oneDNN.
template <typename Fast, LoopFunction kLoops>
std::unique_ptr<Kernel> make_conv(const KernelCall& call) {
  for (const Operand& operand : call.operands) {
    if (!ff::is_absent(operand) && volume(operand.shape) == 0) return make_loop_kernel<kLoops>(call);
  }
  return std::make_unique<Fast>(call);
}

}  // namespace

void register_onednn_conv(Registry& registry) {
  registry.add_fast("Conv", make_conv<ConvForward, reference::conv<float>>);
  registry.add_fast("ConvGradData", make_conv<ConvGradData, reference::conv_grad_data<float>>);
  registry.add_fast("ConvGradWeight", make_conv<ConvGradWeight, reference::conv_grad_weight<float>>);
}

}  // namespace ff::cpu
