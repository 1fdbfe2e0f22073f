// Weight updates, in place, one pass over all streams. Formulas are PyTorch's: torch.optim.SGD (dampening 0),
// Adam, AdamW.

#include <cmath>

#include "executor/kernels/cpu/registry.h"
#include "executor/kernels/cpu/simd.h"

namespace ff::cpu {
namespace {

template <typename T>
inline void sgd_loop(T* w, const T* g, int64_t n, T lr, T decay) {
  for (int64_t i = 0; i < n; ++i) w[i] -= lr * (g[i] + decay * w[i]);
}

template <typename T>
inline void momentum_loop(T* __restrict w, const T* __restrict g, T* __restrict v, int64_t n, T lr,
                          T momentum, T decay) {
  for (int64_t i = 0; i < n; ++i) {
    v[i] = momentum * v[i] + g[i] + decay * w[i];
    w[i] -= lr * v[i];
  }
}

/// `step_size` = lr / (1 - beta1^t), `root` = sqrt(1 - beta2^t). `decay` is Adam's (added to the gradient);
/// `shrink` AdamW's factor.
template <typename T>
inline void adam_loop(T* __restrict w, const T* __restrict g, T* __restrict m, T* __restrict v, int64_t n,
                      T step_size, T root, T beta1, T beta2, T epsilon, T decay, T shrink) {
  for (int64_t i = 0; i < n; ++i) {
    const T weight = w[i] * shrink;
    const T gradient = g[i] + decay * weight;
    m[i] = beta1 * m[i] + (1 - beta1) * gradient;
    v[i] = beta2 * v[i] + (1 - beta2) * gradient * gradient;
    w[i] = weight - step_size * m[i] / (std::sqrt(v[i]) / root + epsilon);
  }
}

FF_TARGET_CLONES void sgd(float* w, const float* g, int64_t n, float lr, float decay) {
  sgd_loop(w, g, n, lr, decay);
}
void sgd(double* w, const double* g, int64_t n, double lr, double decay) { sgd_loop(w, g, n, lr, decay); }

FF_TARGET_CLONES void momentum(float* __restrict w, const float* __restrict g, float* __restrict v, int64_t n,
                               float lr, float m, float decay) {
  momentum_loop(w, g, v, n, lr, m, decay);
}
void momentum(double* w, const double* g, double* v, int64_t n, double lr, double m, double decay) {
  momentum_loop(w, g, v, n, lr, m, decay);
}

FF_TARGET_CLONES void adam(float* __restrict w, const float* __restrict g, float* __restrict m,
                           float* __restrict v, int64_t n, float step_size, float root, float beta1,
                           float beta2, float epsilon, float decay, float shrink) {
  adam_loop(w, g, m, v, n, step_size, root, beta1, beta2, epsilon, decay, shrink);
}
void adam(double* w, const double* g, double* m, double* v, int64_t n, double step_size, double root,
          double beta1, double beta2, double epsilon, double decay, double shrink) {
  adam_loop(w, g, m, v, n, step_size, root, beta1, beta2, epsilon, decay, shrink);
}

enum class Kind : uint8_t { sgd, momentum, adam, adamw };

template <typename T, Kind kKind>
class Update final : public Kernel {
 public:
  explicit Update(const KernelCall& call) : count_(volume(call.operands[0].shape)) {}

  void run(std::span<void* const> operands, void*, const RunContext& c) override {
    T* w = static_cast<T*>(operands[0]);
    const T* g = static_cast<const T*>(operands[1]);
    const auto lr = static_cast<T>(c.learning_rate);
    const auto decay = static_cast<T>(c.weight_decay);
    if constexpr (kKind == Kind::sgd) {
      sgd(w, g, count_, lr, decay);
    } else if constexpr (kKind == Kind::momentum) {
      momentum(w, g, static_cast<T*>(operands[2]), count_, lr, static_cast<T>(c.momentum), decay);
    } else {
      const double t = static_cast<double>(c.step) + 1;
      const auto step_size = static_cast<T>(c.learning_rate / (1 - std::pow(c.beta1, t)));
      const auto root = static_cast<T>(std::sqrt(1 - std::pow(c.beta2, t)));
      const bool decoupled = kKind == Kind::adamw;
      const auto shrink = static_cast<T>(decoupled ? 1 - c.learning_rate * c.weight_decay : 1);
      adam(w, g, static_cast<T*>(operands[2]), static_cast<T*>(operands[3]), count_, step_size, root,
           static_cast<T>(c.beta1), static_cast<T>(c.beta2), static_cast<T>(c.epsilon),
           decoupled ? T(0) : decay, shrink);
    }
  }

 private:
  int64_t count_;
};

template <typename T, Kind kKind>
std::unique_ptr<Kernel> make(const KernelCall& call) {
  return std::make_unique<Update<T, kKind>>(call);
}

}  // namespace

void register_update(Registry& registry) {
  registry.add_reference("Sgd", make<float, Kind::sgd>, make<double, Kind::sgd>);
  registry.add_reference("Momentum", make<float, Kind::momentum>, make<double, Kind::momentum>);
  registry.add_reference("Adam", make<float, Kind::adam>, make<double, Kind::adam>);
  registry.add_reference("AdamW", make<float, Kind::adamw>, make<double, Kind::adamw>);
}

}  // namespace ff::cpu
