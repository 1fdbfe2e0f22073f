// Matrix products by oneDNN's sgemm in f32: on the layouts of a plan as they are it is as fast as the inner
// product primitive (which calls it) and hardly ever slower than the matmul primitive, which takes plain
// loops where its result is transposed. The exception is a few rows by a transposed matrix (a linear layer on
// a small batch), where sgemm takes twice as long. Bias, ReLU and the bias's gradient are passes over the
// result.
#include <algorithm>

#include "executor/kernels/cpu/onednn.h"
#include "executor/kernels/cpu/product.h"
#include "executor/kernels/cpu/registry.h"
#include "executor/kernels/cpu/simd.h"

namespace ff::cpu {
namespace {

/// A matrix as sgemm takes it.
struct GemmMatrix {
  char transposed = 'N';
  int64_t rows = 0, columns = 0, leading = 0;
};

/// False if neither rows nor columns are contiguous.
bool describe(const MatrixOperand& m, GemmMatrix& out) {
  out.rows = m.rows, out.columns = m.columns;
  if ((m.column_stride == 1 || m.columns == 1) && (m.rows == 1 || m.row_stride >= m.columns)) {
    out.transposed = 'N';
    out.leading = std::max(m.row_stride, m.columns);
    return true;
  }
  out.transposed = 'T';
  out.leading = std::max(m.column_stride, m.rows);
  return (m.row_stride == 1 || m.rows == 1) && (m.columns == 1 || m.column_stride >= m.rows);
}

/// c = a b, or c += a b.
struct Gemm {
  GemmMatrix a, b, c;

  bool prepare(const MatrixOperand& ma, const MatrixOperand& mb, const MatrixOperand& mc) {
    return describe(ma, a) && describe(mb, b) && describe(mc, c);
  }
  void run(const float* pa, const float* pb, float* pc, bool add) const {
    const float beta = add ? 1.0f : 0.0f;
    const auto flip = [](char t) { return t == 'N' ? 'T' : 'N'; };
    // A transposed result is the product of the transposed operands the other way round.
    const dnnl::status status =
        c.transposed == 'N' ? dnnl::sgemm(a.transposed, b.transposed, c.rows, c.columns, a.columns, 1.0f, pa,
                                          a.leading, pb, b.leading, beta, pc, c.leading)
                            : dnnl::sgemm(flip(b.transposed), flip(a.transposed), c.columns, c.rows,
                                          a.columns, 1.0f, pb, b.leading, pa, a.leading, beta, pc, c.leading);
    FF_CHECK(status == dnnl::status::success) << "sgemm: status " << static_cast<int>(status);
  }
};

MatrixOperand transposed(MatrixOperand m) {
  std::swap(m.rows, m.columns);
  std::swap(m.row_stride, m.column_stride);
  return m;
}

/// Many products by one matrix are one product, where their rows follow each other in memory.
void merge_batches(ProductOperands& p) {
  const int64_t n = p.batches();
  if (n == 1) return;
  for (const MatrixOperand* m : {&p.a, &p.y}) {
    if (m->column_stride != 1 || m->row_stride != m->columns || m->leading != p.y.leading) return;
    int64_t step = m->rows * m->columns;
    for (size_t d = m->leading.size(); d-- > 0; step *= m->leading[d]) {
      if (m->leading[d] != 1 && m->leading_strides[d] != step) return;
    }
  }
  if (volume(p.b.leading) != 1) return;
  for (MatrixOperand* m : {&p.a, &p.y}) m->rows *= n;
  for (MatrixOperand* m : {&p.a, &p.b, &p.y}) {
    m->leading.clear();
    m->leading_strides.clear();
  }
}

FF_TARGET_CLONES void finish_rows(float* y, const float* bias, bool relu, int64_t rows, int64_t columns,
                                  int64_t step) {
  for (int64_t r = 0; r < rows; ++r, y += step) {
    if (bias != nullptr) {
      for (int64_t c = 0; c < columns; ++c) y[c] += bias[c];
    }
    if (relu) {
      for (int64_t c = 0; c < columns; ++c) y[c] = y[c] > 0.0f ? y[c] : 0.0f;
    }
  }
}

FF_TARGET_CLONES void add_rows(const float* y, float* sum, int64_t rows, int64_t columns, int64_t step) {
  for (int64_t r = 0; r < rows; ++r, y += step) {
    for (int64_t c = 0; c < columns; ++c) sum[c] += y[c];
  }
}

float* buffer(std::span<void* const> operands, size_t i) {
  return i < operands.size() ? static_cast<float*>(operands[i]) : nullptr;
}

class MatMulForward final : public Kernel {
 public:
  MatMulForward(const KernelCall& call, ProductOperands p, const Gemm& gemm)
      : p_(std::move(p)),
        gemm_(gemm),
        out_(call.operands.size() - 1),
        relu_(call.attributes.integer("relu", 0) != 0) {
    if (gemm_.a.transposed == 'T' || gemm_.b.transposed == 'N' || p_.y.rows < 8 || p_.y.rows > 64) return;
    few_rows_ = guard_dnnl(to_string(call), [&] {
      const DnnlDesc a = desc(p_.a), b = desc(p_.b), y = desc(p_.y);
      return Primitive(to_string(call), matmul_desc(a, b, {}, y),
                       {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, y}});
    });
  }

  static ProductOperands roles(const KernelCall& call) {
    return {call, call.operands[0], call.operands[1], call.operands.back()};
  }
  static bool prepare(const ProductOperands& p, Gemm& gemm) { return gemm.prepare(p.a, p.b, p.y); }

  int64_t workspace_bytes() const override { return few_rows_.scratchpad_bytes(); }

  void run(std::span<void* const> operands, void* workspace, const RunContext&) override {
    float *a = buffer(operands, 0), *b = buffer(operands, 1), *y = buffer(operands, out_);
    const float* bias = out_ > 2 ? buffer(operands, 2) : nullptr;
    p_.for_each_batch([&](int64_t at_a, int64_t at_b, int64_t at_y) {
      if (few_rows_) {
        few_rows_.run({{DNNL_ARG_SRC, a + at_a}, {DNNL_ARG_WEIGHTS, b + at_b}, {DNNL_ARG_DST, y + at_y}},
                      workspace);
      } else {
        gemm_.run(a + at_a, b + at_b, y + at_y, false);
      }
      if (bias != nullptr || relu_)
        finish_rows(y + at_y, bias, relu_, p_.y.rows, p_.y.columns, p_.y.row_stride);
    });
  }

 private:
  static DnnlDesc desc(const MatrixOperand& m) {
    return {DnnlDims{m.rows, m.columns}, dnnl::memory::data_type::f32,
            DnnlDims{m.row_stride, m.column_stride}};
  }

  ProductOperands p_;
  Gemm gemm_;
  Primitive few_rows_;
  size_t out_;
  bool relu_;
};

/// The gradient of one operand of a product: zero first where leading dimensions are summed over.
class MatMulGradient : public Kernel {
 public:
  MatMulGradient(const KernelCall& call, ProductOperands p, const Gemm& gemm, const MatrixOperand& result)
      : p_(std::move(p)),
        gemm_(gemm),
        elements_(volume(call.operands[2].shape)),
        sums_(volume(result.leading) != p_.batches()) {}

 protected:
  void clear(float* result) const {
    if (sums_) std::fill_n(result, elements_, 0.0f);
  }

  ProductOperands p_;
  Gemm gemm_;
  int64_t elements_;
  bool sums_;
};

class MatMulGradA final : public MatMulGradient {
 public:
  MatMulGradA(const KernelCall& call, const ProductOperands& p, const Gemm& gemm)
      : MatMulGradient(call, p, gemm, p.a) {}

  static ProductOperands roles(const KernelCall& call) {
    return {call, call.operands[2], call.operands[1], call.operands[0]};
  }
  static bool prepare(const ProductOperands& p, Gemm& gemm) {
    return gemm.prepare(p.y, transposed(p.b), p.a);
  }

  void run(std::span<void* const> operands, void*, const RunContext&) override {
    const float *dy = buffer(operands, 0), *b = buffer(operands, 1);
    float* da = buffer(operands, 2);
    clear(da);
    p_.for_each_batch(
        [&](int64_t at_a, int64_t at_b, int64_t at_y) { gemm_.run(dy + at_y, b + at_b, da + at_a, sums_); });
  }
};

class MatMulGradB final : public MatMulGradient {
 public:
  MatMulGradB(const KernelCall& call, const ProductOperands& p, const Gemm& gemm)
      : MatMulGradient(call, p, gemm, p.b) {}

  static ProductOperands roles(const KernelCall& call) {
    return {call, call.operands[0], call.operands[2], call.operands[1]};
  }
  static bool prepare(const ProductOperands& p, Gemm& gemm) {
    return gemm.prepare(transposed(p.a), p.y, p.b);
  }

  void run(std::span<void* const> operands, void*, const RunContext&) override {
    const float *a = buffer(operands, 0), *dy = buffer(operands, 1);
    float *db = buffer(operands, 2), *dbias = buffer(operands, 3);
    clear(db);
    if (dbias != nullptr) std::fill_n(dbias, p_.y.columns, 0.0f);
    p_.for_each_batch([&](int64_t at_a, int64_t at_b, int64_t at_y) {
      gemm_.run(a + at_a, dy + at_y, db + at_b, sums_);
      if (dbias != nullptr) add_rows(dy + at_y, dbias, p_.y.rows, p_.y.columns, p_.y.row_stride);
    });
  }
};

/// Layouts that sgemm cannot take, and empty operands, go to the plain loops.
template <typename Fast, LoopFunction kLoops>
std::unique_ptr<Kernel> make_product_kernel(const KernelCall& call) {
  for (const Operand& operand : call.operands) {
    if (!is_absent(operand) && volume(operand.shape) == 0) return make_loop_kernel<kLoops>(call);
  }
  ProductOperands p = Fast::roles(call);
  merge_batches(p);
  Gemm gemm;
  const bool rows = p.y.column_stride == 1 || p.y.columns == 1;  // the passes over y take rows
  if (!rows || !Fast::prepare(p, gemm)) return make_loop_kernel<kLoops>(call);
  return std::make_unique<Fast>(call, p, gemm);
}

}  // namespace

void register_onednn_matmul(Registry& registry) {
  registry.add_fast("MatMul", make_product_kernel<MatMulForward, reference::matmul<float>>);
  registry.add_fast("MatMulGradA", make_product_kernel<MatMulGradA, reference::matmul_grad_a<float>>);
  registry.add_fast("MatMulGradB", make_product_kernel<MatMulGradB, reference::matmul_grad_b<float>>);
}

}  // namespace ff::cpu
