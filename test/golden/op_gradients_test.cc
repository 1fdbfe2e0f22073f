// Agreement of every differentiable op with PyTorch: from the same inputs and the same gradient at the
// output, the op's value is that of PyTorch's function and the gradients are autograd's. In f64 by the plain
// kernels, fused and staged; in f32 by those that train. make_op_goldens.py makes the data and tells how an
// op is added.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <set>

#include "test/catch.h"
#include "test/support/evaluate.h"

namespace ff::test {
namespace {

using cpu::Flavor;

/// Differentiable ops that PyTorch's values say nothing of, and why.
const std::map<std::string_view, std::string_view> kWithoutGolden{
    {"Dropout", "its masks are those of ff's own random numbers"},
};

struct GoldenInput {
  std::string name, type;  // type empty: absent
  Shape shape;
  std::vector<double> values, gradient;  // gradient empty: not compared
};

struct Golden {
  std::string type;
  Attributes attributes;
  std::vector<GoldenInput> inputs;
  std::vector<double> dy;
  std::vector<std::vector<double>> outputs;  // empty: not compared
};

/// The file's parts; see op_golden_file.py.
class Reader {
 public:
  explicit Reader(const std::string& path) : in_(path, std::ios::binary) { REQUIRE(in_.good()); }
  bool at_end() { return in_.peek() == std::ifstream::traits_type::eof(); }

  Golden golden() {
    Golden g;
    g.type = string();
    for (int32_t n = one<int32_t>(); n > 0; --n) attribute(g.attributes);
    for (int32_t n = one<int32_t>(); n > 0; --n) g.inputs.push_back(input());
    g.dy = many<double>();
    for (int32_t n = one<int32_t>(); n > 0; --n) g.outputs.push_back(many<double>());
    REQUIRE(in_.good());
    return g;
  }

 private:
  template <typename T>
  T one() {
    T value{};
    in_.read(reinterpret_cast<char*>(&value), sizeof value);
    REQUIRE(in_.good());
    return value;
  }
  template <typename T>
  std::vector<T> many() {
    std::vector<T> values(static_cast<size_t>(one<int32_t>()));
    in_.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
    return values;
  }
  std::string string() {
    const std::vector<char> text = many<char>();
    return {text.begin(), text.end()};
  }
  Ints ints() {
    const std::vector<double> values = many<double>();
    return {values.begin(), values.end()};
  }
  void attribute(Attributes& out) {
    const std::string name = string();
    switch (const char kind = one<char>(); kind) {
      case 'i':
        return out.set(name, ints().at(0));
      case 'r':
        return out.set(name, many<double>().at(0));
      case 's':
        return out.set(name, string());
      case 'I':
        return out.set(name, ints());
      case 'R':
        return out.set(name, Reals(many<double>()));
      default:
        FAIL("an attribute of kind " << kind);
    }
  }
  GoldenInput input() {
    GoldenInput in;
    in.name = string(), in.type = string();
    if (in.type.empty()) return in;
    in.shape = ints();
    in.values = many<double>(), in.gradient = many<double>();
    return in;
  }

  std::ifstream in_;
};

std::vector<Golden> read_goldens() {
  std::vector<Golden> out;
  for (Reader reader(FF_GOLDEN_DATA "/ops.bin"); !reader.at_end();) out.push_back(reader.golden());
  return out;
}

DType type_of(const std::string& name, DType floats) {
  for (DType type : {DType::i64, DType::i32, DType::boolean}) {
    if (ff::name(type) == name) return type;
  }
  REQUIRE(name == "f64");
  return floats;
}

struct Differentiated {
  Graph graph;
  Values given;
};

/// The op, its gradient and the staged forms of both; images and their kernels as training lays them out.
Differentiated differentiate(const Golden& golden, DType floats) {
  Graph graph;
  Values given;
  std::vector<TensorId> inputs, wanted;
  for (const GoldenInput& in : golden.inputs) {
    Tensor t;
    t.name = in.name, t.shape = in.shape, t.kind = TensorKind::input;
    if (!in.type.empty()) t.dtype = type_of(in.type, floats);
    inputs.push_back(in.type.empty() ? TensorId() : graph.add_tensor(std::move(t)));
    if (!in.type.empty()) given[in.name] = in.values;
    if (!in.gradient.empty()) wanted.push_back(inputs.back());
  }
  const OpId op = add_op(graph, "y", golden.type, golden.attributes, inputs);
  const std::set<std::string_view> image{"conv", "pool", "norm"};
  for (Tensor& t : graph.tensors) {
    if (floats == DType::f32 && image.contains(op_def(golden.type).family) && t.shape.size() >= 3 &&
        t.name != "w")
      t.layout = Layout::channels_last;
  }
  given["grad_y"] = golden.dy;
  for (TensorId output : graph.op(op).outputs) {  // nothing arrives at the others
    const Tensor& t = graph.tensor(output);
    if (t.name != "y") given["grad_" + t.name].assign(static_cast<size_t>(volume(t.shape)), 0);
  }
  const auto stage_from = [&](size_t first) {
    RuleBuilder rules(graph);
    for (size_t i = first, end = graph.ops.size(); i < end; ++i) {
      if (op_def(graph.ops[i].type).stages != nullptr) rules.stage(OpId(static_cast<int64_t>(i)));
    }
  };
  stage_from(0);
  const size_t forward_ops = graph.ops.size();
  RuleBuilder(graph).differentiate(op, wanted);
  stage_from(forward_ops);
  return {std::move(graph), std::move(given)};
}

/// The largest relative difference; a value below a hundredth of the largest counts as that.
double relative_difference(const std::vector<double>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  double floor = 1e-12, largest = 0;
  for (double v : expected) floor = std::max(floor, std::abs(v) / 100);
  for (size_t i = 0; i < got.size(); ++i) {
    const double d = std::abs(got[i] - expected[i]) / std::max(floor, std::abs(expected[i]));
    if (!(d <= 1e-4))
      UNSCOPED_INFO("element " << i << " is " << got[i] << " where PyTorch has " << expected[i]);
    largest = std::max(largest, std::isfinite(d) ? d : INFINITY);
  }
  return largest;
}

void check(const Golden& golden, DType floats, Flavor flavor, Form form, double tolerance) {
  std::string inputs;
  for (const GoldenInput& in : golden.inputs) inputs += " " + in.name + " " + to_string(in.shape);
  INFO(golden.type << " " << to_string(golden.attributes) << " of" << inputs
                   << (form == Form::staged ? ", staged" : ""));
  const Differentiated op = differentiate(golden, floats);
  const Values values = evaluate(op.graph, op.given, flavor, form);
  for (size_t i = 0; i < golden.outputs.size(); ++i) {
    if (golden.outputs[i].empty()) continue;
    INFO("output " << i);
    CHECK(relative_difference(values.at(i == 0 ? "y" : "y/" + std::to_string(i)), golden.outputs[i]) <=
          tolerance);
  }
  for (const GoldenInput& in : golden.inputs) {
    if (in.gradient.empty()) continue;
    // A gradient that no op writes is 0.
    const auto it = values.find("grad_" + in.name);
    const std::vector<double> zeros(in.gradient.size(), 0.0);
    INFO("the gradient of " << in.name);
    CHECK(relative_difference(it == values.end() ? zeros : it->second, in.gradient) <= tolerance);
  }
}

}  // namespace

TEST_CASE("values and gradients of every op in f64 are PyTorch's") {
  for (const Golden& golden : read_goldens()) {
    for (Form form : {Form::fused, Form::staged}) check(golden, DType::f64, Flavor::reference, form, 1e-10);
  }
}

TEST_CASE("values and gradients of every op by the kernels that train are PyTorch's") {
  for (const Golden& golden : read_goldens()) check(golden, DType::f32, Flavor::fast, Form::fused, 1e-4);
}

TEST_CASE("every differentiable op has values of PyTorch") {
  std::set<std::string, std::less<>> met;
  for (const Golden& golden : read_goldens()) met.insert(golden.type);
  for (const OpDef& def : all_op_defs()) {
    if (def.gradient == nullptr) continue;
    INFO(def.type << " has neither a case in make_op_goldens.py nor a reason to have none");
    CHECK(met.contains(def.type) != kWithoutGolden.contains(def.type));
  }
}

}  // namespace ff::test
