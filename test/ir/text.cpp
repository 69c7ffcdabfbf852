// SPDX-License-Identifier: Apache-2.0
// print and parse: the form itself, parse(print(g)) == g over random graphs, and texts that are not graphs.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "ir/aten_operators.h"
#include "ir/base64.h"
#include "ir/graph.h"
#include "ir/tensor.h"

namespace tosaic {
namespace {

// Equal up to the numbering of values: names stand for ids.
std::string difference(const Graph& a, const Graph& b);

std::string name_at(const Graph& g, ValueId v) { return v == no_value ? "<none>" : g[v].name; }

std::string difference(const Graph& a, const Graph& b, const Node& x, const Node& y) {
  if (x.op != y.op) return "operator " + x.op.text() + " / " + y.op.text();
  if (!(x.attrs == y.attrs)) return "attributes of " + x.op.text();
  auto names = [](const Graph& g, const std::vector<ValueId>& ids) {
    std::vector<std::string> out;
    for (ValueId v : ids) out.push_back(name_at(g, v));
    return out;
  };
  if (names(a, x.inputs) != names(b, y.inputs) || names(a, x.outputs) != names(b, y.outputs))
    return "operands of " + x.op.text();
  if (!x.loc != !y.loc) return "location of " + x.op.text();
  if (x.loc) {
    const Loc &l = *x.loc, &m = *y.loc;
    if (l.place.file != m.place.file || l.place.line != m.place.line || l.place.text != m.place.text ||
        l.module_path != m.module_path || l.module_type != m.module_type || l.torch_function != m.torch_function ||
        l.op != m.op || l.name != m.name)
      return "location of " + x.op.text();
  }
  if (x.regions.size() != y.regions.size()) return "regions of " + x.op.text();
  for (std::size_t i = 0; i < x.regions.size(); ++i)
    if (auto d = difference(x.regions[i], y.regions[i]); !d.empty()) return d;
  return "";
}

std::string difference(const Graph& a, const Graph& b) {
  if (a.name != b.name) return "graph name";
  if (a.values.size() != b.values.size()) return "number of values";
  auto by_name = [](const Graph& g) {
    std::vector<const Value*> v;
    for (const Value& value : g.values) v.push_back(&value);
    std::sort(v.begin(), v.end(), [](auto* x, auto* y) { return x->name < y->name; });
    return v;
  };
  auto va = by_name(a), vb = by_name(b);
  for (std::size_t i = 0; i < va.size(); ++i)
    if (va[i]->name != vb[i]->name || !(va[i]->type == vb[i]->type) || va[i]->is_constant() != vb[i]->is_constant() ||
        !(va[i]->constant == vb[i]->constant) || va[i]->size != vb[i]->size)
      return "value " + va[i]->name + ": " + to_string(va[i]->type) + " / " + to_string(vb[i]->type);
  auto names = [](const Graph& g, const std::vector<ValueId>& ids) {
    std::vector<std::string> out;
    for (ValueId v : ids) out.push_back(name_at(g, v));
    return out;
  };
  if (names(a, a.inputs) != names(b, b.inputs) || names(a, a.outputs) != names(b, b.outputs))
    return "inputs or outputs";
  if (a.states.size() != b.states.size()) return "states";
  for (std::size_t i = 0; i < a.states.size(); ++i)
    if (a.states[i].name != b.states[i].name || name_at(a, a.states[i].input) != name_at(b, b.states[i].input) ||
        name_at(a, a.states[i].output) != name_at(b, b.states[i].output) ||
        !(a.states[i].initial == b.states[i].initial))
      return "states";
  if (a.nodes.size() != b.nodes.size()) return "number of nodes";
  for (std::size_t i = 0; i < a.nodes.size(); ++i)
    if (auto d = difference(a, b, a.nodes[i], b.nodes[i]); !d.empty()) return d;
  return "";
}

class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : random_(seed) {}

  Graph make(int depth = 0) {
    Graph g;
    g.name = text();
    next_ = 0;
    for (int i = below(4); i-- > 0;) {
      g.inputs.push_back(g.add_value(name(), type()));
      if (!below(4)) g.values.back().size = dim();
    }
    for (int i = below(3); i-- > 0;) {
      State s;
      s.name = "state" + std::to_string(i) + text();
      s.input = s.output = g.add_value(name(), type());
      const TensorType& t = g[s.input].type;
      if (t.shape.is_static() && below(2)) s.initial = Bytes::of(std::vector<std::byte>(t.storage_bytes()));
      g.states.push_back(s);
    }
    for (int i = below(5); i-- > 0;) constant(g);
    for (int i = below(6); i-- > 0;) {
      Node n;
      n.op = Operator(below(5) ? "aten.op" + std::to_string(below(9)) : text() + "x");
      for (int k = below(4); k-- > 0;) n.inputs.push_back(below(5) && !g.values.empty() ? any(g) : no_value);
      for (int k = below(5); k-- > 0;) n.attrs.set(below(3) ? "a" + std::to_string(k) : text(), attr());
      if (below(2)) n.loc = loc();
      if (depth < 2 && below(4) == 0) {
        const int here = next_;
        for (int k = 1 + below(2); k-- > 0;) n.regions.push_back(make(depth + 1));
        next_ = here + 1000;
      }
      for (int k = below(4); k-- > 0;) n.outputs.push_back(below(6) ? g.add_value(name(), type()) : no_value);
      g.nodes.push_back(std::move(n));
    }
    if (!g.values.empty())
      for (int i = below(3); i-- > 0;) g.outputs.push_back(any(g));
    return g;
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  ValueId any(const Graph& g) { return static_cast<ValueId>(below(static_cast<int>(g.values.size()))); }
  std::string text() {
    static const char* texts[] = {"",   "main",      "a b",   "\"q\\",    "line\nbreak\t", "none", "ümlaut", "\x01\x7f",
                                  "//", "%x: f32 =", "state", "constant", "1.5",           "in",   ")"};
    return texts[below(15)];
  }
  std::string name() { return (below(3) ? "v" : text()) + std::to_string(next_++); }
  TensorType type() {
    TensorType t;
    t.dtype = static_cast<DType>(below(15));
    std::vector<std::int64_t> dims;
    for (int i = below(5); i-- > 0;) dims.push_back(below(5));
    t.shape = Shape(dims);
    for (int i = 0; i < t.rank(); ++i)
      if (below(6) == 0) t.shape.set(i, dim());
    if (below(3) == 0) {
      Scales s;
      if (t.rank() > 0 && below(2)) {
        s.axis = below(t.rank());
        if (!t.shape[s.axis].is_number()) return t;
        const auto count = static_cast<std::size_t>(t.shape.size(s.axis));
        if (count == 0) return t;
        s.scale.assign(count, 1.0);
        s.zero_point.assign(count, 0);
      }
      for (double& v : s.scale) v = std::ldexp(1.0 + below(1000) / 999.0, below(60) - 30);
      for (auto& v : s.zero_point) v = below(256) - 128;
      if (below(3) == 0) s.lowest = -127, s.highest = 127;
      t.scales = s;
    }
    return t;
  }
  Dim dim() {
    const Dim s = Symbol{below(2) ? "s77" : "(s0 + 1) in \"x\"",
                         {below(3), below(2) ? std::optional<std::int64_t>(9) : std::nullopt}};
    switch (below(4)) {
      case 0: return s;
      case 1: return 2 * s + below(5);
      case 2: return floor_div(s + 1, 2) * Symbol{"s1", {0, 4}};
      default: return max(s, mod(Symbol{"u0", {0, 7}}, 3));
    }
  }
  void constant(Graph& g) {
    TensorType t = type();
    if (!t.shape.is_static()) return;
    std::vector<std::byte> data(t.storage_bytes());
    const bool small = below(2);
    for (auto& b : data) b = static_cast<std::byte>(small ? below(2) : below(256));
    std::string n = name();
    g.add_value(n, t, Bytes::of(std::move(data)));
  }
  double real() {
    static const double reals[] = {0.0,
                                   1.0,
                                   -2.5,
                                   1e300,
                                   4.9e-324,
                                   0.1,
                                   1e21,
                                   std::numeric_limits<double>::infinity(),
                                   -std::numeric_limits<double>::infinity(),
                                   123456789.0};
    return reals[below(10)];
  }
  Attr attr() {
    switch (below(12)) {
      case 0: return {};
      case 1: return below(2) == 1;
      case 2: return std::numeric_limits<std::int64_t>::min() + below(2);
      case 3: return real();
      case 4: return text();
      case 5: return below(2) ? std::vector<std::int64_t>{} : std::vector<std::int64_t>{1, -2, below(9)};
      case 6: return below(2) ? std::vector<double>{} : std::vector<double>{real(), real()};
      case 7: return below(2) ? std::vector<std::string>{} : std::vector<std::string>{text(), text()};
      case 8: return static_cast<DType>(below(15));
      case 9: return below(2) ? SymbolicArgument{text()} : SymbolicArgument{text(), dim()};
      case 10: return std::vector<SymbolicArgument>{{"", Dim(below(5))}, {text() + "y", dim()}, {"z"}};
      default: return std::int64_t{below(100)};
    }
  }
  LocRef loc() {
    Loc l;
    if (below(2)) l.place = {"model.py", 6, text()};
    if (below(2)) l.module_path = text(), l.module_type = "torch.nn.Conv2d";
    if (below(2)) l.torch_function = "conv2d_1";
    if (below(2)) l.op = "aten.conv2d.default";
    if (below(2)) l.name = text();
    return std::make_shared<const Loc>(l);
  }
  std::mt19937 random_;
  int next_ = 0;
};

TEST(Text, EveryGraphReadsBackAsItself) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    Graph g = RandomGraph(seed).make();
    ASSERT_TRUE(verify(g).ok()) << seed << ": " << verify(g).error().message;
    std::string all = print(g, ConstantText::all, true);
    auto back = parse(all);
    ASSERT_TRUE(back.ok()) << seed << ": " << render(back.error(), false) << "\n" << all;
    ASSERT_EQ(difference(g, *back), "") << seed << "\n" << all;
    ASSERT_EQ(print(*back, ConstantText::all, true), all);
  }
}

TEST(Text, TheFormItself) {
  const std::string text =
      R"TEXT(graph @main(%x: 1x3x8x8xf32, %y: 4xi8<0.02:3>, %"a b": (s77 in 1..64)x3xf32, %n: i64(s77 in 1..64), %c: (2*s77 + 1 for s77 in 1..64)xf32) -> (%out) {
  %buf: 2xf32 = state "k"
  %cache: 2xf32 = state "l" = [0.0, 1.0]
  %w: 3xf32 = constant [1.0, -0.5, inf]
  %0: 1x8x8x8xf32 = tosa.conv2d(%x, %w, none) {pad=[0, 0], round=true, name="s", dtype=i8, alpha=1.0, sym=$s77, size=$mul(2*s77 for s77 in 1..64), sizes=[$mul(2*s77 for s77 in 1..64), 3], nothing=none, f=[1.0, nan], s=["a"], e=[floats]} loc("model.py":6 "y = self.conv(x)" in "conv" "torch.nn.Conv2d" fn "conv2d_1" from "aten.conv2d.default" as "conv2d")
  %a: f32, none = aten.split.Tensor(%"a b")
  aten._assert.default(%a)
  %out: f32 = tosa.cond_if(%a) {then_graph="then"} (
    graph @then(%p: f32) -> (%p) {
    }
    graph @else() -> (%q) {
      %q: f32 = constant [2.0]
    }
  )
  state "k" %buf -> %buf
  state "l" %cache -> %cache
}
)TEXT";
  auto g = parse(text);
  ASSERT_TRUE(g.ok()) << render(g.error(), false);
  EXPECT_EQ(print(*g, ConstantText::all, true), text);
  EXPECT_EQ(g->nodes[3].regions[1].name, "else");
  EXPECT_EQ((*g)[g->nodes[0].inputs[1]].constant.as<float>()[1], -0.5f);
  EXPECT_EQ(g->nodes[0].inputs[2], no_value);
}

TEST(Text, CommentsAreSkipped) { EXPECT_TRUE(parse("// a graph\ngraph @g() -> () { // nothing\n}\n//").ok()); }

TEST(Text, BriefConstantsShowSizeAndHash) {
  Graph g;
  std::vector<std::int8_t> data(100, 3);
  g.add_value("w", {DType::i8, Shape{100}, {}}, Bytes::of(data));
  std::string brief = print(g);
  EXPECT_NE(brief.find("%w: 100xi8 = constant <100 bytes, xxh3 "), std::string::npos) << brief;
  auto back = parse(brief);
  ASSERT_FALSE(back.ok());
  EXPECT_EQ(back.error().code, "ir.brief-constant");
}

TEST(Text, NanPayloadsSurvive) {
  Graph g;
  g.add_value("w", {DType::f32, Shape{1}, {}}, Bytes::of(std::vector<std::uint32_t>{0x7fc00123}));
  auto back = parse(print(g, ConstantText::all));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->values[0].constant.as<std::uint32_t>()[0], 0x7fc00123u);
}

TEST(Text, EmptyConstantsAreConstants) {
  auto g = parse("graph @g() -> () { %s: 0xshape = constant [] }");
  ASSERT_TRUE(g.ok());
  EXPECT_TRUE(g->values[0].is_constant());
}

TEST(Text, Base64) {
  for (std::size_t n = 0; n < 70; ++n) {
    std::vector<std::byte> data(n);
    for (std::size_t i = 0; i < n; ++i) data[i] = static_cast<std::byte>(i * 37 + n);
    auto back = base64_decode(base64_encode(data.data(), n));
    ASSERT_TRUE(back);
    EXPECT_EQ(*back, data);
  }
  for (const char* bad : {"A", "AAA", "A=AA", "====", "AA*A", "AB==", "AAB=", "AAA=AAAA"})
    EXPECT_FALSE(base64_decode(bad)) << bad;
  EXPECT_EQ(base64_encode(reinterpret_cast<const std::byte*>("tosa"), 4), "dG9zYQ==");
}

struct BadText {
  const char* name;
  std::string body;
  const char* code;
  std::int64_t line;
  const char* message;
};
class Bad : public testing::TestWithParam<BadText> {};
TEST_P(Bad, IsRefusedWithPlaceAndExpectation) {
  const BadText& t = GetParam();
  auto g = parse("graph @g(%x: 2xf32) -> () {\n" + t.body, "g.txt");
  ASSERT_FALSE(g.ok());
  EXPECT_EQ(g.error().code, t.code) << g.error().message;
  EXPECT_EQ(g.error().place.file, "g.txt");
  EXPECT_EQ(g.error().place.line, t.line);
  EXPECT_NE(g.error().message.find(t.message), std::string::npos) << g.error().message;
}
std::string nested(int depth) {
  std::string open, close;
  for (int i = 0; i < depth; ++i) {
    open += "a.b() ( graph @g() -> () {";
    close += "})";
  }
  return open + close + "}";
}
INSTANTIATE_TEST_SUITE_P(
    Texts, Bad,
    testing::Values(BadText{"end", "  %y: f32 = a.b(%x)\n", "ir.text", 3, "found the end"},
                    BadText{"behind", "}\nx", "ir.text", 3, "expected the end of the text"},
                    BadText{"undefined", "\n a.b(%nope)\n}", "ir.undefined-value", 3, "'nope'"},
                    BadText{"selfuse", "%y: f32 = a.b(%y)\n}", "ir.undefined-value", 2, "'y'"},
                    BadText{"duplicate", "%x: f32 = a.b(%x)\n}", "ir.duplicate-name", 2, "'x'"},
                    BadText{"dtype", "%y: 2xf33 = a.b(%x)\n}", "ir.text", 2, "expected a dtype"},
                    BadText{"dimx", "%y: 2*f32 = a.b(%x)\n}", "ir.text", 2, "'x' after a dimension"},
                    BadText{"negative", "%y: -2xf32 = a.b(%x)\n}", "ir.text", 2, "expected a dtype"},
                    BadText{"huge", "%y: 99999999999999999999xf32 = a.b(%x)\n}", "ir.text", 2, "64 bits"},
                    BadText{"overflow", "%y: 4000000000x4000000000xf32 = a.b(%x)\n}", "ir.type", 2, "overflows"},
                    BadText{"overflowzero", "%y: 4000000000x4000000000x0xf32 = a.b(%x)\n}", "ir.type", 2, "overflows"},
                    BadText{"constant", "%y: 2xf32 = constant [1.0]\n}", "ir.constant-size", 2, "needs 2 elements"},
                    BadText{"constantbig", "%y: 1000000000000xf32 = constant \"\"\n}", "ir.constant-size", 2,
                            "the text holds 0"},
                    BadText{"base64", "%y: 2xi8 = constant \"!!!!\"\n}", "ir.text", 2, "base64"},
                    BadText{"range", "%y: 2xi8 = constant [1, 128]\n}", "ir.text", 2, "128 is no i8"},
                    BadText{"scales", "%y: 2xi8<1:0,1:0> = a.b(%x)\n}", "ir.type", 2, "2 scales where 1"},
                    BadText{"axis", "%y: 2xi8<1:0 axis 1> = a.b(%x)\n}", "ir.type", 2, "axis 1"},
                    BadText{"scale", "%y: 2xi8<nan:0> = a.b(%x)\n}", "ir.type", 2, "not a positive number"},
                    BadText{"bounds", "%y: (s in 3..2)xi8 = a.b(%x)\n}", "ir.type", 2, "3..2"},
                    BadText{"symbol", "%y: (s)xi8 = a.b(%x)\n}", "ir.type", 2, "a range of 's'"},
                    BadText{"string", "a.b() {k=\"open}\n}", "ir.text", 2, "closing"},
                    BadText{"escape", "a.b() {k=\"\\q\"}\n}", "ir.text", 2, "backslash"},
                    BadText{"mixed", "a.b() {k=[1, 2.0]}\n}", "ir.text", 2, "integers only"},
                    BadText{"attrtwice", "a.b() {k=1, k=2}\n}", "ir.duplicate-name", 2, "'k'"},
                    BadText{"int", "a.b() {k=9223372036854775808}\n}", "ir.text", 2, "64 bits"},
                    BadText{"statetwice", "%z: f32 = state \"s\"\nstate \"s\" %z -> %z\nstate \"s\" %z -> %z\n}",
                            "ir.duplicate-name", 0, "'s'"},
                    BadText{"statedangling", "%y: f32 = state \"s\"\n}", "ir.undefined-value", 0, "'y'"},
                    BadText{"statetype", "%y: f32 = a.b()\n%z: 2xf32 = state \"s\"\nstate \"s\" %z -> %y\n}",
                            "ir.state", 0, "is read as 2xf32"},
                    BadText{"nesting", nested(100), "ir.nesting", 2, "64 deep"}),
    [](const auto& i) { return i.param.name; });

// Not a fuzzer, a seeded taste of one: no crash, and whatever is accepted prints and reads back.
TEST(Text, DamagedTextsAreRefusedOrRead) {
  int accepted = 0;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    std::mt19937 random(seed);
    std::string text = print(RandomGraph(seed % 50).make(), ConstantText::all, true);
    for (unsigned k = 1 + random() % 4; k-- > 0;) {
      std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text.erase(at, 1 + random() % 8); break;
        case 1: text[at] = static_cast<char>(random()); break;
        case 2: text.insert(at, text.substr(random() % text.size(), random() % 30)); break;
        default: text.insert(at, 1, "0123456789(){}[]<>%\"x,:="[random() % 24]);
      }
      if (text.empty()) text = "g";
    }
    auto g = parse(text);
    if (!g.ok()) continue;
    ++accepted;
    auto again = parse(print(*g, ConstantText::all, true));
    ASSERT_TRUE(again.ok()) << text;
  }
  EXPECT_GT(accepted, 50);
}

}  // namespace
}  // namespace tosaic
