#include "test/golden/training_golden.h"

#include <fstream>

#include "compiler/base/check.h"

namespace ff::test {
namespace {

template <typename T>
T read_one(std::ifstream& in) {
  T value{};
  in.read(reinterpret_cast<char*>(&value), sizeof value);
  return value;
}

template <typename T>
std::vector<T> read_many(std::ifstream& in) {
  std::vector<T> values(static_cast<size_t>(read_one<int64_t>(in)));
  in.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
  return values;
}

std::string read_text(std::ifstream& in) {
  const auto letters = read_many<char>(in);
  return {letters.begin(), letters.end()};
}

GoldenInput read_input(std::ifstream& in) {
  GoldenInput out;
  out.name = read_text(in);
  out.whole = read_one<int64_t>(in) == 1;
  if (out.whole)
    out.integers = read_many<int64_t>(in);
  else
    out.floats = read_many<float>(in);
  return out;
}

}  // namespace

Golden read_golden(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in.good()) throw UserError(path + ": no such file: test/golden/make_goldens.py makes it");
  Golden g;
  g.steps = read_one<int64_t>(in);
  g.learning_rate = read_one<double>(in);
  g.momentum = read_one<double>(in);
  const auto class_axis = read_one<int64_t>(in);
  g.batch = read_one<int64_t>(in);
  for (auto n = read_one<int64_t>(in); n > 0; --n) {
    g.losses.push_back(parse_loss(read_text(in)));
    g.losses.back().class_axis = class_axis;
  }
  for (auto n = read_one<int64_t>(in); n > 0; --n) g.inputs.push_back(read_input(in));
  g.step_losses = read_many<double>(in);
  g.step_loss_errors = read_many<double>(in);
  while (in.peek() != std::ifstream::traits_type::eof()) {
    GoldenUpdate u;
    u.name = read_text(in);
    u.values = read_many<double>(in);
    u.single_error = read_one<double>(in);
    g.updates.push_back(std::move(u));
  }
  FF_CHECK(static_cast<int64_t>(g.step_losses.size()) == g.steps && !g.updates.empty());
  return g;
}

}  // namespace ff::test
