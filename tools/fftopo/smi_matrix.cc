// nvidia-smi topo -m: a matrix of who is how near whom, from tabs, columns, comments or Markdown.
#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>

#include "compiler/base/check.h"
#include "tools/fftopo/topology.h"

namespace ff {
namespace {

struct Row {
  std::vector<std::string> links;  // one for each column
  std::string cpus, numa;          // of a GPU; "" if there is none
};

struct Table {
  std::vector<std::string> columns;  // "GPU0", ..., then network cards
  size_t gpus = 0;
  bool has_numa = false;
  std::map<std::string, Row> rows;
};

bool is_gpu(const std::string& word) {
  return word.size() > 3 && word.rfind("GPU", 0) == 0 &&
         word.find_first_not_of("0123456789", 3) == std::string::npos;
}

/// The header of a matrix: GPUs, cards, and, unlike topo -p2p, the affinity.
bool read_header(const std::string& line, Table& table) {
  std::vector<std::string> words = words_of(plain(line));
  if (words.size() > 1 && words[0] == "GPU" && words[1] == "GPU0") words.erase(words.begin());
  const auto affinity = std::find(words.begin(), words.end(), "CPU");
  if (words.empty() || words[0] != "GPU0" || affinity == words.end()) return false;
  table = {};
  table.columns.assign(words.begin(), affinity);
  table.gpus = static_cast<size_t>(std::count_if(table.columns.begin(), table.columns.end(), is_gpu));
  table.has_numa = line.find("NUMA Affinity") != std::string::npos;
  return true;
}

/// Takes one link off the front of `rest`; tabs between links may be lost ("PIXNODE").
std::string take_link(std::string& rest) {
  rest.erase(0, std::min(rest.find_first_not_of(" \t"), rest.size()));
  size_t length = 0;
  if (rest.rfind("NV", 0) == 0) {
    length = std::min(rest.find_first_not_of("0123456789", 2), rest.size());
    if (length == 2) length = 0;
  }
  for (const char* word : {"NODE", "SYS", "SOC", "PHB", "PXB", "PIX", "X"}) {
    if (length == 0 && rest.rfind(word, 0) == 0) length = std::string(word).size();
  }
  std::string link = rest.substr(0, length);
  rest.erase(0, length);
  return link == "SOC" ? "SYS" : link;
}

void read_row(const std::string& line, const std::string& where, Table& table) {
  std::string rest = plain(line);
  const std::string label = words_of(rest)[0];
  rest.erase(0, label.size());
  Row row;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    row.links.push_back(take_link(rest));
    if (row.links.back().empty()) {
      throw UserError(where + ": the row of " + label + " has " + std::to_string(i) + " links, the header " +
                          std::to_string(table.columns.size()) + " columns",
                      "copy the output of nvidia-smi topo -m again, whole");
    }
  }
  const std::vector<std::string> words = words_of(rest);
  if (!words.empty()) row.cpus = words[0];
  if (table.has_numa && words.size() > 1) row.numa = words[1];
  table.rows[label] = std::move(row);
}

std::vector<Table> read_tables(const std::vector<std::string>& lines, const std::string& source) {
  std::vector<Table> tables;
  for (size_t i = 0; i < lines.size(); ++i) {
    Table table;
    if (read_header(lines[i], table)) {
      tables.push_back(std::move(table));
      continue;
    }
    if (tables.empty()) continue;
    Table& at = tables.back();
    const std::vector<std::string> words = words_of(plain(lines[i]));
    if (words.size() < 2 || std::find(at.columns.begin(), at.columns.end(), words[0]) == at.columns.end())
      continue;
    // A matrix of topo -p2p may follow, with rows of the same names.
    if (at.rows.count(words[0]) == 0) read_row(lines[i], source + ":" + std::to_string(i + 1), at);
  }
  for (const Table& table : tables) {
    for (size_t g = 0; g < table.gpus; ++g) {
      if (table.rows.count(table.columns[g]) > 0) continue;
      throw UserError(source + ": the matrix has no row of " + table.columns[g],
                      "copy the output of nvidia-smi topo -m again, whole");
    }
  }
  return tables;
}

/// Whether a topo -p2p matrix in the same text says that GPUs cannot reach each other.
bool peers_refused(const std::vector<std::string>& lines) {
  return std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    const std::vector<std::string> words = words_of(plain(line));
    return words.size() > 1 && is_gpu(words[0]) &&
           std::any_of(words.begin() + 1, words.end(), [](const auto& w) {
             return w == "NS" || w == "CNS" || w == "GNS" || w == "TNS" || w == "DR";
           });
  });
}

int number_of(const std::string& text) {
  int n = -1;
  std::from_chars(text.data(), text.data() + text.size(), n);
  return n;
}

class SmiImport {
 public:
  SmiImport(const Table& table, const ImportOptions& options) : table_(table), options_(options) {}
  Topology run();
  bool hides_nvlink = false, no_peers = false;

 private:
  const std::string& link(size_t a, size_t b) const { return table_.rows.at(table_.columns[a]).links[b]; }
  void choose_kind();
  void read_nvlinks();
  void group_sockets();
  void group_bridges();
  void read_cards();
  bool same_socket(size_t a, size_t b) const;

  const Table& table_;
  const ImportOptions& options_;
  Topology out_;
};

Topology SmiImport::run() {
  out_.format = "nvidia-smi topo -m";
  for (size_t g = 0; g < table_.gpus; ++g) {
    Gpu gpu;
    const std::string& numa = table_.rows.at(table_.columns[g]).numa;
    gpu.numa = number_of(numa);
    gpu.nvlinks.assign(table_.gpus, 0);
    if (gpu.numa >= 0 && std::find(out_.numa.begin(), out_.numa.end(), gpu.numa) == out_.numa.end()) {
      out_.numa.push_back(gpu.numa);
    }
    out_.gpus.push_back(std::move(gpu));
  }
  read_nvlinks();
  choose_kind();
  group_sockets();
  if (!no_peers) group_bridges();
  read_cards();
  if (table_.gpus > 1) out_.link01 = link(0, 1);
  if (no_peers) out_.notes.emplace_back("GPUs cannot reach each other (p2p says so): all goes by the host");
  if (hides_nvlink) {
    out_.notes.emplace_back("this is topo -mp, which does not show NVLinks: import what topo -m prints");
  }
  return std::move(out_);
}

/// A matrix names no GPU. Eighteen links are of the H100's generation.
void SmiImport::choose_kind() {
  const bool eighteen = out_.gpus[0].switch_links == 18;
  out_.kind = gpu_kind(!options_.gpu.empty() ? options_.gpu : eighteen ? "h100" : "a100");
  if (options_.gpu.empty()) out_.kind_note = "the input does not say which GPUs they are";
  for (Gpu& gpu : out_.gpus) gpu.pcie = out_.kind.pcie;
}

void SmiImport::read_nvlinks() {
  constexpr int kMostLinks = 18;  // of a GPU: more, summed up, are the same ones, seen through a switch
  bool by_switch = false;
  for (size_t a = 0; a < table_.gpus; ++a) {
    int sum = 0;
    for (size_t b = 0; b < table_.gpus; ++b) {
      if (link(a, b).rfind("NV", 0) != 0) continue;
      out_.gpus[a].nvlinks[b] = number_of(link(a, b).substr(2));
      sum += out_.gpus[a].nvlinks[b];
    }
    by_switch |= sum > kMostLinks;
  }
  for (Gpu& gpu : out_.gpus) {
    if (!by_switch) break;
    gpu.switch_links = *std::max_element(gpu.nvlinks.begin(), gpu.nvlinks.end());
    std::fill(gpu.nvlinks.begin(), gpu.nvlinks.end(), 0);
  }
}

bool SmiImport::same_socket(size_t a, size_t b) const {
  const std::string& is = link(a, b);
  if (is.rfind("NV", 0) != 0) return is != "SYS";
  // NVLink hides how near they are otherwise.
  if (out_.gpus[a].numa >= 0) return out_.gpus[a].numa == out_.gpus[b].numa;
  return table_.rows.at(table_.columns[a]).cpus == table_.rows.at(table_.columns[b]).cpus;
}

void SmiImport::group_sockets() {
  int sockets = 0;
  for (size_t a = 0; a < table_.gpus; ++a) {
    int found = -1;
    for (size_t b = 0; b < a && found < 0; ++b) found = same_socket(b, a) ? out_.gpus[b].socket : -1;
    out_.gpus[a].socket = found >= 0 ? found : sockets++;
  }
  out_.sockets = sockets;
}

void SmiImport::group_bridges() {
  for (size_t a = 0; a < table_.gpus; ++a) {
    Gpu& gpu = out_.gpus[a];
    bool near = false;
    for (size_t b = 0; b < table_.gpus; ++b) {
      near |= link(a, b) == "PIX" || link(a, b) == "PXB";
      if (b < a && link(a, b) == "PIX") gpu.bridge = out_.gpus[b].bridge;
    }
    if (!near || gpu.bridge >= 0) continue;
    gpu.bridge = static_cast<int>(out_.bridges.size());
    out_.bridges.push_back({gpu.socket, gpu.pcie});
    for (size_t b = 0; b < a; ++b) {
      const std::pair pair(out_.gpus[b].bridge, gpu.bridge);
      const auto& known = out_.bridge_links;
      if (link(a, b) == "PXB" && std::find(known.begin(), known.end(), pair) == known.end()) {
        out_.bridge_links.push_back(pair);
      }
    }
  }
}

void SmiImport::read_cards() {
  const std::vector<std::string> nearness{"PIX", "PXB", "PHB", "NODE", "SYS"};
  const auto rank = [&](size_t g, size_t c) {
    return std::find(nearness.begin(), nearness.end(), link(g, c)) - nearness.begin();
  };
  for (size_t c = table_.gpus; c < table_.columns.size(); ++c) {
    out_.nics.push_back({table_.columns[c], 0, false, static_cast<int>(out_.cards.size())});
    out_.cards.push_back({std::min(options_.nic_gbits * 1e9 / 8, out_.kind.pcie), true});
  }
  for (size_t g = 0; g < table_.gpus; ++g) {
    auto best = static_cast<std::ptrdiff_t>(nearness.size());
    for (size_t c = table_.gpus; c < table_.columns.size(); ++c) best = std::min(best, rank(g, c));
    for (size_t c = table_.gpus; c < table_.columns.size(); ++c) {
      if (rank(g, c) == best) out_.gpus[g].cards.push_back(static_cast<int>(c - table_.gpus));
    }
  }
}

/// "  NIC3: mlx5_3" of the legend.
void name_cards(const std::vector<std::string>& lines, Topology& topology) {
  for (const std::string& line : lines) {
    const std::vector<std::string> words = words_of(plain(line));
    for (Nic& nic : topology.nics) {
      if (words.size() == 2 && words[0] == nic.name + ":") nic.name = words[1];
    }
  }
}

}  // namespace

Topology import_smi_matrix(const std::string& text, const std::string& source, const ImportOptions& options) {
  const std::vector<std::string> lines = clean_lines(text);
  const std::vector<Table> tables = read_tables(lines, source);
  if (tables.empty()) {
    throw UserError(source + ": the header of the matrix (GPU0 ... CPU Affinity) is not in one line",
                    "copy the output of nvidia-smi topo -m again, without wrapping its lines");
  }
  const Table& first = tables[0];
  for (const Table& table : tables) {
    bool equal = table.columns == first.columns;
    for (size_t g = 0; equal && g < table.gpus; ++g) {
      equal = table.rows.at(table.columns[g]).links == first.rows.at(table.columns[g]).links;
    }
    if (!equal) {
      throw UserError(source + ": holds matrices of hosts that differ",
                      "import one at a time, and join the nodes");
    }
  }
  SmiImport import(first, options);
  import.hides_nvlink = text.find("topo -mp") != std::string::npos ||
                        (text.find("Legend:") != std::string::npos && text.find("NV#") == std::string::npos);
  import.no_peers = peers_refused(lines);
  Topology topology = import.run();
  topology.hosts = static_cast<int>(tables.size());
  if (topology.hosts > 1) {
    topology.notes.push_back(std::to_string(topology.hosts) + " equal matrices: taken for as many hosts");
  }
  name_cards(lines, topology);
  return topology;
}

}  // namespace ff
