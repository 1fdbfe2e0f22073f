#include "executor/runtime/progress.h"

#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <cmath>
#include <string>

#include "compiler/base/units.h"

namespace ff {
namespace {

constexpr double kBarEvery = 0.1;  // seconds
constexpr double kLineEvery = 10.0;
constexpr int kWidth = 20;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Progress::Progress(int64_t steps, bool quiet, std::FILE* out)
    : steps_(steps), quiet_(quiet), out_(out), terminal_(::isatty(::fileno(out)) != 0) {}

void Progress::step(int64_t done, double loss, double seconds) {
  if (quiet_) return;
  const double time = now();
  const bool due = time - shown_at_ >= (terminal_ ? kBarEvery : kLineEvery);
  if (!due && done != steps_) return;
  shown_at_ = time;
  if (terminal_) return bar(done, loss, seconds);
  std::fprintf(out_, "step %" PRId64 "/%" PRId64, done, steps_);
  if (!std::isnan(loss)) std::fprintf(out_, "  loss %.5g", loss);
  std::fprintf(out_, "  %s/step\n", format_seconds(seconds).c_str());
}

void Progress::bar(int64_t done, double loss, double seconds) {
  const auto full = static_cast<size_t>(done * kWidth / steps_);
  std::string bar(full, '=');
  if (full < kWidth) bar += '>';
  bar.resize(kWidth, ' ');
  std::fprintf(out_, "\r[%s] %" PRId64 "/%" PRId64, bar.c_str(), done, steps_);
  if (!std::isnan(loss)) std::fprintf(out_, "  loss %.5g", loss);
  std::fprintf(out_, "  %s/step\033[K", format_seconds(seconds).c_str());
  drawn_ = true;
  if (done == steps_) pause();
  std::fflush(out_);
}

void Progress::pause() {
  if (drawn_) std::fputc('\n', out_);
  drawn_ = false;
}

}  // namespace ff
