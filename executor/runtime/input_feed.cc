#include "executor/runtime/input_feed.h"

#include <algorithm>
#include <map>

#include "compiler/base/check.h"
#include "compiler/plan/entry_inputs.h"

namespace ff {
namespace {

InputSpec spec_of(const Input& input) {
  return {.name = input.name,
          .shape = input.shape,
          .type = input.dtype,
          .batch_axis = input.batch_axis,
          .padding = 0,
          .classes = input.classes};
}

std::string names_of(const std::vector<Input>& inputs) {
  std::string out;
  for (const Input& input : inputs) out += (out.empty() ? "" : ", ") + input.name;
  return out;
}

/// The axes of a channels-last buffer from outermost to innermost.
std::vector<int> order_of(const Buffer& buffer) {
  const int rank = buffer.box.rank();
  if (buffer.layout == Layout::row_major || rank <= 2) return {};
  std::vector<int> order = {0};
  for (int axis = 2; axis < rank; ++axis) order.push_back(axis);
  order.push_back(1);
  return order;
}

}  // namespace

InputFeed::InputFeed(const std::vector<Input>& inputs, const std::vector<std::string>& files,
                     const FeedOptions& options)
    : inputs_(inputs), sources_(inputs.size()) {
  open(files, options);
  check_samples(options);
}

size_t InputFeed::find(const std::string& name) const {
  const auto at =
      std::find_if(inputs_.begin(), inputs_.end(), [&](const Input& i) { return i.name == name; });
  return static_cast<size_t>(at - inputs_.begin());
}

void InputFeed::open(const std::vector<std::string>& files, const FeedOptions& options) {
  std::map<std::string, Normalize> normalize;
  for (const std::string& text : options.normalize) {
    const auto [name, values] = parse_normalize(text);
    if (find(name) == inputs_.size()) {
      throw UserError("--normalize " + text + ": the plan has no input '" + name + "'",
                      "its inputs are " + names_of(inputs_));
    }
    normalize[name] = values;
  }
  for (const std::string& text : files) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UserError(options.flag + " " + text + ": not of the form NAME=FILE",
                      "its inputs are " + names_of(inputs_));
    const std::string name = text.substr(0, equals);
    const size_t i = find(name);
    if (i == inputs_.size()) {
      throw UserError(options.flag + " " + text + ": the plan has no input '" + name + "'",
                      "its inputs are " + names_of(inputs_));
    }
    if (sources_[i]) throw UserError(options.flag + ": two files for input '" + name + "'");
    const auto scale = normalize.find(name);
    sources_[i] = file_source(spec_of(inputs_[i]), open_data_file(text.substr(equals + 1)),
                              scale == normalize.end() ? std::nullopt : std::optional(scale->second));
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (sources_[i]) continue;
    if (!options.synthetic) {
      throw UserError(
          "input '" + inputs_[i].name + "' has no data",
          "give " + options.flag + " " + inputs_[i].name + "=FILE, or --synthetic for made-up numbers");
    }
    sources_[i] = synthetic_source(spec_of(inputs_[i]), options.seed);
  }
}

void InputFeed::check_samples(const FeedOptions& options) {
  size_t first = inputs_.size();
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const auto count = sources_[i]->samples();
    if (!count) continue;
    if (first == inputs_.size()) {
      first = i;
      samples_ = count;
    } else if (*count != *samples_) {
      throw UserError(options.flag + ": input '" + inputs_[first].name + "' has " +
                      std::to_string(*samples_) + " samples, input '" + inputs_[i].name + "' has " +
                      std::to_string(*count));
    }
  }
}

std::vector<std::string> InputFeed::describe() const {
  std::vector<std::string> out;
  for (const auto& source : sources_) out.push_back(source->describe());
  return out;
}

void InputFeed::fill(Interpreter& interpreter, const std::string& entry, const Batch& batch) {
  const Program& program = interpreter.program();
  for (const int32_t b : input_buffers(program, interpreter.entry(entry))) {
    const Buffer& buffer = program.buffers[static_cast<size_t>(b)];
    const size_t input = find(buffer.tensor);
    FF_CHECK_LT(input, inputs_.size()) << buffer.tensor;
    sources_[input]->fill(batch, {buffer.box, order_of(buffer)}, interpreter.data(b));
  }
}

std::string InputFeed::whole(const std::string& input, const Batch& batch) {
  const size_t i = find(input);
  FF_CHECK_LT(i, inputs_.size()) << input;
  std::string out(static_cast<size_t>(volume(inputs_[i].shape) * size_of(inputs_[i].dtype)), '\0');
  sources_[i]->fill(batch, {Box::whole(inputs_[i].shape), {}}, out.data());
  return out;
}

}  // namespace ff
