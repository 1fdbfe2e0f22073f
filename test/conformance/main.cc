// Runs ONNX's test vectors and compares what becomes of each with the committed list.
//
//   ff_conformance /usr/share/libonnx-testdata/data claims.txt            # status 1 if a vector changed
//   sides ff_conformance /usr/share/libonnx-testdata/data claims.txt --update   # writes the list anew
//   ff_conformance DATA claims.txt node/test_abs                          # one vector, and what is said of
//   it
//
// A line of the list: a vector's name, and "claimed", or "refused" with a reason: op (out of scope), type
// (out of scope), control-flow, dynamic-shape, opset (older than 7), form (of an op that is built: an
// attribute or use that is not). Vectors of the list that this machine does not have are skipped: other
// versions of ONNX bring others.
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

#include "compiler/base/check.h"
#include "test/conformance/run_vector.h"

namespace ff::conformance {
namespace {

std::string reason_of(const std::string& text) {
  constexpr std::pair<const char*, const char*> kReasons[] = {
      {"is older than", "opset"},
      {"control flow", "control-flow"},
      {"shape of no elements", "dynamic-shape"},
      {"depends on the data", "dynamic-shape"},
      {"not known before the model runs", "dynamic-shape"},
      {"known only when the model runs", "dynamic-shape"},
      {"unknown operator", "op"},
      {"operator of domain", "op"},
      {"quantised", "op"},
      {"of strings", "op"},
      {"of bits", "op"},
      {"sequence", "type"},
      {"of type", "type"},
      {"has type", "type"},
      {"have types", "type"},
      {"of integers", "type"},
      {"supported type", "type"},
      {"type ", "type"},
  };
  for (const auto& [part, reason] : kReasons) {
    if (text.find(part) != std::string::npos) return reason;
  }
  return "form";
}

using Claims = std::map<std::string, std::string>;

Claims read_claims(const std::string& path) {
  Claims out;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const size_t space = line.find(' ');
    if (!line.empty() && line[0] != '#' && space != std::string::npos)
      out[line.substr(0, space)] = line.substr(space + 1);
  }
  return out;
}

void write_claims(const std::string& path, const Claims& claims) {
  std::ofstream out(path);
  out << "# What becomes of ONNX's test vectors; ff_conformance ... --update writes this.\n";
  for (const auto& [name, what] : claims) out << name << ' ' << what << '\n';
}

int run(const std::string& data, const std::string& list, const std::string& option) {
  Claims claims = read_claims(list);
  std::map<std::string, int> counts;
  int wrong = 0, changed = 0;
  for (const auto& folder : find_vectors(data)) {
    const Vector vector = read_vector(folder);
    if (!option.empty() && option != "--update" && option != vector.name) continue;
    const Outcome outcome = run_vector(vector);
    if (outcome.kind == Outcome::Kind::wrong) {
      std::printf("WRONG %s: %s\n", vector.name.c_str(), outcome.text.c_str());
      ++wrong;
      continue;
    }
    const std::string now =
        outcome.kind == Outcome::Kind::passed ? "claimed" : "refused " + reason_of(outcome.text);
    ++counts[now];
    if (option == vector.name)
      std::printf("%s %s\n%s\n", vector.name.c_str(), now.c_str(), outcome.text.c_str());
    std::string& before = claims[vector.name];
    if (before == now || option == "--update") {
      before = now;
      continue;
    }
    std::printf("CHANGED %s: was %s, is %s: %s\n", vector.name.c_str(),
                before.empty() ? "not in the list" : before.c_str(), now.c_str(), outcome.text.c_str());
    ++changed;
  }
  for (const auto& [what, count] : counts) std::printf("%5d %s\n", count, what.c_str());
  if (option == "--update") write_claims(list, claims);
  if (changed > 0)
    std::printf("if this is meant: ff_conformance %s %s --update\n", data.c_str(), list.c_str());
  return wrong + changed > 0 ? 1 : 0;
}

}  // namespace
}  // namespace ff::conformance

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "ff_conformance DATA LIST [--update | NAME]\n");
    return 2;
  }
  try {
    return ff::conformance::run(argv[1], argv[2], argc > 3 ? argv[3] : "");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "ff_conformance: %s\n", e.what());
    return 2;
  }
}
