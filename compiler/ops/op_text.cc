// The one-line text form of iteration spaces: printing and parsing. An axis is `:` (whole), `h` (the block
// itself), or
// `<stride>h<+-offset>+<span>`; stride 1 and offset 0 are left out, the span where it and the stride are 1
// and the offset is 0. `n:S=64/8`: a dimension of 64 that is split by 8 at most. `max[n]`: an output that is
// combined by maximum.

#include <cctype>

#include "compiler/base/check.h"
#include "compiler/ops/op_space.h"

namespace ff {
namespace {

constexpr std::string_view kRoles = "SAPC";

std::string axis_text(const AxisMap& map, const OpSpace& space) {
  if (map.dim < 0) return ":";
  const std::string& name = space.dims[static_cast<size_t>(map.dim)].name;
  std::string out = (map.stride == 1 ? "" : std::to_string(map.stride)) + name;
  if (map.offset != 0) out += (map.offset > 0 ? "+" : "") + std::to_string(map.offset);
  if (map.offset != 0 || map.span != 1 || map.stride != 1) out += "+" + std::to_string(map.span);
  return out;
}

std::string access_text(const AccessMap& map, const OpSpace& space) {
  std::string out = map.combiner == Combiner::max ? "max[" : "[";
  for (size_t i = 0; i < map.axes.size(); ++i) out += (i ? ", " : "") + axis_text(map.axes[i], space);
  out += "]";
  if (map.first_block_of >= 0) out += "@" + space.dims[static_cast<size_t>(map.first_block_of)].name;
  return out;
}

std::string list_text(const std::vector<AccessMap>& maps, const OpSpace& space) {
  std::string out;
  for (size_t i = 0; i < maps.size(); ++i) out += (i ? ", " : "") + access_text(maps[i], space);
  return out;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  OpSpace parse(std::string* type) {
    const std::string name = word();
    if (type != nullptr) *type = name;
    expect("(");
    if (!accept(")")) {
      do {
        space_.dims.push_back(dim());
      } while (accept(","));
      expect(")");
    }
    if (!accept("->")) {
      space_.inputs = accesses();
      expect("->");
    }
    if (at_ < text_.size()) space_.outputs = accesses();
    if (at_ != text_.size()) fail("something after the end");
    return std::move(space_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw UserError("op text: " + what + " at position " + std::to_string(at_) + " of '" +
                    std::string(text_) + "'");
  }

  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  bool accept(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    skip();
    return true;
  }

  void expect(std::string_view token) {
    if (!accept(token)) fail("no '" + std::string(token) + "'");
  }

  std::string word() {
    skip();
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    if (begin == at_) fail("no name");
    return std::string(text_.substr(begin, at_ - begin));
  }

  int64_t number() {
    const size_t begin = at_;
    if (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) ++at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) ++at_;
    if (at_ == begin || !std::isdigit(static_cast<unsigned char>(text_[at_ - 1]))) fail("no number");
    return std::stoll(std::string(text_.substr(begin, at_ - begin)));
  }

  bool signed_number_follows() const {
    return at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-');
  }

  IterDim dim() {
    IterDim out;
    out.name = word();
    expect(":");
    const size_t role = at_ < text_.size() ? kRoles.find(text_[at_]) : std::string_view::npos;
    if (role == std::string_view::npos) fail("no role S, A, P or C");
    out.role = static_cast<Role>(role);
    ++at_;
    expect("=");
    out.extent = number();
    out.max_degree = accept("/") ? number() : out.extent;
    skip();
    return out;
  }

  int dim_named(const std::string& name) const {
    const int dim = space_.dim_index(name);
    if (dim < 0) fail("no dimension '" + name + "'");
    return dim;
  }

  AxisMap axis() {
    if (accept(":")) return AxisMap::whole();
    AxisMap out;
    skip();
    if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) out.stride = number();
    out.dim = dim_named(word());
    if (signed_number_follows()) {
      const int64_t first = number();
      if (signed_number_follows()) {
        out.offset = first;
        out.span = number();
      } else {
        out.span = first;
      }
    }
    skip();
    return out;
  }

  std::vector<AccessMap> accesses() {
    std::vector<AccessMap> out;
    do {
      AccessMap map;
      if (accept("max")) map.combiner = Combiner::max;
      expect("[");
      if (!accept("]")) {
        do {
          map.axes.push_back(axis());
        } while (accept(","));
        expect("]");
      }
      if (accept("@")) map.first_block_of = dim_named(word());
      out.push_back(std::move(map));
    } while (accept(","));
    return out;
  }

  std::string_view text_;
  size_t at_ = 0;
  OpSpace space_;
};

}  // namespace

std::string to_text(std::string_view type, const OpSpace& space) {
  std::string out = std::string(type) + "(";
  for (size_t d = 0; d < space.dims.size(); ++d) {
    const IterDim& dim = space.dims[d];
    out += (d ? ", " : "") + dim.name + ":" + kRoles[static_cast<size_t>(dim.role)] + "=" +
           std::to_string(dim.extent);
    if (dim.max_degree != dim.extent) out += "/" + std::to_string(dim.max_degree);
  }
  out += ") " + list_text(space.inputs, space) + (space.inputs.empty() ? "" : " ") + "-> " +
         list_text(space.outputs, space);
  return out;
}

OpSpace parse_space(std::string_view text, std::string* type) { return Parser(text).parse(type); }

}  // namespace ff
