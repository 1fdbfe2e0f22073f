// Which of the things that people paste a text is. What is none of ours is refused by its own name.
#include <algorithm>
#include <pugixml.hpp>

#include "compiler/base/check.h"
#include "tools/fftopo/topology.h"

namespace ff {
namespace {

constexpr char kDump[] =
    "dump NCCL's topology: NCCL_TOPO_DUMP_FILE=topo.xml before any program that uses NCCL";
constexpr char kMatrix[] = "run nvidia-smi topo -m and import what it prints";
constexpr char kForNvidia[] = "imports read NVIDIA machines; write the machine file by hand, from a --preset";

bool has(const std::string& text, const char* what) { return text.find(what) != std::string::npos; }

[[noreturn]] void refuse(const std::string& source, const std::string& what, const std::string& hint) {
  throw UserError(source + ": this is " + what, hint);
}

bool any_node(const pugi::xml_node& root, const char* name, const char* attribute = nullptr) {
  return root.find_node([&](const pugi::xml_node& n) {
    return std::string(n.name()) == name && (attribute == nullptr || n.attribute(attribute));
  });
}

int count_nodes(const pugi::xml_node& root, const std::string& name, const std::string& class_prefix = {}) {
  int n = root.name() == name && std::string(root.attribute("class").value()).rfind(class_prefix, 0) == 0;
  for (const pugi::xml_node& child : root.children()) n += count_nodes(child, name, class_prefix);
  return n;
}

/// NCCL reads such files, completed by what it finds on the machine; alone they name no GPU.
void refuse_template(const pugi::xml_node& root, const std::string& source) {
  const int functions = count_nodes(root, "pci"), displays = count_nodes(root, "pci", "0x03");
  std::string missing = "it has no <gpu>";
  if (displays > 0) {
    missing += ", only " + std::to_string(displays) +
               " PCI functions of class 0x03, which may be GPUs; missing " +
               "are their <gpu> and <nvlink> and the speeds of <net>";
  } else {
    missing += ", and no class says which of its " + std::to_string(functions) + " PCI functions are GPUs";
  }
  refuse(source, "an input template for NCCL (NCCL_TOPO_FILE), not a dump: " + missing,
         "on the machine itself, " + std::string(kDump));
}

Format recognise_xml(const std::string& text, const std::string& source) {
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_string(text.c_str());
  const pugi::xml_node root = document.document_element();
  const std::string name = root.name();
  if (name == "topology" || has(text, "<!DOCTYPE topology")) {
    refuse(source, "hwloc's XML (lstopo), which does not say how GPUs are linked", kDump);
  }
  if (name == "graphs") {
    refuse(source, "an NCCL graph file (NCCL_GRAPH_FILE): rings and trees, not the machine they run on",
           kDump);
  }
  if (!parsed) {
    refuse(source,
           "XML that is cut short or damaged, at byte " + std::to_string(parsed.offset) + ": " +
               parsed.description(),
           std::string("copy the whole file, or ") + kDump);
  }
  if (name != "system" && name != "cpu" && name != "pci") {
    refuse(source, "XML with the root <" + name + ">, not an NCCL topology, whose root is <system>", kDump);
  }
  const bool amd = any_node(root, "xgmi") || any_node(root, "gpu", "gcn") || any_node(root, "gpu", "arch");
  if (amd || root.attribute("version").as_int(1) != 1) {
    refuse(source,
           "an RCCL topology (version " + std::string(root.attribute("version").as_string("1")) +
               (amd ? ", AMD GPUs)" : ", where NCCL writes 1)"),
           kForNvidia);
  }
  if (!any_node(root, "gpu")) refuse_template(root, source);
  return Format::kNcclXml;
}

/// A line that starts, after comment signs and bars, with these words.
bool any_line(const std::vector<std::string>& lines, const std::vector<std::string>& wanted) {
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    const std::vector<std::string> words = words_of(plain(line));
    return words.size() >= wanted.size() && std::equal(wanted.begin(), wanted.end(), words.begin());
  });
}

void refuse_other_tools(const std::string& text, const std::vector<std::string>& lines,
                        const std::string& source) {
  if (has(text, "ROCm System Management Interface") || has(text, "rocm-smi") || has(text, "amd-smi")) {
    refuse(source, "rocm-smi output (AMD GPUs)", kForNvidia);
  }
  if (has(text, "(UUID: GPU-") || has(text, "(UUID: MIG-")) {
    const bool mig = has(text, "(UUID: MIG-");
    refuse(source,
           std::string("nvidia-smi -L output, a list of GPUs") + (mig ? " and MIG devices" : "") +
               " without their links",
           mig ? std::string(kMatrix) + "; MIG devices have no links of their own" : kMatrix);
  }
  if (any_line(lines, {"GPU0", "GPU1"}) || any_line(lines, {"GPU0", "X"})) {
    refuse(source, "an nvidia-smi topo -p2p matrix: it says who may reach whom, not by what", kMatrix);
  }
  if (has(text, "NVIDIA-SMI ")) refuse(source, "nvidia-smi's table of GPUs, without their links", kMatrix);
  if (has(text, "device_kind") && has(text, "node {")) {
    refuse(source, "a machine file already", "give it to ffcompile --machine " + source);
  }
}

bool is_nccl_row(const std::vector<std::string>& words) {
  const auto number = [](const std::string& w) {
    return !w.empty() && w.find_first_not_of("0123456789") == std::string::npos;
  };
  return words.size() >= 7 && number(words[0]) && number(words[1]) && !number(words[2]);
}

}  // namespace

Format recognise(const std::string& text, const std::string& source) {
  const std::vector<std::string> lines = clean_lines(text);
  const size_t first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first == std::string::npos) throw UserError(source + ": is empty", kMatrix);
  if (text[first] == '<') return recognise_xml(text.substr(first), source);
  if (has(text, "Avg bus bandwidth") || has(text, "nThread ") ||
      std::any_of(lines.begin(), lines.end(), [](const auto& line) { return is_nccl_row(words_of(line)); })) {
    return Format::kNcclTests;
  }
  if (has(text, "CPU Affinity") && has(text, "GPU0")) return Format::kSmiMatrix;
  refuse_other_tools(text, lines, source);
  throw UserError(source + ": is not an NCCL topology, nvidia-smi topo -m output or nccl-tests output",
                  kMatrix);
}

}  // namespace ff
