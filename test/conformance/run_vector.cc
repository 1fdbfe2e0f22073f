#include "test/conformance/run_vector.h"

#include <unistd.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>

#include "compiler/base/check.h"
#include "compiler/base/hash.h"
#include "compiler/base/model_data.h"
#include "compiler/base/rng.h"
#include "compiler/cost/roofline.h"
#include "compiler/driver/compile.h"
#include "compiler/machine/machine.h"
#include "compiler/onnx/import.h"
#include "compiler/plan/verify.h"
#include "compiler/training/training.h"
#include "executor/comm/thread_communicator.h"
#include "executor/kernels/cpu/registry.h"
#include "executor/runtime/parameters.h"
#include "executor/weights/weights.h"
#include "test/e2e/random_nets.h"

namespace ff::conformance {
namespace {

namespace fs = std::filesystem;

/// A model in a file that goes with this.
class WrittenModel {
 public:
  explicit WrittenModel(const onnx::ModelProto& model)
      : path_((fs::temp_directory_path() / ("ff_conformance_" + std::to_string(::getpid()) + ".onnx"))
                  .string()) {
    std::ofstream(path_, std::ios::binary) << model.SerializeAsString();
  }
  WrittenModel(const WrittenModel&) = delete;
  WrittenModel& operator=(const WrittenModel&) = delete;
  ~WrittenModel() { fs::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A variant of a vector: which inputs are initializers, and whether outputs are seen through sums.
struct Variant {
  onnx::ModelProto model;
  std::vector<Values> inputs;
  bool summed = false;
};

std::string bytes_of(const Values& v) {
  std::string out;
  for (double x : v.numbers) append_element(out, v.type, x);
  return out;
}

void make_initializer(onnx::ModelProto& model, const Values& v) {
  auto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name(v.name);
  tensor.set_data_type(onnx_type_of(v.type));
  for (int64_t d : v.shape) tensor.add_dims(d);
  tensor.set_raw_data(bytes_of(v));
}

/// The shapes of the data, where the model leaves them open.
void fix_shapes(onnx::ModelProto& model, const std::vector<Values>& inputs) {
  for (auto& info : *model.mutable_graph()->mutable_input()) {
    for (const Values& v : inputs) {
      if (v.name != info.name()) continue;
      auto& shape = *info.mutable_type()->mutable_tensor_type()->mutable_shape();
      shape.clear_dim();
      for (int64_t d : v.shape) shape.add_dim()->set_dim_value(d);
    }
  }
}

Variant variant_of(const Vector& vector, const std::function<bool(size_t)>& known) {
  Variant out{vector.model, {}, false};
  for (size_t i = 0; i < vector.inputs.size(); ++i) {
    if (known(i) || vector.inputs[i].numbers.empty()) {
      make_initializer(out.model, vector.inputs[i]);
    } else {
      out.inputs.push_back(vector.inputs[i]);
    }
  }
  fix_shapes(out.model, out.inputs);
  return out;
}

/// Outputs that are known altogether: each cast to float and added to an input of zeros.
Variant summed(Variant v, const std::vector<Values>& outputs) {
  auto& graph = *v.model.mutable_graph();
  graph.clear_output();
  for (const Values& o : outputs) {
    onnx::NodeProto& cast = *graph.add_node();
    cast.set_op_type("Cast");
    cast.add_input(o.name);
    cast.add_output(o.name + "/float");
    auto& to = *cast.add_attribute();
    to.set_name("to");
    to.set_type(onnx::AttributeProto::INT);
    to.set_i(onnx::TensorProto::FLOAT);
    onnx::NodeProto& add = *graph.add_node();
    add.set_op_type("Add");
    add.add_input(o.name + "/zero");
    add.add_input(o.name + "/float");
    add.add_output(o.name + "/sum");
    Values zero{o.name + "/zero", "", o.shape, DType::f32, std::vector<double>(o.numbers.size(), 0)};
    auto& info = *graph.add_input();
    info.set_name(zero.name);
    auto& type = *info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    for (int64_t d : o.shape) type.mutable_shape()->add_dim()->set_dim_value(d);
    graph.add_output()->set_name(o.name + "/sum");
    v.inputs.push_back(std::move(zero));
  }
  v.summed = true;
  return v;
}

Graph prepare(const ImportedModel& imported) {
  Graph graph = imported.graph;
  for (const Op& op : graph.ops) {
    if (op.phase != Phase::forward)
      throw UserError("training: node '" + op.name + "' (" + op.type + ") updates state");
    if (op.type == "Dropout") throw UserError("random: node '" + op.name + "' drops other elements");
  }
  fuse_activations(graph);
  fuse_relu(graph);
  assign_layouts(graph);
  add_stages(graph);
  return graph;
}

void fill(const Plan& plan, const std::vector<Values>& inputs, Interpreter& interpreter) {
  const Program& program = interpreter.program();
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& b = program.buffers[i];
    if (b.origin != Origin::input) continue;
    for (const Input& input : plan.inputs) {
      if (input.name != b.tensor) continue;
      for (const Values& v : inputs) {
        if (v.name != input.name) continue;
        Values as = v;
        as.type = b.dtype;  // halves are computed as floats
        std::string whole = bytes_of(as);
        copy_region(whole.data(), input.shape, b.box,
                    static_cast<char*>(interpreter.data(static_cast<int32_t>(i))), b.layout, size_of(b.dtype),
                    false);
      }
    }
  }
}

using Results = std::vector<std::pair<std::string, std::vector<double>>>;

/// The outputs on rank 0, in the order of the graph's.
Results collect(const Graph& graph, Interpreter& interpreter) {
  Results out;
  for (TensorId id : graph.outputs) {
    const Tensor& t = graph.tensor(id);
    for (int32_t b : interpreter.entry("eval_step").outputs) {
      const Buffer& buffer = interpreter.program().buffers[static_cast<size_t>(b)];
      if (buffer.tensor != t.name) continue;
      const auto bytes = static_cast<size_t>(volume(t.shape) * size_of(t.dtype));
      std::string dense(bytes, '\0');
      copy_region(dense.data(), t.shape, buffer.box, static_cast<char*>(interpreter.data(b)), buffer.layout,
                  size_of(t.dtype), true);
      std::vector<double> numbers;
      for (int64_t i = 0; i < volume(t.shape); ++i) numbers.push_back(element_as_double(dense, t.dtype, i));
      out.emplace_back(t.name, std::move(numbers));
      break;
    }
  }
  return out;
}

Results run(const Graph& graph, const Variant& v, const std::string& path, int ranks, uint64_t seed) {
  const Problem problem(graph, ranks);
  const Machine machine = load_machine("cpu-4:devices=" + std::to_string(ranks));
  Rng rng(seed);
  const Strategy strategy = ranks == 1 ? single_device(problem) : test::random_strategy(problem, rng);
  RooflineCost costs;
  const auto make = [](const KernelCall& call) { return cpu::make_kernel(call); };
  const Plan plan = make_plan(
      {nullptr, &problem, &machine}, strategy, costs,
      [&](const KernelCall& call) { return make(call)->workspace_bytes(); }, false);
  verify(plan);
  Results out;
  run_threads(ranks, [&](Communicator& comm) {
    WeightReader reader(path);
    const auto load =
        plan_loader([&](const Parameter& p, const Box& box, void* to) { reader.read(p, box, to); });
    Interpreter interpreter(plan.programs[static_cast<size_t>(comm.rank())], plan.groups, comm, make,
                            {.fill_nan = true});
    load_parameters(plan.parameters, interpreter, load);
    fill(plan, v.inputs, interpreter);
    interpreter.execute("eval_step", {});
    if (comm.rank() == 0) out = collect(graph, interpreter);
  });
  return out;
}

/// Within the standard's tolerance: rtol 1e-3, atol 1e-7.
std::string difference(const std::vector<double>& got, const Values& expected) {
  if (got.size() != expected.numbers.size())
    return std::to_string(got.size()) + " elements, not " + std::to_string(expected.numbers.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const double g = got[i], e = expected.numbers[i];
    if (g == e || (std::isnan(g) && std::isnan(e))) continue;
    if (!(std::abs(g - e) <= 1e-7 + 1e-3 * std::abs(e)))
      return "element " + std::to_string(i) + " is " + std::to_string(g) + ", not " + std::to_string(e);
  }
  return "";
}

std::string check(const Vector& vector, const Variant& v, const Graph& graph, const std::string& path) {
  if (graph.outputs.size() != vector.outputs.size()) return "some outputs do not depend on the inputs";
  for (int ranks : {1, 3}) {
    const Results results = run(graph, v, path, ranks, hash_bytes(vector.name));
    for (size_t o = 0; o < vector.outputs.size(); ++o) {
      const Values& expected = vector.outputs[o];
      const Tensor& t = graph.tensor(graph.outputs[o]);
      const std::string where = "output " + expected.name + " on " + std::to_string(ranks) + " ranks: ";
      if (t.shape != Shape(expected.shape))
        return where + "shape " + to_string(t.shape) + ", not " + to_string(Shape(expected.shape));
      const bool half = expected.type == DType::f16 || expected.type == DType::bf16;
      if (!v.summed && t.dtype != expected.type && !half)
        return where + "type " + std::string(name(t.dtype)) + ", not " + std::string(name(expected.type));
      if (o >= results.size()) return where + "not there";
      if (const std::string text = difference(results[o].second, expected); !text.empty())
        return where + text;
    }
  }
  return "";
}

bool wants_known(const std::string& error) {
  return error.find("not known before the model runs") != std::string::npos ||
         error.find("known only when the model runs") != std::string::npos;
}
bool is_folded(const std::string& error) {
  return error.find("no output depends on an input") != std::string::npos;
}

Outcome attempt(const Vector& vector, const Variant& v) {
  const WrittenModel written(v.model);
  try {
    // Before opset 12 only the use of a model said whether it drops.
    ImportOptions options;
    options.inference = vector.model.opset_import(0).version() < 12;
    const Graph graph = prepare(import_model(written.path(), options));
    const std::string text = check(vector, v, graph, written.path());
    return {text.empty() ? Outcome::Kind::passed : Outcome::Kind::wrong, text};
  } catch (const UserError& e) {
    return {Outcome::Kind::refused, e.what()};
  } catch (const std::exception& e) {
    return {Outcome::Kind::wrong, e.what()};
  }
}

}  // namespace

Outcome run_vector(const Vector& vector) {
  for (const auto* values : {&vector.inputs, &vector.outputs}) {
    for (const Values& v : *values) {
      if (!v.refusal.empty()) return {Outcome::Kind::refused, v.refusal};
      // Only axes and the like, which are known, may be none.
      if (v.numbers.empty() && (values == &vector.outputs || v.shape.size() != 1 || is_float(v.type)))
        return {Outcome::Kind::refused, "shape of no elements: " + v.name};
    }
  }
  // None known; all but the first; integers; all.
  const std::function<bool(size_t)> choices[] = {
      [](size_t) { return false; }, [&](size_t i) { return !is_float(vector.inputs[i].type); },
      [](size_t i) { return i > 0; },
      [&](size_t i) {
        return i > 0 &&
               !(is_float(vector.inputs[i].type) && vector.inputs[i].shape == vector.inputs[0].shape);
      },
      [](size_t) { return true; }};
  Outcome first;
  for (size_t c = 0; c < std::size(choices); ++c) {
    const Variant v = variant_of(vector, choices[c]);
    Outcome out = attempt(vector, v);
    if (out.kind == Outcome::Kind::refused && is_folded(out.text))
      out = attempt(vector, summed(v, vector.outputs));
    if (c == 0) first = out;
    if (out.kind != Outcome::Kind::refused) return out;
    if (!wants_known(out.text)) return c == 0 ? out : first;
  }
  return first;
}

}  // namespace ff::conformance
