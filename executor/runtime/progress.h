// How far a run is, on stderr: a bar that is drawn over itself on a terminal, a line now and then elsewhere.
//
//   [=======>            ] 350/937  loss 0.5312  6.83 ms/step
#pragma once

#include <cstdint>
#include <cstdio>

namespace ff {

class Progress {
 public:
  /// `quiet`: says nothing.
  Progress(int64_t steps, bool quiet, std::FILE* out = stderr);
  /// After step `done` of all (from 1). NaN: there is no loss.
  void step(int64_t done, double loss, double seconds);
  /// Ends the bar's line, so that something else can be printed.
  void pause();

 private:
  void bar(int64_t done, double loss, double seconds);

  int64_t steps_;
  bool quiet_;
  std::FILE* out_;
  bool terminal_;
  bool drawn_ = false;
  double shown_at_ = -1e9;
};

}  // namespace ff
