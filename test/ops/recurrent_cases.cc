// Cases of recurrent layers.
#include "test/ops/op_cases.h"

namespace ff::test {

/// 3 steps of 2 samples with 2 features, 3 hidden units.
void add_recurrent(std::vector<OpCase>& out) {
  const auto add = [&](const char* type, int64_t gates, const Attributes& attributes, bool states,
                       bool lengths, bool extras) {
    const int64_t directions = attributes.string("direction") == "bidirectional" ? 2 : 1;
    const Shape state{directions, 2, 3};
    std::vector<Input> inputs{{"x", {3, 2, 2}},
                              {"w", {directions, gates * 3, 2}},
                              {"r", {directions, gates * 3, 3}},
                              {extras ? "bias" : "", {directions, 2 * gates * 3}},
                              {lengths ? "lengths" : "", {2}, DType::i32},
                              {states ? "h0" : "", state}};
    std::vector<size_t> wanted{0, 1, 2};
    if (extras) wanted.push_back(3);
    if (states) wanted.push_back(5);
    if (gates == 4) {
      inputs.push_back({states ? "c0" : "", state});
      inputs.push_back({extras ? "peepholes" : "", {directions, 9}});
      if (states) wanted.push_back(6);
      if (extras) wanted.push_back(7);
    }
    out.push_back({.op = {type, attributes, inputs},
                   .wanted = wanted,
                   .classes = 4,
                   .arriving = gates == 4 ? size_t{3} : size_t{2},
                   .scale = 0.7});
    // What is read depends on the lengths, and the last step's states on them too.
    out.back().inexact = "steps before the first one and beyond the last read no state";
  };
  for (const char* direction : {"forward", "reverse", "bidirectional"}) {
    const Attributes plain{{"direction", std::string(direction)}};
    add("LSTM", 4, plain, true, false, true);
    add("LSTM", 4, plain, false, true, false);
    for (int64_t after : {0, 1}) {
      const Attributes gru{{"direction", std::string(direction)}, {"linear_before_reset", after}};
      add("GRU", 3, gru, true, false, true);
      add("GRU", 3, gru, false, true, false);
      add("GRU", 3, gru, true, true, true);
    }
    for (const char* activation : {"Tanh", "Relu"}) {
      const Attributes rnn{{"direction", std::string(direction)}, {"activation", std::string(activation)}};
      add("RNN", 1, rnn, true, false, true);
      add("RNN", 1, rnn, false, true, false);
    }
  }
}

}  // namespace ff::test
