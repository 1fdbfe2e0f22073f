#include "compiler/plan/container.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>

#include "compiler/base/check.h"
#include "compiler/base/hash.h"
#include "compiler/base/model_data.h"
#include "compiler/plan/codec.h"

namespace ff {
namespace {

constexpr std::string_view kMagic("FFPLAN\r\n", 8);
constexpr size_t kPreambleBytes = 24;
constexpr size_t kRowBytes = 32;
constexpr const char* kRecompile = "compile the model again with ffcompile";

enum class SectionKind : uint32_t { header, parameters, strategy, program, reference, predictions };
constexpr std::string_view kSectionNames[] = {"header",  "parameters", "strategy",
                                              "program", "reference",  "predictions"};

struct Section {
  SectionKind kind;
  uint32_t index = 0;
  std::string bytes;
};

std::string section_name(SectionKind kind, uint32_t index) {
  std::string out(kSectionNames[static_cast<size_t>(kind)]);
  if (kind == SectionKind::program) out += " " + std::to_string(index);
  return out;
}

void append(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 255);
}

uint64_t number_at(std::string_view bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

// ---- Writing ----

std::vector<Section> make_sections(const Plan& plan) {
  Plan header = plan;  // whose program_of counts distinct programs
  header.parameters.clear();
  header.programs.clear();
  std::map<std::string, int32_t> distinct;
  std::vector<Section> programs;
  std::vector<int32_t> place;
  for (const Program& program : plan.programs) {
    std::string bytes = encode(program);
    const auto [at, is_new] = distinct.try_emplace(bytes, static_cast<int32_t>(programs.size()));
    if (is_new)
      programs.push_back({SectionKind::program, static_cast<uint32_t>(programs.size()), std::move(bytes)});
    place.push_back(at->second);
  }
  for (int32_t& program : header.program_of) {
    FF_CHECK(program >= 0 && static_cast<size_t>(program) < place.size()) << program;
    program = place[static_cast<size_t>(program)];
  }
  std::vector<Section> sections;
  sections.push_back({SectionKind::header, 0, encode_header(header)});
  sections.push_back({SectionKind::parameters, 0, encode_parameters(plan)});
  sections.push_back({SectionKind::strategy, 0, encode_strategy(plan)});
  for (Section& section : programs) sections.push_back(std::move(section));
  if (plan.reference) sections.push_back({SectionKind::reference, 0, encode(*plan.reference)});
  sections.push_back({SectionKind::predictions, 0, encode_predictions(plan)});
  return sections;
}

std::string table_of(const std::vector<Section>& sections) {
  std::string out(kMagic);
  append(out, kPlanMajor, 4);
  append(out, kPlanMinor, 4);
  append(out, sections.size(), 4);
  append(out, 0, 4);
  uint64_t offset = kPreambleBytes + kRowBytes * sections.size() + 8;
  for (const Section& section : sections) {
    append(out, static_cast<uint64_t>(section.kind), 4);
    append(out, section.index, 4);
    append(out, offset, 8);
    append(out, section.bytes.size(), 8);
    append(out, hash_bytes(section.bytes), 8);
    offset += section.bytes.size();
  }
  append(out, hash_bytes(out), 8);
  return out;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// ---- Reading ----

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), file_(path) {
    check_preamble();
    read_table();
  }

  /// The section's bytes, their hash checked; empty if there is no such section.
  std::optional<std::string_view> find(SectionKind kind, uint32_t index = 0) const {
    for (const Row& row : rows_) {
      if (row.kind != static_cast<uint64_t>(kind) || row.index != index) continue;
      const std::string_view bytes = file_.bytes().substr(row.offset, row.size);
      if (hash_bytes(bytes) != row.hash)
        throw UserError(what(kind, index) + " is damaged: its checksum does not match", kRecompile);
      return bytes;
    }
    return std::nullopt;
  }
  std::string_view get(SectionKind kind, uint32_t index = 0) const {
    const auto bytes = find(kind, index);
    if (!bytes) throw UserError(what(kind, index) + " is missing", kRecompile);
    return *bytes;
  }
  std::string what(SectionKind kind, uint32_t index = 0) const {
    return path_ + ": section '" + section_name(kind, index) + "'";
  }
  uint32_t programs() const {
    return static_cast<uint32_t>(std::count_if(rows_.begin(), rows_.end(), [](const Row& row) {
      return row.kind == static_cast<uint64_t>(SectionKind::program);
    }));
  }

 private:
  struct Row {
    uint64_t kind, index, offset, size, hash;
  };

  void check_preamble() const {
    const std::string_view bytes = file_.bytes();
    if (bytes.substr(0, kMagic.size()) != kMagic)
      throw UserError(path_ + ": not a plan file", "ffcompile MODEL.onnx --machine MACHINE makes one");
    if (bytes.size() < kPreambleBytes) truncated(kPreambleBytes);
    const uint64_t major = number_at(bytes, 8, 4), minor = number_at(bytes, 12, 4);
    if (major != kPlanMajor) {
      throw UserError(path_ + ": plan format " + std::to_string(major) + "." + std::to_string(minor) +
                          "; this ffrun reads " + std::to_string(kPlanMajor) + ".x",
                      "compile the model again with the ffcompile of this version");
    }
  }

  void read_table() {
    const std::string_view bytes = file_.bytes();
    const size_t count = number_at(bytes, 16, 4);
    const size_t table = kPreambleBytes + kRowBytes * count;
    if (bytes.size() < table + 8) truncated(table + 8);
    if (hash_bytes(bytes.substr(0, table)) != number_at(bytes, table, 8))
      throw UserError(path_ + ": section table is damaged: its checksum does not match", kRecompile);
    for (size_t i = 0; i < count; ++i) {
      const size_t at = kPreambleBytes + kRowBytes * i;
      rows_.push_back({number_at(bytes, at, 4), number_at(bytes, at + 4, 4), number_at(bytes, at + 8, 8),
                       number_at(bytes, at + 16, 8), number_at(bytes, at + 24, 8)});
      if (rows_.back().offset + rows_.back().size > bytes.size())
        truncated(rows_.back().offset + rows_.back().size);
    }
  }

  [[noreturn]] void truncated(size_t needed) const {
    throw UserError(path_ + ": truncated: " + std::to_string(file_.bytes().size()) + " bytes of at least " +
                        std::to_string(needed),
                    "copy it again, or compile the model again with ffcompile");
  }

  std::string path_;
  MappedFile file_;
  std::vector<Row> rows_;
};

void check_features(const std::string& path, const Plan& plan) {
  const auto& known = known_plan_features();
  for (const std::string& feature : plan.required_features) {
    if (std::find(known.begin(), known.end(), feature) != known.end()) continue;
    throw UserError(path + ": needs '" + feature + "', which this ffrun does not know",
                    "use the ffrun of the version that compiled the plan");
  }
}

Plan read_common(const std::string& path, const Reader& reader) {
  Plan plan;
  decode_header(reader.get(SectionKind::header), reader.what(SectionKind::header), plan);
  check_features(path, plan);
  decode_parameters(reader.get(SectionKind::parameters), reader.what(SectionKind::parameters), plan);
  decode_predictions(reader.get(SectionKind::predictions), reader.what(SectionKind::predictions), plan);
  plan.programs.resize(reader.programs());
  for (const int32_t program : plan.program_of) {
    if (program < 0 || static_cast<size_t>(program) >= plan.programs.size())
      reader.get(SectionKind::program, static_cast<uint32_t>(program));  // says that it is missing
  }
  return plan;
}

void read_program(const Reader& reader, uint32_t index, Plan& plan) {
  plan.programs[index] =
      decode_program(reader.get(SectionKind::program, index), reader.what(SectionKind::program, index));
}

void read_reference(const Reader& reader, Plan& plan) {
  if (const auto bytes = reader.find(SectionKind::reference))
    plan.reference = decode_program(*bytes, reader.what(SectionKind::reference));
}

}  // namespace

const std::vector<std::string>& known_plan_features() {
  static const std::vector<std::string> known = {};
  return known;
}

void write_plan(const std::string& path, const Plan& plan) {
  const std::vector<Section> sections = make_sections(plan);
  const std::string temporary = path + ".writing-" + std::to_string(::getpid());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) throw RunError(path + ": cannot be written: " + std::strerror(errno));
  bool good = write_all(fd, table_of(sections));
  for (const Section& section : sections) good = good && write_all(fd, section.bytes);
  good = good && ::fsync(fd) == 0;
  int error = good ? 0 : errno;
  if (::close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return;
  ::unlink(temporary.c_str());
  throw RunError(path + ": cannot be written: " + std::strerror(error));
}

Plan read_plan(const std::string& path) {
  const Reader reader(path);
  Plan plan = read_common(path, reader);
  decode_strategy(reader.get(SectionKind::strategy), reader.what(SectionKind::strategy), plan);
  for (uint32_t i = 0; i < reader.programs(); ++i) read_program(reader, i, plan);
  read_reference(reader, plan);
  return plan;
}

Plan read_plan_for_rank(const std::string& path, int rank, bool want_reference) {
  const Reader reader(path);
  Plan plan = read_common(path, reader);
  if (rank >= 0 && static_cast<size_t>(rank) < plan.program_of.size())
    read_program(reader, static_cast<uint32_t>(plan.program_of[static_cast<size_t>(rank)]), plan);
  if (want_reference) read_reference(reader, plan);
  return plan;
}

}  // namespace ff
