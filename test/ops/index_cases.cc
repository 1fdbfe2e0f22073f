#include "test/ops/op_cases.h"

namespace ff::test {
namespace {

constexpr int64_t kNo = 0, kYes = 1;
constexpr const char* kRest = "the indices are shorter than the data: its rest belongs to no index";
constexpr const char* kPlaces =
    "the axes that the tuples name are read whole, of which some indices name a part";

/// A case whose gradients of all floats are wanted.
void add(std::vector<OpCase>& out, const char* type, Attributes attributes, const std::vector<Input>& inputs,
         int64_t classes = 1, std::string inexact = {}) {
  OpCase c{.op = {type, std::move(attributes), inputs},
           .wanted = {},
           .classes = classes,
           .inexact = std::move(inexact)};
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (is_float(inputs[i].dtype)) c.wanted.push_back(i);
  }
  out.push_back(std::move(c));
}

void add_gathers(std::vector<OpCase>& out) {
  for (DType type : {DType::i64, DType::i32}) {
    add(out, "Gather", {{"axis", kNo}}, {{"x", {4, 3}}, {"i", {3, 2}, type}}, 4);
    add(out, "Gather", {{"axis", kYes}}, {{"x", {2, 4, 2}}, {"i", {3}, type}}, 4);
    add(out, "GatherElements", {{"axis", kYes}}, {{"x", {3, 4}}, {"i", {3, 3}, type}}, 4);
  }
  add(out, "Gather", {{"axis", int64_t{2}}}, {{"x", {2, 2, 3}}, {"i", {}, DType::i64}}, 3);
  add(out, "GatherElements", {{"axis", kNo}}, {{"x", {3, 2, 2}}, {"i", {4, 2, 2}, DType::i64}}, 3);
  add(out, "GatherElements", {{"axis", kYes}}, {{"x", {4, 3}}, {"i", {2, 2}, DType::i64}}, 3);
  add(out, "GatherND", {}, {{"x", {3, 3, 2}}, {"i", {4, 2}, DType::i64}}, 3, kPlaces);
  add(out, "GatherND", {{"batch_dims", kYes}}, {{"x", {2, 3, 2}}, {"i", {2, 3, 1}, DType::i64}}, 3, kPlaces);
}

void add_scatters(std::vector<OpCase>& out) {
  for (const char* reduction : {"add", "none"}) {
    const std::string how = reduction;
    // Without a sum, of two updates of one element one has no gradient: a single index a row.
    const int64_t n = how == "add" ? 3 : 1;
    add(out, "ScatterElements", {{"axis", kYes}, {"reduction", how}},
        {{"x", {3, 4}}, {"i", {3, n}, DType::i64}, {"u", {3, n}}}, 4);
    add(out, "ScatterElements", {{"axis", kNo}, {"reduction", how}},
        {{"x", {3, 4}}, {"i", {n, 2}, DType::i64}, {"u", {n, 2}}}, 3, kRest);
    add(out, "ScatterND", {{"reduction", how}}, {{"x", {3, 3, 2}}, {"i", {n, 2}, DType::i64}, {"u", {n, 2}}},
        3, kPlaces);
    add(out, "ScatterND", {{"reduction", how}}, {{"x", {4, 3}}, {"i", {n, 1}, DType::i64}, {"u", {n, 3}}}, 4,
        kPlaces);
  }
}

void add_rows(std::vector<OpCase>& out) {
  for (int64_t exclusive : {0, 1}) {
    for (int64_t reverse : {0, 1})
      add(out, "CumSum", {{"axis", kYes}, {"exclusive", exclusive}, {"reverse", reverse}}, {{"x", {3, 4, 2}}},
          1, exclusive != 0 ? "the last element counts for none of the sums" : "");
  }
  for (int64_t largest : {0, 1})
    add(out, "TopK", {{"axis", kYes}, {"k", int64_t{2}}, {"largest", largest}}, {{"x", {3, 4, 2}}}, 4);
  for (const char* type : {"ArgMax", "ArgMin"}) {
    for (int64_t keep : {0, 1})
      out.push_back({.op = {type, {{"axis", kYes}, {"keepdims", keep}}, {{"x", {3, 4, 2}}}}, .wanted = {}});
  }
  out.push_back({.op = {"OneHot",
                        {{"axis", kYes},
                         {"depth", int64_t{3}},
                         {"off", -1.0},
                         {"on", 2.0},
                         {"dtype", static_cast<int64_t>(DType::f64)}},
                        {{"i", {4, 2}, DType::i64}}},
                 .wanted = {},
                 .classes = 4});  // one is no class
}

}  // namespace

void add_indexing(std::vector<OpCase>& out) {
  add_gathers(out);
  add_scatters(out);
  add_rows(out);
  for (const auto& [from, to] :
       {std::pair{Shape{4, 1}, Ints{3, 4, 2}}, {Shape{1, 4}, Ints{3, 4}}, {Shape{}, Ints{4}}})
    add(out, "Expand", {{"shape", to}}, {{"x", from}});
  for (int64_t upper : {0, 1}) {
    for (int64_t k : {-2, 0, 1})
      add(out, "Trilu", {{"upper", upper}, {"k", k}}, {{"x", {2, 4, 5}}}, 1,
          "elements of the other triangle are not read");
  }
}

}  // namespace ff::test
