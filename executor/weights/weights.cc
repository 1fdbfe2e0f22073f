#include "executor/weights/weights.h"

#include <onnx/onnx_pb.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "compiler/base/check.h"
#include "compiler/base/model_data.h"

namespace ff {
namespace {

/// A dense row-major index map: element i of the viewed tensor is element places[i] of the initializer.
struct Viewed {
  Shape shape;
  std::vector<int64_t> places;
};

Viewed identity_view(const Shape& shape) {
  Viewed v{shape, std::vector<int64_t>(static_cast<size_t>(volume(shape)))};
  for (size_t i = 0; i < v.places.size(); ++i) v.places[i] = static_cast<int64_t>(i);
  return v;
}

/// Element n of `out` taken from `in`, at the index that `from` gives for the index of n.
template <typename From>
Viewed gather(const Viewed& in, Shape shape, From from) {
  Viewed out{std::move(shape), {}};
  const int64_t total = volume(out.shape);
  Shape index(out.shape.size());
  for (int64_t n = 0; n < total; ++n) {
    int64_t rest = n;
    for (size_t axis = index.size(); axis-- > 0;) {
      index[axis] = rest % out.shape[axis];
      rest /= out.shape[axis];
    }
    const Shape source = from(index);
    int64_t at = 0;
    for (size_t axis = 0; axis < in.shape.size(); ++axis) at = at * in.shape[axis] + source[axis];
    out.places.push_back(in.places[static_cast<size_t>(at)]);
  }
  return out;
}

Viewed apply(const Viewed& in, const View& view) {
  if (view.kind == "reshape") return {view.attributes.ints("shape"), in.places};
  if (view.kind == "transpose") {
    const Ints& perm = view.attributes.ints("perm");
    Shape shape;
    for (int64_t p : perm) shape.push_back(in.shape.at(static_cast<size_t>(p)));
    return gather(in, shape, [&](const Shape& index) {
      Shape source(index.size());
      for (size_t i = 0; i < perm.size(); ++i) source[static_cast<size_t>(perm[i])] = index[i];
      return source;
    });
  }
  FF_CHECK_EQ(view.kind, "slice");
  const auto axis = static_cast<size_t>(view.attributes.integer("axis"));
  const int64_t begin = view.attributes.integer("begin");
  const int64_t step = view.attributes.integer("step", 1);
  Shape shape = in.shape;
  shape[axis] = (view.attributes.integer("end") - begin + step - 1) / step;
  return gather(in, shape, [&](Shape index) {
    index[axis] = begin + index[axis] * step;
    return index;
  });
}

Viewed view_of(const Shape& initializer, const std::vector<View>& views) {
  Viewed v = identity_view(initializer);
  for (const View& view : views) v = apply(v, view);
  return v;
}

/// Calls body(place in the dense box, linear index in the whole), in runs along the last axis.
template <typename Body>
void for_each_run(const Shape& whole, const Box& box, Body body) {
  const Shape extent = box.shape();
  const size_t rank = extent.size();
  const int64_t run = rank == 0 ? 1 : extent[rank - 1];
  for (int64_t n = 0; n < box.volume(); n += run) {
    int64_t rest = n;
    int64_t linear = 0;
    int64_t stride = 1;
    for (size_t axis = rank; axis-- > 0;) {
      linear += (box[static_cast<int>(axis)].lo + rest % extent[axis]) * stride;
      rest /= extent[axis];
      stride *= whole[axis];
    }
    body(n, linear, run);
  }
}

onnx::ModelProto parse(const std::string& path, const std::shared_ptr<MappedFile>& file) {
  onnx::ModelProto model;
  const std::string_view bytes = file->bytes();
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || !model.has_graph())
    throw_not_a_model(path, bytes);
  return model;
}

void write_model(const onnx::ModelProto& model, const std::string& path) {
  const std::string temporary = path + ".tmp" + std::to_string(::getpid());
  std::ofstream out(temporary, std::ios::binary);
  const bool written = model.SerializeToOstream(&out);
  out.close();
  std::error_code error;
  if (written && out) std::filesystem::rename(temporary, path, error);
  if (!written || !out || error) {
    std::filesystem::remove(temporary, error);
    throw RunError(path + ": cannot be written");
  }
}

}  // namespace

struct WeightReader::Impl {
  std::string path;
  onnx::ModelProto model;
  std::map<std::string, const onnx::TensorProto*> tensors;
  std::map<std::string, std::shared_ptr<Initializer>> read;  // those that were asked for
};

WeightReader::WeightReader(const std::string& model) : impl_(std::make_unique<Impl>()) {
  impl_->path = model;
  impl_->model = parse(model, std::make_shared<MappedFile>(model));
  for (const auto& t : impl_->model.graph().initializer()) impl_->tensors[t.name()] = &t;
  for (const auto& node : impl_->model.graph().node()) {
    if (node.op_type() != "Constant" || node.output_size() == 0) continue;
    for (const auto& a : node.attribute()) {
      if (a.name() == "value") impl_->tensors[node.output(0)] = &a.t();
    }
  }
}

WeightReader::~WeightReader() = default;

std::vector<std::string> WeightReader::files() const {
  std::set<std::string> external;
  for (const auto& [name, tensor] : impl_->tensors) {
    if (is_external(*tensor))
      external.insert(external_path(impl_->path, name, external_data(*tensor).location).string());
  }
  std::vector<std::string> out{impl_->path};
  out.insert(out.end(), external.begin(), external.end());
  return out;
}

void WeightReader::read(const Parameter& parameter, const Box& box, void* out) {
  const auto it = impl_->tensors.find(parameter.model_name);
  if (it == impl_->tensors.end()) {
    throw UserError(impl_->path + ": has no initializer '" + parameter.model_name + "', which the plan reads",
                    "compile the plan again for this model");
  }
  std::shared_ptr<Initializer>& data = impl_->read[parameter.model_name];
  if (!data) {
    data = std::make_shared<Initializer>();
    read_initializer(*it->second, impl_->path, *data);
  }
  const int64_t element = size_of(parameter.dtype);
  auto* to = static_cast<char*>(out);
  const auto put = [&](int64_t place, int64_t source) {
    if (data->dtype == parameter.dtype) {
      std::memcpy(to + place * element, data->bytes.data() + source * element, static_cast<size_t>(element));
      return;
    }
    std::string converted;
    append_element(converted, parameter.dtype, element_as_double(data->bytes, data->dtype, source));
    std::memcpy(to + place * element, converted.data(), converted.size());
  };
  if (parameter.views.empty()) {
    for_each_run(parameter.shape, box, [&](int64_t place, int64_t linear, int64_t run) {
      if (data->dtype == parameter.dtype) {
        std::memcpy(to + place * element, data->bytes.data() + linear * element,
                    static_cast<size_t>(run * element));
      } else {
        for (int64_t i = 0; i < run; ++i) put(place + i, linear + i);
      }
    });
    return;
  }
  const Viewed view = view_of(data->shape, parameter.views);
  FF_CHECK(view.shape == parameter.shape) << parameter.name << ": " << to_string(view.shape);
  for_each_run(parameter.shape, box, [&](int64_t place, int64_t linear, int64_t run) {
    for (int64_t i = 0; i < run; ++i) put(place + i, view.places[static_cast<size_t>(linear + i)]);
  });
}

void write_trained(const std::string& model_in, const std::vector<Parameter>& parameters,
                   const std::map<std::string, std::string>& values, const std::string& model_out) {
  onnx::ModelProto model = parse(model_in, std::make_shared<MappedFile>(model_in));
  std::map<std::string, onnx::TensorProto*> tensors;
  for (auto& t : *model.mutable_graph()->mutable_initializer()) tensors[t.name()] = &t;
  for (auto& node : *model.mutable_graph()->mutable_node()) {
    if (node.op_type() != "Constant" || node.output_size() == 0) continue;
    for (auto& a : *node.mutable_attribute()) {
      if (a.name() == "value") tensors[node.output(0)] = a.mutable_t();
    }
  }
  for (const Parameter& p : parameters) {
    const auto value = values.find(p.name);
    if (p.model_name.empty() || value == values.end()) continue;
    auto found = tensors.find(p.model_name);
    if (found == tensors.end()) {
      if (p.source != Parameter::Source::fill) continue;
      // A weight that a node made: the node goes, an initializer of its name comes.
      auto& nodes = *model.mutable_graph()->mutable_node();
      for (int i = 0; i < nodes.size(); ++i) {
        if (nodes[i].output_size() == 1 && nodes[i].output(0) == p.model_name) {
          nodes.DeleteSubrange(i, 1);
          break;
        }
      }
      onnx::TensorProto* added = model.mutable_graph()->add_initializer();
      added->set_name(p.model_name);
      added->set_data_type(onnx_type_of(p.dtype));
      for (int64_t d : p.shape) added->add_dims(d);
      added->set_raw_data(value->second);
      continue;
    }
    onnx::TensorProto& proto = *found->second;
    Initializer old;
    read_initializer(proto, model_in, old);
    std::string bytes(old.bytes);
    const Viewed view = p.views.empty() ? Viewed{} : view_of(old.shape, p.views);
    const int64_t element = size_of(old.dtype);
    if (p.views.empty() && old.dtype == p.dtype) {
      bytes = value->second;
    } else {
      for (int64_t i = 0; i < volume(p.shape); ++i) {
        std::string one;
        append_element(one, old.dtype, element_as_double(value->second, p.dtype, i));
        const int64_t place = p.views.empty() ? i : view.places[static_cast<size_t>(i)];
        std::memcpy(bytes.data() + place * element, one.data(), one.size());
      }
    }
    proto.clear_float_data();
    proto.clear_double_data();
    proto.clear_int32_data();
    proto.clear_external_data();
    proto.clear_data_location();
    proto.set_raw_data(bytes);
  }
  // Big external initializers that were not trained are copied in, so that the file stands by itself.
  for (auto& [name, proto] : tensors) {
    if (!is_external(*proto)) continue;
    Initializer data;
    read_initializer(*proto, model_in, data);
    proto->clear_external_data();
    proto->clear_data_location();
    proto->set_raw_data(std::string(data.bytes));
  }
  write_model(model, model_out);
}

}  // namespace ff
