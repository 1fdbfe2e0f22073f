// Every distinct convolution and matrix product of a plan, beside the bare oneDNN primitive of the same
// sizes.
//
//   OMP_NUM_THREADS=1 build/release/bin/ff_bare_primitives net.soap
//
// The kernel is run on the plan's layouts, reorders of weights included. The bare primitive is run twice: on
// the layouts that oneDNN likes best for all of its tensors, and on the plan's for images; the faster one
// counts. The three take turns, the least time of each counts. "worst" is over kernels of at least 1 % of the
// sum.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>

#include "compiler/plan/container.h"
#include "executor/kernels/cpu/onednn.h"
#include "executor/kernels/cpu/product.h"
#include "executor/kernels/cpu/registry.h"

namespace ff {
namespace {

using cpu::DnnlDesc;
using Body = std::function<void()>;
constexpr int kRounds = 7;

struct Free {
  void operator()(void* p) const { std::free(p); }
};

/// Owns what the measured bodies work on.
class Memory {
 public:
  void* take(int64_t bytes) {
    const size_t size = (static_cast<size_t>(std::max<int64_t>(bytes, 1)) + 63) / 64 * 64;
    blocks_.emplace_back(std::aligned_alloc(64, size));
    auto* values = static_cast<float*>(blocks_.back().get());
    for (size_t i = 0; i < size / sizeof(float); ++i) values[i] = static_cast<float>(i % 17) / 17.0f - 0.5f;
    return values;
  }

 private:
  std::vector<std::unique_ptr<void, Free>> blocks_;
};

template <typename Desc>
Body bare(Memory& memory, const Desc& desc, const std::vector<std::pair<int, DnnlDesc>>& arguments) {
  auto args = std::make_shared<std::unordered_map<int, dnnl::memory>>();
  for (const auto& [arg, md] : arguments) {
    args->emplace(arg, dnnl::memory(md, cpu::cpu_engine(), memory.take(static_cast<int64_t>(md.get_size()))));
  }
  const DnnlDesc scratch = desc.scratchpad_desc();
  args->emplace(DNNL_ARG_SCRATCHPAD, dnnl::memory(scratch, cpu::cpu_engine(),
                                                  memory.take(static_cast<int64_t>(scratch.get_size()))));
  return [primitive = dnnl::primitive(desc.get()), args, stream = dnnl::stream(cpu::cpu_engine())]() mutable {
    primitive.execute(stream, *args);
    stream.wait();
  };
}

Body bare_conv(Memory& memory, const KernelCall& call, bool any) {
  const auto& o = call.operands;
  const bool data = call.kernel == "ConvGradData", weight = call.kernel == "ConvGradWeight";
  const Operand &x_operand = data ? o[2] : o[0], &y_operand = data ? o[0] : weight ? o[1] : o.back();
  Operand w_operand = weight ? o[2] : o[1];
  if (const int64_t group = call.attributes.integer("group"); group > 1) {
    w_operand.shape[0] /= group;
    w_operand.shape.insert(w_operand.shape.begin(), group);
  }
  const bool bias = (weight ? o.size() > 3 : o.size() > 3 && !data) && !is_absent(weight ? o[3] : o[2]);
  const DnnlDesc x = any ? cpu::any_desc(x_operand) : cpu::plain_desc(x_operand);
  const DnnlDesc y = any ? cpu::any_desc(y_operand) : cpu::plain_desc(y_operand);
  const DnnlDesc w = cpu::any_desc(w_operand), b = bias ? cpu::plain_desc(weight ? o[3] : o[2]) : DnnlDesc();
  cpu::DnnlWindows v;
  v.strides = call.attributes.ints("strides");
  v.dilations = call.attributes.ints("dilations");
  for (int64_t& d : v.dilations) --d;
  const Ints& pads = call.attributes.ints("pads");
  v.pads_begin.assign(pads.begin(), pads.begin() + static_cast<int64_t>(pads.size() / 2));
  v.pads_end.assign(pads.begin() + static_cast<int64_t>(pads.size() / 2), pads.end());
  const auto forward = cpu::conv_forward_desc(x, w, data || weight ? DnnlDesc() : b, y, v);
  std::vector<std::pair<int, DnnlDesc>> arguments;
  if (data) {
    const auto pd = cpu::conv_data_desc(x, w, y, v, forward);
    arguments = {{DNNL_ARG_DIFF_DST, pd.diff_dst_desc()},
                 {DNNL_ARG_WEIGHTS, pd.weights_desc()},
                 {DNNL_ARG_DIFF_SRC, pd.diff_src_desc()}};
    return bare(memory, pd, arguments);
  }
  if (weight) {
    const auto pd = cpu::conv_weight_desc(x, w, b, y, v, forward);
    arguments = {{DNNL_ARG_DIFF_DST, pd.diff_dst_desc()},
                 {DNNL_ARG_SRC, pd.src_desc()},
                 {DNNL_ARG_DIFF_WEIGHTS, pd.diff_weights_desc()}};
    if (bias) arguments.emplace_back(DNNL_ARG_DIFF_BIAS, pd.diff_bias_desc());
    return bare(memory, pd, arguments);
  }
  arguments = {{DNNL_ARG_SRC, forward.src_desc()},
               {DNNL_ARG_WEIGHTS, forward.weights_desc()},
               {DNNL_ARG_DST, forward.dst_desc()}};
  if (bias) arguments.emplace_back(DNNL_ARG_BIAS, forward.bias_desc());
  return bare(memory, forward, arguments);
}

/// The product alone, one matrix by one matrix; null for batches of products.
Body bare_product(Memory& memory, const KernelCall& call, bool any) {
  const auto& o = call.operands;
  const bool grad_a = call.kernel == "MatMulGradA", grad_b = call.kernel == "MatMulGradB";
  const cpu::ProductOperands p = grad_a   ? cpu::ProductOperands{call, o[2], o[1], o[0]}
                                 : grad_b ? cpu::ProductOperands{call, o[0], o[2], o[1]}
                                          : cpu::ProductOperands{call, o[0], o[1], o.back()};
  if (p.batches() != 1) return nullptr;
  const auto desc = [&](const cpu::MatrixOperand& m, bool transposed) {
    const dnnl::memory::dims shape{transposed ? m.columns : m.rows, transposed ? m.rows : m.columns};
    if (any) return DnnlDesc(shape, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any);
    return DnnlDesc(shape, dnnl::memory::data_type::f32,
                    dnnl::memory::dims{transposed ? m.column_stride : m.row_stride,
                                       transposed ? m.row_stride : m.column_stride});
  };
  const auto pd = grad_a   ? cpu::matmul_desc(desc(p.y, false), desc(p.b, true), {}, desc(p.a, false))
                  : grad_b ? cpu::matmul_desc(desc(p.a, true), desc(p.y, false), {}, desc(p.b, false))
                           : cpu::matmul_desc(desc(p.a, false), desc(p.b, false), {}, desc(p.y, false));
  return bare(
      memory, pd,
      {{DNNL_ARG_SRC, pd.src_desc()}, {DNNL_ARG_WEIGHTS, pd.weights_desc()}, {DNNL_ARG_DST, pd.dst_desc()}});
}

Body ours(Memory& memory, const KernelCall& call) {
  std::shared_ptr<Kernel> kernel = cpu::make_kernel(call);
  std::vector<void*> pointers;
  for (const Operand& operand : call.operands) {
    pointers.push_back(is_absent(operand) ? nullptr : memory.take(operand.bytes()));
  }
  void* workspace = memory.take(kernel->workspace_bytes());
  return [kernel, pointers, workspace]() mutable { kernel->run(pointers, workspace, RunContext()); };
}

double milliseconds(const Body& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

struct Row {
  KernelCall call;
  int count = 0;
  double ours = 0, any = 0, nhwc = 0, bare = 0;
};

void measure(Row& row) {
  Memory memory;
  const bool conv = row.call.kernel.starts_with("Conv");
  const auto make = conv ? bare_conv : bare_product;
  const std::vector<Body> bodies{ours(memory, row.call), make(memory, row.call, true),
                                 make(memory, row.call, false)};
  if (!bodies[1]) return;
  std::vector<double> least(bodies.size(), 1e30);
  for (int round = 0; round <= kRounds; ++round) {
    for (size_t i = 0; i < bodies.size(); ++i) {
      const double time = milliseconds(bodies[i]);
      if (round > 0) least[i] = std::min(least[i], time);
    }
  }
  row.ours = least[0];
  row.any = least[1], row.nhwc = least[2];
  row.bare = std::min(least[1], least[2]);
}

void print(const std::vector<Row>& rows) {
  double sum_ours = 0, sum_bare = 0, worst = 0;
  for (const Row& row : rows) {
    sum_ours += row.count * row.ours;
    sum_bare += row.count * row.bare;
  }
  std::printf("%8s %10s %10s %6s  kernel\n", "times", "ours ms", "bare ms", "ratio");
  for (const Row& row : rows) {
    if (row.bare == 0) continue;
    std::printf("%8d %10.3f %10.3f %10.3f %6.2f  %s\n", row.count, row.ours, row.any, row.nhwc,
                row.ours / row.bare, to_string(row.call).c_str());
    if (row.count * row.ours >= 0.01 * sum_ours) worst = std::max(worst, row.ours / row.bare);
  }
  std::printf("sum %.1f ms, bare %.1f ms, ratio %.3f, worst %.2f\n", sum_ours, sum_bare, sum_ours / sum_bare,
              worst);
}

}  // namespace
}  // namespace ff

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: ff_bare_primitives PLAN...\n");
    return 2;
  }
  for (int i = 1; i < argc; ++i) {
    std::map<std::string, ff::Row> rows;
    const ff::Plan plan = ff::read_plan_for_rank(argv[i], 0, false);
    for (const ff::Instruction& instruction : plan.programs.at(0).entries.at(0).instructions) {
      const std::string& kernel = instruction.call.kernel;
      if (!kernel.starts_with("Conv") && !kernel.starts_with("MatMul")) continue;
      ff::Row& row = rows[to_string(instruction.call)];
      row.call = instruction.call;
      ++row.count;
    }
    std::vector<ff::Row> list;
    for (auto& [key, row] : rows) {
      ff::measure(row);
      list.push_back(row);
    }
    std::printf("%s\n", argv[i]);
    ff::print(list);
  }
}
