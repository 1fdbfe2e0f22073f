// Translation of nodes that are products of matrices in other words: Einsum.
//
//   Einsum "bhid,bhjd->bhij" = MatMul of [b, h, i, d] and [b, h, d, j]: letters of both operands and the
//   result are batch dimensions, letters of both alone are summed over, the others are rows and columns.
#include <cmath>
#include <set>

#include "compiler/onnx/fold.h"
#include "compiler/onnx/rules.h"

namespace ff::onnx_import {
namespace {

/// A value whose axes have letters.
struct Lettered {
  TensorId tensor;
  std::string letters;
};

/// Where dots stand for axes, from the last to the first.
constexpr std::string_view kDots = "ZYXWVUTS";

std::string in_letters(std::string term, size_t rank) {
  const size_t at = term.find("...");
  if (at == std::string::npos) return term;
  const size_t named = term.size() - 3;
  if (named > rank || rank - named > kDots.size())
    throw UserError("term '" + term + "' does not fit an operand of rank " + std::to_string(rank));
  std::string dots(kDots.substr(0, rank - named));
  return term.replace(at, 3, std::string(dots.rbegin(), dots.rend()));
}

class Einsum {
 public:
  explicit Einsum(Node& node) : node_(node) {
    std::string equation = node.string("equation", "");
    std::erase(equation, ' ');
    const size_t arrow = equation.find("->");
    std::string terms = equation.substr(0, arrow);
    terms += ',';
    for (int i = 0; !terms.empty(); ++i) {
      const size_t end = terms.find(',');
      if (i >= node.input_count())
        throw UserError("equation '" + equation + "' has more terms than operands");
      add_operand(i, terms.substr(0, end));
      terms.erase(0, end + 1);
    }
    if (static_cast<int>(operands_.size()) != node.input_count())
      throw UserError("equation '" + equation + "' has fewer terms than operands");
    if (arrow == std::string::npos) {
      imply_result();
    } else {
      result_ = in_letters(equation.substr(arrow + 2), rank_of_dots(equation.substr(arrow + 2)));
    }
  }

  void emit() {
    Lettered x = operands_[0];
    for (size_t i = 1; i < operands_.size(); ++i) {
      std::set<char> needed(result_.begin(), result_.end());
      for (size_t later = i + 1; later < operands_.size(); ++later)
        needed.insert(operands_[later].letters.begin(), operands_[later].letters.end());
      x = product(x, operands_[i], needed);
    }
    x = reduced(x, {result_.begin(), result_.end()});
    node_.result(node_.emit("Identity", {}, {arranged(x, result_).tensor}));
  }

 private:
  std::string part() { return "step" + std::to_string(parts_++); }
  Shape shape(const Lettered& x) const { return node_.graph().tensor(x.tensor).shape; }
  int64_t extent(char letter) const { return extents_.at(letter); }
  int64_t extent(const std::string& letters) const {
    int64_t n = 1;
    for (char c : letters) n *= extent(c);
    return n;
  }
  Shape extents(const std::string& letters) const {
    Shape out;
    for (char c : letters) out.push_back(extent(c));
    return out;
  }

  size_t rank_of_dots(const std::string& term) const {
    return term.find("...") == std::string::npos ? 0 : term.size() - 3 + dots_;
  }

  void add_operand(int i, const std::string& term) {
    const Shape s = node_.shape(i);
    Lettered x{node_.operand(i, Use::weight), in_letters(term, s.size())};
    if (x.letters.size() != s.size())
      throw UserError("term '" + term + "' names " + std::to_string(x.letters.size()) +
                      " axes of an operand of " + to_string(s));
    if (term.find("...") != std::string::npos) dots_ = std::max(dots_, s.size() - (term.size() - 3));
    for (size_t d = 0; d < s.size(); ++d) {
      const auto [it, added] = extents_.emplace(x.letters[d], s[d]);
      if (added || it->second == s[d]) continue;
      if (it->second != 1 && s[d] != 1)
        throw UserError("axis '" + std::string(1, x.letters[d]) + "' has " + std::to_string(it->second) +
                        " and " + std::to_string(s[d]) + " elements");
      throw Unsupported("axes that are broadcast");
    }
    operands_.push_back(diagonals(x));
  }

  /// Axes of one letter are their diagonal: the two as one axis, of which every n + 1st element is taken.
  Lettered diagonals(Lettered x) {
    for (size_t a = 0; a < x.letters.size(); ++a) {
      const size_t b = x.letters.find(x.letters[a], a + 1);
      if (b == std::string::npos) continue;
      std::string others = x.letters;
      others.erase(b, 1).erase(a, 1);
      Ints perm;
      for (size_t d = 0; d < x.letters.size(); ++d) {
        if (d != a && d != b) perm.push_back(static_cast<int64_t>(d));
      }
      perm.insert(perm.end(), {static_cast<int64_t>(a), static_cast<int64_t>(b)});
      const int64_t n = extent(x.letters[a]);
      Shape flat = extents(others);
      flat.push_back(n * n);
      TensorId y = reshaped(node_.emit("Transpose", {{"perm", perm}}, {x.tensor}, part()), flat);
      Shape steps(flat.size(), 1);
      steps.back() = n + 1;
      y = node_.emit("Slice", {{"starts", Shape(flat.size(), 0)}, {"ends", flat}, {"steps", steps}}, {y},
                     part());
      return diagonals({y, others + x.letters[a]});
    }
    return x;
  }

  /// Without an arrow: the dots, then the letters that stand once, in the alphabet's order.
  void imply_result() {
    std::map<char, int> count;
    for (const Lettered& x : operands_) {
      for (char c : x.letters) ++count[c];
    }
    std::string dots(kDots.substr(0, dots_));
    result_.assign(dots.rbegin(), dots.rend());
    for (const auto& [letter, times] : count) {
      if (times == 1 && result_.find(letter) == std::string::npos) result_ += letter;
    }
  }

  /// Summed over the letters that nobody needs.
  Lettered reduced(const Lettered& x, const std::set<char>& needed) {
    Ints axes;
    std::string kept;
    for (size_t d = 0; d < x.letters.size(); ++d) {
      if (needed.contains(x.letters[d])) {
        kept += x.letters[d];
      } else {
        axes.push_back(static_cast<int64_t>(d));
      }
    }
    if (axes.empty()) return x;
    const TensorId sum = node_.emit("ReduceSum", {{"axes", axes}, {"scale", 1.0}}, {x.tensor}, part());
    return {reshaped(sum, extents(kept)), kept};
  }

  TensorId reshaped(TensorId x, const Shape& to) {
    return node_.graph().tensor(x).shape == to ? x : node_.emit("Reshape", {{"shape", to}}, {x}, part());
  }

  Lettered arranged(const Lettered& x, const std::string& order) {
    if (x.letters == order) return x;
    Ints perm;
    for (char c : order) {
      const size_t at = x.letters.find(c);
      if (at == std::string::npos) throw UserError("result axis '" + std::string(1, c) + "' is in no term");
      perm.push_back(static_cast<int64_t>(at));
    }
    return {node_.emit("Transpose", {{"perm", perm}}, {x.tensor}, part()), order};
  }

  Lettered product(Lettered a, Lettered b, const std::set<char>& needed) {
    std::set<char> of_a(a.letters.begin(), a.letters.end()), of_b(b.letters.begin(), b.letters.end());
    std::set<char> for_a = needed, for_b = needed;
    for_a.insert(of_b.begin(), of_b.end());
    for_b.insert(of_a.begin(), of_a.end());
    a = reduced(a, for_a);
    b = reduced(b, for_b);
    std::string batch, summed, rows, columns;
    for (char c : a.letters) {
      if (b.letters.find(c) == std::string::npos) {
        rows += c;
      } else {
        (needed.contains(c) ? batch : summed) += c;
      }
    }
    for (char c : b.letters) {
      if (a.letters.find(c) == std::string::npos) columns += c;
    }
    Shape left = extents(batch), right = left;
    left.insert(left.end(), {extent(rows), extent(summed)});
    right.insert(right.end(), {extent(summed), extent(columns)});
    const TensorId x = reshaped(arranged(a, batch + rows + summed).tensor, left);
    const TensorId y = reshaped(arranged(b, batch + summed + columns).tensor, right);
    const TensorId z =
        node_.emit("MatMul", {{"trans_a", int64_t{0}}, {"trans_b", int64_t{0}}}, {x, y, TensorId()}, part());
    const std::string letters = batch + rows + columns;
    return {reshaped(z, extents(letters)), letters};
  }

  Node& node_;
  std::vector<Lettered> operands_;
  std::map<char, int64_t> extents_;
  std::string result_;
  size_t dots_ = 0;
  int parts_ = 0;
};

}  // namespace

void import_einsum(Node& node) { Einsum(node).emit(); }

}  // namespace ff::onnx_import
