#include "compiler/plan/container.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "compiler/base/check.h"
#include "compiler/base/hash.h"
#include "compiler/plan/codec.h"

namespace ff {
namespace {

constexpr std::string_view kMagic = "FFPLAN\r\n";
constexpr size_t kNameBytes = 24;

/// One line of the section table, as it lies in the file (little-endian).
struct Section {
  char name[kNameBytes] = {};
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t hash = 0;
};
static_assert(sizeof(Section) == kNameBytes + 24);

struct Preamble {
  char magic[8] = {};
  uint32_t major = 0;
  uint32_t minor = 0;
  uint64_t sections = 0;
};
static_assert(sizeof(Preamble) == 24);

std::string serialize(const google::protobuf::Message& message) {
  std::string out;
  FF_CHECK(message.SerializeToString(&out)) << message.GetTypeName();
  return out;
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), in_(path, std::ios::binary) {
    if (!in_)
      throw UserError(path + ": no such file, or it cannot be read",
                      "make a plan with: ffcompile MODEL.onnx -o " + path);
    Preamble preamble;
    if (!read(&preamble, sizeof preamble) || std::memcmp(preamble.magic, kMagic.data(), kMagic.size()) != 0) {
      throw UserError(path + ": not a plan file", "plans are made by ffcompile");
    }
    if (preamble.major != kPlanMajor) {
      throw UserError(path + ": plan format " + std::to_string(preamble.major) + "." +
                          std::to_string(preamble.minor) + "; this program reads " +
                          std::to_string(kPlanMajor) + ".x",
                      "compile the model again with the ffcompile of this version");
    }
    if (preamble.sections > 1U << 20) damaged("section table");
    sections_.resize(preamble.sections);
    if (!read(sections_.data(), sections_.size() * sizeof(Section))) damaged("section table");
  }

  template <typename Message>
  Message get(const std::string& name) {
    for (const Section& section : sections_) {
      if (std::strncmp(section.name, name.c_str(), kNameBytes) != 0) continue;
      in_.seekg(0, std::ios::end);
      if (section.offset + section.size > static_cast<uint64_t>(in_.tellg())) damaged(name);
      std::string bytes(section.size, '\0');
      in_.seekg(static_cast<std::streamoff>(section.offset));
      if (!read(bytes.data(), bytes.size()) || hash_bytes(bytes) != section.hash) damaged(name);
      Message message;
      if (!message.ParseFromString(bytes)) damaged(name);
      return message;
    }
    damaged(name);
  }

  bool has(const std::string& name) const {
    for (const Section& section : sections_) {
      if (std::strncmp(section.name, name.c_str(), kNameBytes) == 0) return true;
    }
    return false;
  }

  Plan header() {
    Plan plan;
    decode(get<proto::Header>("header"), plan);
    for (const std::string& feature : plan.required_features) {
      throw UserError(path_ + ": needs the feature '" + feature + "', which this version does not have",
                      "run it with the ffrun of the version that compiled it");
    }
    return plan;
  }

 private:
  [[noreturn]] void damaged(const std::string& section) const {
    throw UserError(path_ + ": damaged (section '" + section + "')", "compile the model again");
  }

  bool read(void* data, size_t bytes) {
    in_.read(static_cast<char*>(data), static_cast<std::streamsize>(bytes));
    return static_cast<size_t>(in_.gcount()) == bytes;
  }

  std::string path_;
  std::ifstream in_;
  std::vector<Section> sections_;
};

std::string program_name(int32_t number) { return "program " + std::to_string(number); }

}  // namespace

void write_plan(const std::string& path, const Plan& plan) {
  std::vector<std::pair<std::string, std::string>> sections;
  std::map<std::string, int32_t> numbers;
  std::vector<std::string> programs;
  Plan stored;
  stored.program_of.reserve(plan.program_of.size());
  for (int32_t p : plan.program_of) {
    std::string bytes = serialize(encode(plan.programs[static_cast<size_t>(p)]));
    const auto [it, added] = numbers.try_emplace(std::move(bytes), static_cast<int32_t>(programs.size()));
    if (added) programs.push_back(it->first);
    stored.program_of.push_back(it->second);
  }
  proto::Header header = encode_header(plan);
  header.mutable_program_of()->Assign(stored.program_of.begin(), stored.program_of.end());
  sections.emplace_back("header", serialize(header));
  sections.emplace_back("parameters", serialize(encode_parameters(plan)));
  sections.emplace_back("strategy", serialize(encode_strategy(plan)));
  for (size_t i = 0; i < programs.size(); ++i)
    sections.emplace_back(program_name(static_cast<int32_t>(i)), std::move(programs[i]));
  if (plan.reference) sections.emplace_back("reference", serialize(encode(*plan.reference)));
  sections.emplace_back("predictions", serialize(encode_predictions(plan)));

  Preamble preamble{{}, kPlanMajor, kPlanMinor, sections.size()};
  std::memcpy(preamble.magic, kMagic.data(), kMagic.size());
  std::vector<Section> table(sections.size());
  uint64_t offset = sizeof preamble + table.size() * sizeof(Section);
  for (size_t i = 0; i < sections.size(); ++i) {
    std::strncpy(table[i].name, sections[i].first.c_str(), kNameBytes - 1);
    table[i].offset = offset;
    table[i].size = sections[i].second.size();
    table[i].hash = hash_bytes(sections[i].second);
    offset += table[i].size;
  }
  const std::string temporary = path + ".tmp" + std::to_string(::getpid());
  std::ofstream out(temporary, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&preamble), sizeof preamble);
  out.write(reinterpret_cast<const char*>(table.data()),
            static_cast<std::streamsize>(table.size() * sizeof(Section)));
  for (const auto& [name, bytes] : sections)
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(temporary, path, error);
  if (!out || error) {
    std::filesystem::remove(temporary, error);
    throw RunError(path + ": cannot be written");
  }
}

Plan read_plan(const std::string& path) {
  Reader reader(path);
  Plan plan = reader.header();
  decode(reader.get<proto::Parameters>("parameters"), plan);
  decode(reader.get<proto::Strategy>("strategy"), plan);
  int32_t count = 0;
  for (int32_t p : plan.program_of) count = std::max(count, p + 1);
  for (int32_t i = 0; i < count; ++i)
    plan.programs.push_back(decode(reader.get<proto::Program>(program_name(i))));
  if (reader.has("reference")) plan.reference = decode(reader.get<proto::Program>("reference"));
  decode(reader.get<proto::Predictions>("predictions"), plan);
  return plan;
}

Plan read_plan_for_rank(const std::string& path, int rank, bool with_reference) {
  Reader reader(path);
  Plan plan = reader.header();
  decode(reader.get<proto::Parameters>("parameters"), plan);
  const int32_t mine = plan.program_of.at(static_cast<size_t>(rank));
  plan.programs.push_back(decode(reader.get<proto::Program>(program_name(mine))));
  plan.program_of.assign(plan.program_of.size(), -1);
  plan.program_of[static_cast<size_t>(rank)] = 0;
  if (with_reference && reader.has("reference"))
    plan.reference = decode(reader.get<proto::Program>("reference"));
  decode(reader.get<proto::Predictions>("predictions"), plan);
  return plan;
}

int64_t read_plan_devices(const std::string& path) { return Reader(path).header().num_devices; }

}  // namespace ff
