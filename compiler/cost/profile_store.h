// Measurements of kernels, kept in one file a kind of device, so that a compile need not measure again.
//
//   ProfileStore store("cpu.profile", {.device = "cpu", .threads = 1, .libraries = "oneDNN 2.6.3"});
//   store.add(2, "conv pads=[..] in f32:last:16x64x28x28 ...", {.measurement = {.median = 41'000}});
//   store.save();
//
// The file is JSON lines: a header, an entry a line in key order, and a last line with their number. The key
// of an entry is how many ranks were loaded and the text of the kernel call; the rest of what a time depends
// on (device, threads per rank, library versions) is the header's.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/cost/cost_model.h"

namespace ff {

struct ProfileHeader {
  std::string device;     // kind of device
  int threads = 1;        // per rank
  std::string libraries;  // kernels' library versions and instruction set
  friend bool operator==(const ProfileHeader&, const ProfileHeader&) = default;
};

struct ProfileEntry {
  Measurement measurement;
  Work work;  // what it did: other shapes are scaled from it
};

/// A kernel call's text without the extents of its operands: calls that differ in shapes only share it.
std::string signature_of(const std::string& call_text);

class ProfileStore {
 public:
  using Key = std::pair<int, std::string>;  // ranks loaded, call

  /// An empty store that `save` will write to `path`.
  ProfileStore(std::string path, ProfileHeader header);
  /// Reads `path` if it is there. UserError naming the file if it is broken, or made with another version of
  /// this program, other libraries, another device or number of threads than `header` says.
  static ProfileStore open(const std::string& path, const ProfileHeader& header);
  /// Reads `path` whatever its libraries; UserError if it is missing or broken.
  static ProfileStore read(const std::string& path);

  const std::string& path() const { return path_; }
  const ProfileHeader& header() const { return header_; }
  const ProfileEntry* find(int ranks, const std::string& call_text) const;
  /// Entries under these ranks with this signature, in key order.
  const std::vector<const ProfileEntry*>& similar(int ranks, const std::string& signature) const;
  /// Entries of this kernel under these ranks.
  const std::vector<const ProfileEntry*>& of_kernel(int ranks, const std::string& kernel) const;
  void add(int ranks, const std::string& call_text, const ProfileEntry& entry);
  size_t size() const { return entries_.size(); }
  /// The ranks that entries were measured under, smallest first.
  std::vector<int> ranks() const;

  /// Writes a file beside `path` and renames it: readers see the old or the new one whole. RunError if the
  /// disk does not take it.
  void save() const;
  std::string text() const;
  /// Of text(): a plan's header names the profile it was made from.
  uint64_t hash() const;

 private:
  void parse(const std::string& text);

  std::string path_;
  ProfileHeader header_;
  std::map<Key, ProfileEntry> entries_;
  std::map<Key, std::vector<const ProfileEntry*>> by_signature_, by_kernel_;
};

/// Where a profile lies unless the user says: under $XDG_CACHE_HOME/ff or ~/.cache/ff, one file for each kind
/// of device, number of threads and set of libraries.
std::string default_profile_path(const ProfileHeader& header);

}  // namespace ff
