#include "compiler/cost/profile_store.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "compiler/base/check.h"
#include "compiler/base/rng.h"

namespace ff {
namespace {

using nlohmann::json;
constexpr int kVersion = 1;
constexpr const char* kFormat = "ff-profile";

const std::vector<const ProfileEntry*> kNone;

const std::vector<const ProfileEntry*>& find_list(
    const std::map<ProfileStore::Key, std::vector<const ProfileEntry*>>& lists, int ranks,
    const std::string& name) {
  const auto at = lists.find({ranks, name});
  return at == lists.end() ? kNone : at->second;
}

std::string kernel_name(const std::string& call_text) { return call_text.substr(0, call_text.find(' ')); }

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw UserError(path + ": " + what,
                  "delete " + path + " and measure again, or name another --profile FILE");
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw UserError(path + ": cannot read this profile");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

json entry_json(const ProfileStore::Key& key, const ProfileEntry& entry) {
  const Measurement& m = entry.measurement;
  return {{"ranks", key.first},        {"call", key.second},       {"median_ns", m.median},
          {"spread_ns", m.spread},     {"count", m.count},         {"workspace_bytes", m.workspace_bytes},
          {"flops", entry.work.flops}, {"bytes", entry.work.bytes}};
}

std::string describe(const ProfileHeader& h) {
  return "device " + h.device + ", " + std::to_string(h.threads) + " threads a rank, " + h.libraries;
}

}  // namespace

std::string signature_of(const std::string& call_text) {
  std::istringstream words(call_text);
  std::string out, word;
  bool operand = false;
  while (words >> word) {
    if (operand) {
      if (const size_t colon = word.rfind(':'); colon != std::string::npos) {
        const auto extents = word.substr(colon + 1);
        const auto rank = extents == "scalar" ? 0 : 1 + std::count(extents.begin(), extents.end(), 'x');
        word = word.substr(0, colon + 1) + std::to_string(rank);
      }
    }
    operand = word == "in" || word == "out" || word == "inout";
    out += (out.empty() ? "" : " ") + word;
  }
  return out;
}

ProfileStore::ProfileStore(std::string path, ProfileHeader header)
    : path_(std::move(path)), header_(std::move(header)) {}

ProfileStore ProfileStore::open(const std::string& path, const ProfileHeader& header) {
  if (!std::filesystem::exists(path)) return {path, header};
  ProfileStore store = read(path);
  if (store.header_ != header) {
    refuse(path, "was measured on " + describe(store.header_) + "; this run has " + describe(header));
  }
  return store;
}

ProfileStore ProfileStore::read(const std::string& path) {
  ProfileStore store(path, {});
  store.parse(read_file(path));
  return store;
}

void ProfileStore::parse(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  int number = 1;
  try {
    if (!std::getline(lines, line)) refuse(path_, "is empty");
    const json header = json::parse(line);
    if (header.at("format") != kFormat) refuse(path_, "is no profile");
    if (header.at("version") != kVersion)
      refuse(path_, "has version " + header.at("version").dump() + "; this program reads " +
                        std::to_string(kVersion));
    header_ = {
        .device = header.at("device"), .threads = header.at("threads"), .libraries = header.at("libraries")};
    bool ended = false;
    for (; std::getline(lines, line) && !ended;) {
      ++number;
      const json item = json::parse(line);
      if (item.contains("entries")) {
        if (item.at("entries") != entries_.size()) refuse(path_, "lacks entries: it is broken");
        ended = true;
        continue;
      }
      const ProfileEntry entry{
          {item.at("median_ns"), item.at("spread_ns"), item.at("count"), item.at("workspace_bytes")},
          {item.at("flops"), item.at("bytes")}};
      if (entry.measurement.median < 1)
        refuse(path_, "line " + std::to_string(number) + ": no time is below 1 ns");
      add(item.at("ranks"), item.at("call"), entry);
    }
    if (!ended) refuse(path_, "ends early: it is broken");
  } catch (const json::exception&) {
    refuse(path_, "line " + std::to_string(number) + " is broken");
  }
}

const ProfileEntry* ProfileStore::find(int ranks, const std::string& call_text) const {
  const auto at = entries_.find({ranks, call_text});
  return at == entries_.end() ? nullptr : &at->second;
}

const std::vector<const ProfileEntry*>& ProfileStore::similar(int ranks, const std::string& signature) const {
  return find_list(by_signature_, ranks, signature);
}

const std::vector<const ProfileEntry*>& ProfileStore::of_kernel(int ranks, const std::string& kernel) const {
  return find_list(by_kernel_, ranks, kernel);
}

void ProfileStore::add(int ranks, const std::string& call_text, const ProfileEntry& entry) {
  const auto [at, is_new] = entries_.insert_or_assign({ranks, call_text}, entry);
  if (!is_new) return;
  by_signature_[{ranks, signature_of(call_text)}].push_back(&at->second);
  by_kernel_[{ranks, kernel_name(call_text)}].push_back(&at->second);
}

std::vector<int> ProfileStore::ranks() const {
  std::vector<int> out;
  for (const auto& [key, entry] : entries_) {
    if (out.empty() || out.back() != key.first) out.push_back(key.first);
  }
  return out;
}

std::string ProfileStore::text() const {
  std::string out = json{{"format", kFormat},
                         {"version", kVersion},
                         {"device", header_.device},
                         {"threads", header_.threads},
                         {"libraries", header_.libraries}}
                        .dump() +
                    "\n";
  for (const auto& [key, entry] : entries_) out += entry_json(key, entry).dump() + "\n";
  return out + json{{"entries", entries_.size()}}.dump() + "\n";
}

void ProfileStore::save() const {
  namespace fs = std::filesystem;
  std::error_code error;
  if (const fs::path folder = fs::path(path_).parent_path(); !folder.empty())
    fs::create_directories(folder, error);
  const std::string beside = path_ + ".tmp" + std::to_string(getpid());
  std::ofstream out(beside, std::ios::binary | std::ios::trunc);
  out << text();
  out.close();
  if (out) fs::rename(beside, path_, error);
  if (!out || error) {
    fs::remove(beside, error);
    throw RunError(path_ + ": cannot write the profile");
  }
}

uint64_t ProfileStore::hash() const {
  uint64_t h = 0;
  for (const char c : text()) h = mix64(h ^ static_cast<unsigned char>(c));
  return h;
}

std::string default_profile_path(const ProfileHeader& header) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::string folder = cache != nullptr && *cache != '\0'
                           ? std::string(cache)
                           : std::string(home != nullptr ? home : ".") + "/.cache";
  std::string libraries;
  for (char c : header.libraries) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.') {
      libraries += c;
    } else if (!libraries.empty() && libraries.back() != '-') {
      libraries += '-';
    }
  }
  return folder + "/ff/" + header.device + "-" + std::to_string(header.threads) + "t-" + libraries +
         ".profile";
}

}  // namespace ff
