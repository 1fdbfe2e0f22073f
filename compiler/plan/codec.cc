#include "compiler/plan/codec.h"

#include "compiler/base/check.h"
#include "compiler/plan/plan.pb.h"

namespace ff {
namespace {

// ---- To messages ----

template <typename Values, typename Field>
void put_all(const Values& values, Field* field) {
  field->Assign(values.begin(), values.end());
}

void put(const std::string& name, const Attribute& value, proto::Attribute* out) {
  out->set_name(name);
  if (const auto* i = std::get_if<int64_t>(&value)) out->set_integer(*i);
  if (const auto* r = std::get_if<double>(&value)) out->set_real(*r);
  if (const auto* s = std::get_if<std::string>(&value)) out->set_text(*s);
  if (const auto* v = std::get_if<Ints>(&value)) put_all(*v, out->mutable_ints()->mutable_values());
  if (const auto* v = std::get_if<Reals>(&value)) put_all(*v, out->mutable_reals()->mutable_values());
}

template <typename Message>
void put_attributes(const Attributes& attributes, Message* out) {
  for (const auto& [name, value] : attributes.values()) put(name, value, out->add_attributes());
}

void put(const Operand& operand, proto::Operand* out) {
  out->set_dtype(static_cast<uint32_t>(operand.dtype));
  out->set_layout(static_cast<uint32_t>(operand.layout));
  out->set_access(static_cast<uint32_t>(operand.access));
  put_all(operand.shape, out->mutable_shape());
}

void put(const Buffer& buffer, proto::Buffer* out) {
  out->set_region(static_cast<uint32_t>(buffer.region));
  out->set_origin(static_cast<uint32_t>(buffer.origin));
  out->set_dtype(static_cast<uint32_t>(buffer.dtype));
  out->set_layout(static_cast<uint32_t>(buffer.layout));
  for (int axis = 0; axis < buffer.box.rank(); ++axis) {
    out->add_box(buffer.box[axis].lo);
    out->add_box(buffer.box[axis].hi);
  }
  out->set_tensor(buffer.tensor);
  out->set_offset(buffer.offset);
  out->set_bytes(buffer.bytes);
}

void put(const Instruction& in, proto::Instruction* out) {
  out->set_kind(static_cast<uint32_t>(in.kind));
  out->set_stream(static_cast<uint32_t>(in.stream));
  out->set_kernel(in.call.kernel);
  put_attributes(in.call.attributes, out);
  for (const Operand& operand : in.call.operands) put(operand, out->add_call_operands());
  put_all(in.operands, out->mutable_operands());
  out->set_workspace(in.workspace);
  out->set_peer(in.peer);
  out->set_tag(in.tag);
  out->set_group(in.group);
  out->set_root(in.root);
  out->set_combine_max(in.combine_max);
  put_all(in.counts, out->mutable_counts());
  put_all(in.waits, out->mutable_waits());
  out->set_op(in.op);
  out->set_start_ns(in.start_ns);
  out->set_duration_ns(in.duration_ns);
}

void put(const Entry& entry, proto::Entry* out) {
  out->set_name(entry.name);
  for (const Instruction& instruction : entry.instructions) put(instruction, out->add_instructions());
  put_all(entry.outputs, out->mutable_outputs());
}

void put(const Parameter& parameter, proto::Parameter* out) {
  out->set_name(parameter.name);
  out->set_kind(static_cast<uint32_t>(parameter.kind));
  put_all(parameter.shape, out->mutable_shape());
  out->set_dtype(static_cast<uint32_t>(parameter.dtype));
  out->set_source(static_cast<uint32_t>(parameter.source));
  out->set_model_name(parameter.model_name);
  out->set_fill(parameter.fill);
  out->set_content(parameter.bytes);
  for (const View& view : parameter.views) {
    proto::View* const v = out->add_views();
    v->set_kind(view.kind);
    put_attributes(view.attributes, v);
  }
}

void put(const OpSummary& op, proto::OpSummary* out) {
  out->set_op(op.op);
  out->set_type(op.type);
  for (const std::string& dim : op.dims) out->add_dims(dim);
  put_all(op.degrees, out->mutable_degrees());
  out->set_replicas(op.replicas);
  put_all(op.devices, out->mutable_devices());
  out->set_compute_ns(op.compute_ns);
  out->set_traffic_bytes(op.traffic_bytes);
  out->set_memory_bytes(op.memory_bytes);
}

template <typename Message>
std::string serialise(const Message& message) {
  std::string bytes;
  FF_CHECK(message.SerializeToString(&bytes)) << "a section of a plan is larger than protobuf can write";
  return bytes;
}

// ---- From messages ----

class Decoder {
 public:
  explicit Decoder(const std::string& what) : what_(what) {}

  template <typename Message>
  Message parse(std::string_view bytes) const {
    Message message;
    if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) damaged();
    return message;
  }

  template <typename Enum>
  Enum number(uint32_t value, Enum last) const {
    if (value > static_cast<uint32_t>(last)) damaged();
    return static_cast<Enum>(value);
  }
  DType dtype(uint32_t value) const { return number(value, DType::boolean); }
  Layout layout(uint32_t value) const { return number(value, Layout::channels_last); }

  template <typename Fields>
  Attributes attributes(const Fields& fields) const {
    Attributes out;
    for (const proto::Attribute& field : fields) out.set(field.name(), attribute(field));
    return out;
  }

  Box box(const google::protobuf::RepeatedField<int64_t>& ends) const {
    if (ends.size() % 2 != 0 || ends.size() > 2 * kMaxRank) damaged();
    Box out;
    for (int i = 0; i < ends.size(); i += 2) out.push_back({ends[i], ends[i + 1]});
    return out;
  }

  Operand operand(const proto::Operand& in) const {
    return {.dtype = dtype(in.dtype()),
            .layout = layout(in.layout()),
            .access = number(in.access(), Access::inout),
            .shape = Shape(in.shape().begin(), in.shape().end())};
  }

  Buffer buffer(const proto::Buffer& in) const {
    return {.region = number(in.region(), Region::scratch),
            .origin = number(in.origin(), Origin::input),
            .dtype = dtype(in.dtype()),
            .layout = layout(in.layout()),
            .box = box(in.box()),
            .tensor = in.tensor(),
            .offset = in.offset(),
            .bytes = in.bytes()};
  }

  Instruction instruction(const proto::Instruction& in) const {
    Instruction out;
    out.kind = number(in.kind(), InstructionKind::broadcast);
    out.stream = number(in.stream(), Stream::comm);
    out.call.kernel = in.kernel();
    out.call.attributes = attributes(in.attributes());
    for (const proto::Operand& one : in.call_operands()) out.call.operands.push_back(operand(one));
    out.operands.assign(in.operands().begin(), in.operands().end());
    out.workspace = in.workspace();
    out.peer = in.peer();
    out.tag = in.tag();
    out.group = in.group();
    out.root = in.root();
    out.combine_max = in.combine_max();
    out.counts.assign(in.counts().begin(), in.counts().end());
    out.waits.assign(in.waits().begin(), in.waits().end());
    out.op = in.op();
    out.start_ns = in.start_ns();
    out.duration_ns = in.duration_ns();
    return out;
  }

  Entry entry(const proto::Entry& in) const {
    Entry out;
    out.name = in.name();
    out.instructions.reserve(static_cast<size_t>(in.instructions_size()));
    for (const proto::Instruction& one : in.instructions()) out.instructions.push_back(instruction(one));
    out.outputs.assign(in.outputs().begin(), in.outputs().end());
    return out;
  }

  Parameter parameter(const proto::Parameter& in) const {
    Parameter out;
    out.name = in.name();
    out.kind = number(in.kind(), ParameterKind::state);
    out.shape.assign(in.shape().begin(), in.shape().end());
    out.dtype = dtype(in.dtype());
    out.source = number(in.source(), Parameter::Source::inlined);
    out.model_name = in.model_name();
    out.fill = in.fill();
    out.bytes = in.content();
    for (const proto::View& view : in.views())
      out.views.push_back({view.kind(), attributes(view.attributes())});
    return out;
  }

 private:
  [[noreturn]] void damaged() const {
    throw UserError(what_ + " is damaged: it does not parse", "compile the model again with ffcompile");
  }

  Attribute attribute(const proto::Attribute& field) const {
    switch (field.value_case()) {
      case proto::Attribute::kInteger:
        return int64_t{field.integer()};
      case proto::Attribute::kReal:
        return field.real();
      case proto::Attribute::kText:
        return field.text();
      case proto::Attribute::kInts:
        return Ints(field.ints().values().begin(), field.ints().values().end());
      case proto::Attribute::kReals:
        return Reals(field.reals().values().begin(), field.reals().values().end());
      case proto::Attribute::VALUE_NOT_SET:
        break;
    }
    damaged();
  }

  std::string what_;
};

OpSummary summary(const proto::OpSummary& in) {
  OpSummary out;
  out.op = in.op();
  out.type = in.type();
  out.dims.assign(in.dims().begin(), in.dims().end());
  out.degrees.assign(in.degrees().begin(), in.degrees().end());
  out.replicas = in.replicas();
  out.devices.assign(in.devices().begin(), in.devices().end());
  out.compute_ns = in.compute_ns();
  out.traffic_bytes = in.traffic_bytes();
  out.memory_bytes = in.memory_bytes();
  return out;
}

}  // namespace

std::string encode_header(const Plan& plan) {
  proto::Header out;
  out.set_model_path(plan.model_path);
  out.set_model_hash(plan.model_hash);
  out.set_machine_name(plan.machine_name);
  out.set_machine_hash(plan.machine_hash);
  out.set_profile_hash(plan.profile_hash);
  out.set_options(plan.options);
  out.set_library_versions(plan.library_versions);
  out.set_num_devices(plan.num_devices);
  out.set_batch(plan.batch);
  out.set_threads_per_rank(plan.threads_per_rank);
  out.set_seed(plan.seed);
  out.set_optimizer(plan.optimizer);
  out.set_batchnorm(plan.batchnorm);
  for (const std::string& feature : plan.required_features) out.add_required_features(feature);
  for (const Input& input : plan.inputs) {
    proto::Input* const i = out.add_inputs();
    i->set_name(input.name);
    put_all(input.shape, i->mutable_shape());
    i->set_dtype(static_cast<uint32_t>(input.dtype));
    i->set_batch_axis(input.batch_axis);
    i->set_classes(input.classes);
  }
  for (const std::string& output : plan.outputs) out.add_outputs(output);
  for (const auto& group : plan.groups) put_all(group, out.add_groups()->mutable_ranks());
  put_all(plan.program_of, out.mutable_program_of());
  return serialise(out);
}

void decode_header(std::string_view bytes, const std::string& what, Plan& plan) {
  const Decoder decoder(what);
  const auto in = decoder.parse<proto::Header>(bytes);
  plan.model_path = in.model_path();
  plan.model_hash = in.model_hash();
  plan.machine_name = in.machine_name();
  plan.machine_hash = in.machine_hash();
  plan.profile_hash = in.profile_hash();
  plan.options = in.options();
  plan.library_versions = in.library_versions();
  plan.num_devices = in.num_devices();
  plan.batch = in.batch();
  plan.threads_per_rank = in.threads_per_rank();
  plan.seed = in.seed();
  plan.optimizer = in.optimizer();
  plan.batchnorm = in.batchnorm();
  plan.required_features.assign(in.required_features().begin(), in.required_features().end());
  for (const proto::Input& input : in.inputs()) {
    plan.inputs.push_back({.name = input.name(),
                           .shape = Shape(input.shape().begin(), input.shape().end()),
                           .dtype = decoder.dtype(input.dtype()),
                           .batch_axis = input.batch_axis(),
                           .classes = input.classes()});
  }
  plan.outputs.assign(in.outputs().begin(), in.outputs().end());
  for (const proto::Group& group : in.groups())
    plan.groups.emplace_back(group.ranks().begin(), group.ranks().end());
  plan.program_of.assign(in.program_of().begin(), in.program_of().end());
}

std::string encode_parameters(const Plan& plan) {
  proto::Parameters out;
  for (const Parameter& parameter : plan.parameters) put(parameter, out.add_parameters());
  return serialise(out);
}

void decode_parameters(std::string_view bytes, const std::string& what, Plan& plan) {
  const Decoder decoder(what);
  const auto in = decoder.parse<proto::Parameters>(bytes);
  for (const proto::Parameter& one : in.parameters()) plan.parameters.push_back(decoder.parameter(one));
}

std::string encode_strategy(const Plan& plan) {
  proto::Strategy out;
  out.set_text(plan.strategy);
  for (const OpSummary& op : plan.ops) put(op, out.add_ops());
  return serialise(out);
}

void decode_strategy(std::string_view bytes, const std::string& what, Plan& plan) {
  const auto in = Decoder(what).parse<proto::Strategy>(bytes);
  plan.strategy = in.text();
  for (const proto::OpSummary& op : in.ops()) plan.ops.push_back(summary(op));
}

std::string encode_predictions(const Plan& plan) {
  proto::Predictions out;
  out.set_step_ns(plan.step_ns);
  out.set_data_parallel_ns(plan.data_parallel_ns);
  for (const DevicePrediction& device : plan.devices) {
    proto::DevicePrediction* const d = out.add_devices();
    d->set_busy_ns(device.busy_ns);
    d->set_live_peak_bytes(device.live_peak_bytes);
    d->set_peak_bytes(device.peak_bytes);
  }
  return serialise(out);
}

void decode_predictions(std::string_view bytes, const std::string& what, Plan& plan) {
  const auto in = Decoder(what).parse<proto::Predictions>(bytes);
  plan.step_ns = in.step_ns();
  plan.data_parallel_ns = in.data_parallel_ns();
  for (const proto::DevicePrediction& device : in.devices())
    plan.devices.push_back({device.busy_ns(), device.live_peak_bytes(), device.peak_bytes()});
}

std::string encode(const Program& program) {
  proto::Program out;
  for (const Buffer& buffer : program.buffers) put(buffer, out.add_buffers());
  for (const Entry& entry : program.entries) put(entry, out.add_entries());
  out.set_persistent_bytes(program.persistent_bytes);
  out.set_scratch_bytes(program.scratch_bytes);
  return serialise(out);
}

Program decode_program(std::string_view bytes, const std::string& what) {
  const Decoder decoder(what);
  const auto in = decoder.parse<proto::Program>(bytes);
  Program out;
  for (const proto::Buffer& buffer : in.buffers()) out.buffers.push_back(decoder.buffer(buffer));
  for (const proto::Entry& entry : in.entries()) out.entries.push_back(decoder.entry(entry));
  out.persistent_bytes = in.persistent_bytes();
  out.scratch_bytes = in.scratch_bytes();
  return out;
}

}  // namespace ff
