#include "executor/runtime/parameters.h"

#include <algorithm>
#include <cstring>

#include "compiler/base/check.h"
#include "compiler/base/model_data.h"

namespace ff {
namespace {

const Parameter& find(const std::vector<Parameter>& parameters, const std::string& name) {
  for (const Parameter& p : parameters) {
    if (p.name == name) return p;
  }
  FF_CHECK(false) << "no parameter " << name;
  throw;  // not reached
}

/// Strides of a dense buffer in elements, in the logical order of its axes.
Shape strides_of(const Shape& shape, Layout layout) {
  Shape out(shape.size(), 1);
  const bool last = layout == Layout::channels_last && shape.size() >= 3;
  int64_t step = last ? shape[1] : 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (last && axis == 1) continue;
    out[axis] = step;
    step *= shape[axis];
  }
  return out;
}

void append(std::string& out, const void* data, size_t bytes) {
  out.append(static_cast<const char*>(data), bytes);
}

/// What one rank holds: for every buffer the parameter's number, its box, its elements.
std::string pack(const std::vector<Parameter>& parameters, Interpreter& interpreter) {
  std::string out;
  const Program& program = interpreter.program();
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& b = program.buffers[i];
    if (b.origin != Origin::parameter) continue;
    const auto number = static_cast<int64_t>(&find(parameters, b.tensor) - parameters.data());
    append(out, &number, sizeof number);
    for (int axis = 0; axis < b.box.rank(); ++axis) {
      const Range r = b.box[axis];
      append(out, &r, sizeof r);
    }
    append(out, interpreter.data(static_cast<int32_t>(i)), static_cast<size_t>(b.bytes));
  }
  return out;
}

class Unpacker {
 public:
  Unpacker(const std::vector<Parameter>& parameters, GatheredParameters& out)
      : parameters_(parameters), out_(out) {}

  void add(const std::string& packed) {
    const char* at = packed.data();
    const char* end = at + packed.size();
    while (at < end) {
      int64_t number = 0;
      std::memcpy(&number, at, sizeof number);
      at += sizeof number;
      const Parameter& p = parameters_[static_cast<size_t>(number)];
      Box box;
      for (size_t axis = 0; axis < p.shape.size(); ++axis, at += sizeof(Range)) {
        Range r;
        std::memcpy(&r, at, sizeof r);
        box.push_back(r);
      }
      place(p, box, at);
      at += box.volume() * size_of(p.dtype);
    }
  }

 private:
  void place(const Parameter& p, const Box& box, const char* data) {
    const int64_t element = size_of(p.dtype);
    std::string& whole = out_.values[p.name];
    std::string& filled = filled_[p.name];
    if (whole.empty()) whole.assign(static_cast<size_t>(volume(p.shape) * element), '\0');
    if (filled.empty()) filled.assign(static_cast<size_t>(volume(p.shape)), '\0');
    std::string before(static_cast<size_t>(box.volume() * element), '\0');
    std::string known(static_cast<size_t>(box.volume()), '\0');
    copy_region(whole.data(), p.shape, box, before.data(), Layout::row_major, element, false);
    copy_region(filled.data(), p.shape, box, known.data(), Layout::row_major, 1, false);
    for (size_t i = 0; i < known.size(); ++i) {
      const size_t at = i * static_cast<size_t>(element);
      if (known[i] != 0 && std::memcmp(before.data() + at, data + at, static_cast<size_t>(element)) != 0) {
        if (out_.differing_replicas.empty() || out_.differing_replicas.back() != p.name)
          out_.differing_replicas.push_back(p.name);
        break;
      }
    }
    known.assign(known.size(), '\1');
    copy_region(whole.data(), p.shape, box, const_cast<char*>(data), Layout::row_major, element, true);
    copy_region(filled.data(), p.shape, box, known.data(), Layout::row_major, 1, true);
  }

  const std::vector<Parameter>& parameters_;
  GatheredParameters& out_;
  std::map<std::string, std::string> filled_;
};

}  // namespace

void copy_region(char* whole, const Shape& shape, const Box& box, char* dense, Layout layout,
                 int64_t element_bytes, bool to_whole) {
  const Shape extent = box.shape();
  const Shape outer = strides_of(shape, Layout::row_major);
  const Shape inner = strides_of(extent, layout);
  const size_t rank = extent.size();
  Shape index(rank, 0);
  const int64_t total = box.volume();
  // Runs along the last axis where both sides have stride 1 there.
  const bool runs = rank > 0 && inner[rank - 1] == 1;
  const int64_t step = runs ? extent[rank - 1] : 1;
  const auto bytes = static_cast<size_t>(step * element_bytes);
  for (int64_t n = 0; n < total; n += step) {
    int64_t a = 0;
    int64_t b = 0;
    int64_t rest = n;
    for (size_t axis = rank; axis-- > 0;) {
      const int64_t i = rest % extent[axis];
      rest /= extent[axis];
      a += (box[static_cast<int>(axis)].lo + i) * outer[axis];
      b += i * inner[axis];
    }
    char* x = whole + a * element_bytes;
    char* y = dense + b * element_bytes;
    std::memcpy(to_whole ? x : y, to_whole ? y : x, bytes);
  }
}

ParameterLoader plan_loader(ParameterLoader model) {
  return [model = std::move(model)](const Parameter& p, const Box& box, void* out) {
    if (p.source == Parameter::Source::fill) {
      std::string element;
      append_element(element, p.dtype, p.fill);
      char* at = static_cast<char*>(out);
      for (int64_t i = 0; i < box.volume(); ++i, at += element.size())
        std::copy(element.begin(), element.end(), at);
    } else if (p.source == Parameter::Source::inlined) {
      FF_CHECK_EQ(static_cast<int64_t>(p.bytes.size()), volume(p.shape) * size_of(p.dtype)) << p.name;
      std::string whole = p.bytes;
      copy_region(whole.data(), p.shape, box, static_cast<char*>(out), Layout::row_major, size_of(p.dtype),
                  false);
    } else {
      FF_CHECK(model != nullptr) << "no model to load " << p.name << " from";
      model(p, box, out);
    }
  };
}

ParameterLoader values_loader(const ParameterValues& values) {
  return [&values](const Parameter& p, const Box& box, void* out) {
    const auto at = values.find(p.name);
    FF_CHECK(at != values.end()) << p.name;
    copy_region(const_cast<char*>(at->second.data()), p.shape, box, static_cast<char*>(out),
                Layout::row_major, size_of(p.dtype), false);
  };
}

void load_parameters(const std::vector<Parameter>& parameters, Interpreter& interpreter,
                     const ParameterLoader& loader) {
  const Program& program = interpreter.program();
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& b = program.buffers[i];
    if (b.origin != Origin::parameter) continue;
    const Parameter& p = find(parameters, b.tensor);
    FF_CHECK_EQ(static_cast<int>(b.layout), static_cast<int>(Layout::row_major)) << b.tensor;
    loader(p, b.box, interpreter.data(static_cast<int32_t>(i)));
  }
}

GatheredParameters gather_parameters(const std::vector<Parameter>& parameters, Interpreter& interpreter,
                                     Communicator& comm) {
  constexpr int kTag = Communicator::kMaxTag / 2;  // beyond the numbers of a program's messages
  const std::string mine = pack(parameters, interpreter);
  GatheredParameters out;
  if (comm.rank() != 0) {
    const auto size = static_cast<int64_t>(mine.size());
    Request a = comm.isend(&size, sizeof size, 0, kTag);
    Request b = comm.isend(mine.data(), size, 0, kTag + 1);
    comm.wait(a);
    comm.wait(b);
    return out;
  }
  Unpacker unpacker(parameters, out);
  unpacker.add(mine);
  for (int peer = 1; peer < comm.size(); ++peer) {
    int64_t size = 0;
    Request a = comm.irecv(&size, sizeof size, peer, kTag);
    comm.wait(a);
    std::string theirs(static_cast<size_t>(size), '\0');
    Request b = comm.irecv(theirs.data(), size, peer, kTag + 1);
    comm.wait(b);
    unpacker.add(theirs);
  }
  return out;
}

}  // namespace ff
