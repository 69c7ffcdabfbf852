// SPDX-License-Identifier: Apache-2.0
// .tosa files: read(write(g)) == g, the file's own form, and files that are not what they seem.
#include <gtest/gtest.h>
#include <algorithm>
#include <map>
#include <random>

#include "formats/sample_graph.h"
#include "formats/tosa/attributes.h"
#include "formats/tosa/elements.h"
#include "formats/tosa/location.h"
#include "formats/tosa/tosa_file.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic {
namespace {

// With bodies.
const std::string varied =
    "graph @main(%x: 1x8x8x4xf32, %q: 4x6xi8, %p: bool) -> (%tall, %narrow, %flag, %picked) {\n" + sample_nodes +
    R"(  %picked: 64x2xf32 = tosa.cond_if(%p, %tall) (
    graph @then(%a: 64x2xf32) -> (%r) {
      %one: 1x1xf32 = constant [1.0]
      %r: 64x2xf32 = tosa.add(%a, %one)
    }
    graph @else(%a: 64x2xf32) -> (%r) {
      %r: 64x2xf32 = tosa.reverse(%a) {axis=0}
    }
  )
})";

Bytes written(const Graph& graph) {
  auto file = tosa_file::write(graph);
  EXPECT_TRUE(file.ok()) << (file.ok() ? "" : render(file.error(), false));
  return file.ok() ? file->joined() : Bytes();
}

std::string code_of_read(const Bytes& file) {
  auto graph = tosa_file::read(file, "test.tosa");
  return graph.ok() ? "" : graph.error().code;
}

TEST(TosaFile, ReadsWhatItWrote) {
  const Graph graph = graph_of(varied);
  auto again = tosa_file::read(written(graph), "test.tosa");
  ASSERT_TRUE(again.ok()) << render(again.error(), false);
  EXPECT_EQ(print(graph, ConstantText::all, true), print(*again, ConstantText::all, true));
}

TEST(TosaFile, BodiesOfOneNameStayApart) {
  Graph graph = graph_of(varied);
  graph.nodes.back().regions[1].name = "then";
  auto again = tosa_file::read(written(graph), "test.tosa");
  ASSERT_TRUE(again.ok()) << render(again.error(), false);
  graph.nodes.back().regions[1].name = "then_1";
  EXPECT_EQ(print(graph, ConstantText::all), print(*again, ConstantText::all));
}

TEST(TosaFile, Variables) {
  const Graph graph = graph_of(R"(graph @main(%x: 2xf32, %p: bool) -> (%y, %z) {
    %first: 2xf32 = constant [1.0, 2.0]
    tosa.variable(%first) {name="state", var_shape=[2], type=f32}
    %old: 2xf32 = tosa.variable_read() {name="state"}
    %y: 2xf32 = tosa.add(%old, %x)
    tosa.variable_write(%y) {name="state"}
    %z: 2xf32 = tosa.cond_if(%p, %x) (
      graph @then(%a: 2xf32) -> (%r) {
        %r: 2xf32 = tosa.variable_read() {name="state"}
      }
      graph @else(%a: 2xf32) -> (%r) {
        %r: 2xf32 = tosa.abs(%a)
      }
    )
  })");
  auto again = tosa_file::read(written(graph), "test.tosa");
  ASSERT_TRUE(again.ok()) << render(again.error(), false);
  Graph expected = graph;  // the initial value is stored with the variable, under its name
  for (Value& v : expected.values)
    if (v.name == "first") v.name = "state";
  EXPECT_EQ(print(expected, ConstantText::all), print(*again, ConstantText::all));
  Graph undeclared = graph;
  undeclared.nodes.erase(undeclared.nodes.begin());
  auto file = tosa_file::write(undeclared);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, "tosa-file.variable");
}

// What a flatbuffer's 2 GB do not hold lies next to it; here that are 8 bytes.
TEST(TosaFile, ConstantsOutside) {
  const Graph graph = graph_of(varied);
  const auto parts = tosa_file::write_parts(graph, 8);
  ASSERT_TRUE(parts.ok()) << render(parts.error(), false);
  EXPECT_GE(parts->outside.size(), 2u);
  const Bytes file = parts->file.joined();
  std::map<std::string, Bytes> external_data(parts->outside.begin(), parts->outside.end());
  const auto find = [&](const std::string& name) {
    return external_data.contains(name) ? external_data[name] : Bytes();
  };
  const auto again = tosa_file::read(file, "test.tosa", find);
  ASSERT_TRUE(again.ok()) << render(again.error(), false);
  EXPECT_EQ(print(graph, ConstantText::all, true), print(*again, ConstantText::all, true));
  EXPECT_EQ(code_of_read(file), "tosa-file.constant-outside");
  external_data.begin()->second = Bytes::copy("short", 5);
  const auto other = tosa_file::read(file, "test.tosa", find);
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, "tosa-file.constant-size");
  EXPECT_TRUE(tosa_file::fits(graph));
}

TEST(TosaFile, SameGraphSameBytes) {
  const Graph graph = graph_of(varied);
  EXPECT_TRUE(written(graph) == written(graph));
}

TEST(TosaFile, EveryDtypeOfConstants) {
  for (DType type : {DType::boolean, DType::i4, DType::i8, DType::i16, DType::i32, DType::i48, DType::f16, DType::bf16,
                     DType::f32, DType::f8e4m3, DType::f8e5m2, DType::shape}) {
    Graph graph;
    const std::vector<std::int64_t> numbers = type == DType::boolean ? std::vector<std::int64_t>{1, 0, 1}
                                              : type == DType::i48
                                                  ? std::vector<std::int64_t>{-(1ll << 47), (1ll << 47) - 1, -1}
                                                  : std::vector<std::int64_t>{-7, 3, 5};
    Bytes data =
        is_float(type) ? constant_bytes(type, std::vector<double>{-0.5, 2, 1.5}) : constant_bytes(type, numbers);
    ValueId c = graph.add_value("c", TensorType{type, {3}, {}}, data);
    ValueId y = graph.add_value("y", TensorType{type, {3}, {}});
    graph.nodes.push_back({tosa::op::identity, {c}, {}, {y}, nullptr, {}});
    graph.outputs = {y};
    auto again = tosa_file::read(written(graph), "test.tosa");
    ASSERT_TRUE(again.ok()) << name_of(type) << render(again.error(), false);
    EXPECT_EQ(print(graph, ConstantText::all), print(*again, ConstantText::all));
  }
}

TEST(TosaFile, ElementsAreStoredAsTosaStoresThem) {
  const Bytes nibbles = tosa_file::pack(DType::i4, constant_bytes(DType::i4, std::vector<std::int64_t>{1, -1, 7}));
  ASSERT_EQ(nibbles.size(), 2u);
  EXPECT_EQ(nibbles.as<std::uint8_t>()[0], 0xf1);
  EXPECT_EQ(nibbles.as<std::uint8_t>()[1], 0x07);
  EXPECT_EQ(tosa_file::pack(DType::i48, constant_bytes(DType::i48, std::vector<std::int64_t>{-2, 1})).size(), 12u);
}

TEST(TosaFile, ConstantsAreNotCopiedFromTheFile) {
  const Graph graph = graph_of(varied);
  const Bytes file = written(graph);
  auto again = tosa_file::read(file, "test.tosa");
  ASSERT_TRUE(again.ok());
  const auto w = std::find_if(again->values.begin(), again->values.end(), [](const Value& v) { return v.name == "w"; });
  ASSERT_NE(w, again->values.end());
  EXPECT_GE(w->constant.data(), file.data());
  EXPECT_LT(w->constant.data(), file.data() + file.size());
}

TEST(TosaFile, ScalarShapeOfRankZero) {
  Graph graph;
  ValueId x = graph.add_value("x", TensorType{DType::f32, {1}, {}});
  ValueId s = graph.add_value("s", TensorType{DType::shape, {0}, {}}, Bytes::of(std::vector<std::int64_t>()));
  ValueId y = graph.add_value("y", TensorType{DType::f32, {}, {}});
  graph.inputs = {x};
  graph.outputs = {y};
  graph.nodes.push_back({tosa::op::reshape, {x, s}, {}, {y}, nullptr, {}});
  auto again = tosa_file::read(written(graph), "test.tosa");
  ASSERT_TRUE(again.ok()) << render(again.error(), false);
  EXPECT_EQ(print(graph, ConstantText::all), print(*again, ConstantText::all));
}

TEST(TosaFile, LocationsReadBack) {
  Loc loc{{"a dir/model.py", 6, "y = a | b(c)"}, "net.act", "torch.nn.GELU", "gelu_1", "aten.gelu.default", "gelu"};
  auto again = tosa_file::parse_location(tosa_file::location_text(loc));
  EXPECT_EQ(again->place.file, loc.place.file);
  EXPECT_EQ(again->place.line, 6);
  EXPECT_EQ(again->place.text, loc.place.text);
  EXPECT_EQ(again->module_type, loc.module_type);
  EXPECT_EQ(again->name, "gelu");
  EXPECT_EQ(tosa_file::parse_location("loc(\"v.mlir\":4:10)")->name, "loc(\"v.mlir\":4:10)");
  EXPECT_EQ(tosa_file::parse_location(""), nullptr);
}

// The schema's fields and the operators' rows are two statements of the same facts.
TEST(TosaFile, SchemaAndRowsAgree) {
  std::size_t rows = 0;
  for (const tosa::Op& row : tosa::all()) {
    const Operator op("tosa." + std::string(row.name));
    EXPECT_EQ(tosa_file::schema_number(op), row.schema_number) << op.name();
    ++rows;
    std::vector<std::string> fields, attrs;
    for (const tosa_file::Field& f : tosa_file::fields_of(row.schema_number))
      if (f.kind != tosa_file::FieldKind::body) fields.emplace_back(f.name);
    for (const tosa::AttrDef& a : row.attrs) attrs.emplace_back(a.name);
    if (op.base().starts_with("variable") || op.base().starts_with("const")) continue;  // these live in the tensors
    std::sort(fields.begin(), fields.end());
    std::sort(attrs.begin(), attrs.end());
    EXPECT_EQ(fields, attrs) << op.name();
  }
  EXPECT_GE(rows, 65u);
}

TEST(TosaFile, WhatTosaCannotHoldIsRefused) {
  auto code = [](std::string_view text) {
    auto file = tosa_file::write(graph_of(text));
    return file.ok() ? "" : file.error().code;
  };
  EXPECT_EQ(code("graph @g(%x: 2xu8) -> (%y) {\n %y: 2xu8 = tosa.abs(%x)\n}"), "tosa-file.dtype");
  EXPECT_EQ(code("graph @g(%x: 2xf32) -> (%y) {\n %y: 2xf32 = aten.abs.default(%x)\n}"), "tosa-file.not-tosa");
  EXPECT_EQ(code("graph @g(%x: 2xf32) -> (%y) {\n %y: f32 = tosa.reduce_sum(%x)\n}"), "tosa-file.attribute");
  EXPECT_EQ(code("graph @g(%x: 2x0xf32) -> (%y) {\n %y: 2x0xf32 = tosa.abs(%x)\n}"), "tosa-file.size");
}

// ---- files that are not what they seem

// A graph of one identity, with the parts that a test wants to be wrong.
struct Odd {
  std::int32_t major = 1, minor = 0;
  bool draft = false;
  std::uint32_t op = 68, tag = 68, dtype = 7;
  std::vector<std::int32_t> shape{2};
  std::string operand = "x", result = "y", output = "y";
  std::vector<std::uint8_t> constant;  // of a CONST 'c'
  Bytes bytes() const {
    namespace s = tosa_schema;
    flatbuffers::FlatBufferBuilder b;
    auto names = [&](std::vector<std::string> list) { return b.CreateVectorOfStrings(list); };
    auto empty = [&] {
      auto start = b.StartTable();
      return flatbuffers::Offset<void>(b.EndTable(start));
    };
    std::vector<flatbuffers::Offset<s::TosaTensor>> tensors;
    for (const char* name : {"x", "y"})
      tensors.push_back(s::CreateTosaTensorDirect(b, name, &shape, static_cast<s::DType>(dtype)));
    std::vector<flatbuffers::Offset<s::TosaOperator>> ops;
    if (!constant.empty()) {
      tensors.push_back(s::CreateTosaTensorDirect(b, "c", &shape, static_cast<s::DType>(dtype), &constant));
      ops.push_back(
          s::CreateTosaOperator(b, s::Op::CONST, s::Attribute::ConstAttribute, empty(), names({}), names({"c"})));
    }
    ops.push_back(s::CreateTosaOperator(b, static_cast<s::Op>(op), static_cast<s::Attribute>(tag), empty(),
                                        names({operand}), names({result})));
    std::vector<flatbuffers::Offset<s::TosaBasicBlock>> blocks{s::CreateTosaBasicBlock(
        b, b.CreateString("main"), b.CreateVector(ops), b.CreateVector(tensors), names({"x"}), names({output}))};
    std::vector<flatbuffers::Offset<s::TosaRegion>> regions{s::CreateTosaRegionDirect(b, "main", &blocks)};
    auto version = s::CreateVersion(b, major, minor, 0, draft);
    b.Finish(s::CreateTosaGraph(b, version, b.CreateVector(regions)), s::TosaGraphIdentifier());
    return Bytes::copy(b.GetBufferPointer(), b.GetSize());
  }
};

TEST(TosaFile, OtherVersionsAreRefusedByName) {
  EXPECT_EQ(code_of_read(Odd{}.bytes()), "");
  EXPECT_EQ(code_of_read(Odd{.minor = 1, .draft = true}.bytes()), "");
  auto old = tosa_file::read(Odd{.major = 0, .minor = 70}.bytes(), "old.tosa");
  ASSERT_FALSE(old.ok());
  EXPECT_EQ(old.error().code, "tosa-file.version");
  EXPECT_NE(old.error().message.find("0.70.0"), std::string::npos);
  EXPECT_EQ(old.error().place.file, "old.tosa");
  EXPECT_FALSE(old.error().help.empty());
  EXPECT_EQ(code_of_read(Odd{.draft = true}.bytes()), "");
  EXPECT_EQ(code_of_read(Odd{.major = 2}.bytes()), "tosa-file.version");
  auto newer = tosa_file::read(Odd{.minor = 2}.bytes(), "new.tosa");
  ASSERT_FALSE(newer.ok());
  EXPECT_EQ(newer.error().message, "the file is TOSA 1.2.0, which cannot be read");
  EXPECT_EQ(newer.error().help, "look for a newer tosaic, or export it again for TOSA 1.0");
}
// The true version is told, and a warning where it is later.
TEST(TosaFile, SaysItsVersion) {
  EXPECT_EQ(tosa_file::version_of(Odd{}.bytes()), "1.0.0");
  EXPECT_FALSE(tosa_file::newer_version(Odd{.draft = true}.bytes(), "a.tosa"));
  const Bytes newer = Odd{.minor = 1, .draft = true}.bytes();
  EXPECT_EQ(tosa_file::version_of(newer), "1.1.0 (draft)");
  const auto warned = tosa_file::newer_version(newer, "a.tosa");
  ASSERT_TRUE(warned);
  EXPECT_EQ(warned->severity, Severity::warning);
  EXPECT_EQ(warned->code, "tosa-file.newer");
  EXPECT_NE(warned->message.find("a.tosa is TOSA 1.1.0 (draft)"), std::string::npos);
}

// A file may say which readers can take it, and later writers may say more than this schema has fields for.
TEST(TosaFile, ConditionsAreHeeded) {
  const auto file = [](int major, int minor, flatbuffers::voffset_t further = 0, bool inside = false) {
    flatbuffers::FlatBufferBuilder b;
    const auto least = tosa_schema::CreateSoftwareVersion(b, major, minor, 0);
    const auto version = tosa_schema::CreateVersion(b, 1, 1, 0, false);
    const auto demands = b.StartTable();
    b.AddOffset(tosa_schema::Compatibility::VT_MINIMUM_READER_VERSION, least);
    if (further && inside) b.AddOffset(further, least);
    const auto compatibility = flatbuffers::Offset<tosa_schema::Compatibility>(b.EndTable(demands));
    const auto start = b.StartTable();
    b.AddOffset(tosa_schema::TosaGraph::VT_VERSION, version);
    b.AddOffset(tosa_schema::TosaGraph::VT_COMPATIBILITY, compatibility);
    if (further && !inside) b.AddOffset(further, least);
    b.Finish(flatbuffers::Offset<tosa_schema::TosaGraph>(b.EndTable(start)), tosa_schema::TosaGraphIdentifier());
    return Bytes::copy(b.GetBufferPointer(), b.GetSize());
  };
  const auto message = [](const Bytes& bytes) { return tosa_file::read(bytes, "new.tosa").error().message; };
  EXPECT_EQ(code_of_read(file(2026, 8)), "tosa-file.empty");  // taken as far as it goes
  EXPECT_EQ(code_of_read(file(2025, 11)), "tosa-file.empty");
  for (const Bytes& later : {file(2026, 9), file(2027, 1)}) {
    EXPECT_EQ(code_of_read(later), "tosa-file.version");
    EXPECT_NE(message(later).find("TOSA 1.1.0 and asks for readers"), std::string::npos);
  }
  for (const Bytes& more : {file(2026, 8, tosa_schema::TosaGraph::VT_COMPATIBILITY + 2),
                            file(2026, 8, tosa_schema::Compatibility::VT_FEATURES + 2, true)}) {
    EXPECT_EQ(code_of_read(more), "tosa-file.version");
    EXPECT_NE(message(more).find("TOSA 1.1.0 and states conditions"), std::string::npos);
  }
}

// One bit of a table's head, and its fields are gone: no graph that takes nothing and gives nothing comes of it.
TEST(TosaFile, NoFlippedBitMakesItVanish) {
  const Bytes whole = Odd{.constant = std::vector<std::uint8_t>(16, 0)}.bytes();
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string changed(whole.text());
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    const auto graph = tosa_file::read(Bytes::copy(changed.data(), changed.size()), "bit");
    if (!graph.ok()) continue;
    EXPECT_EQ(graph->outputs.size(), 1u) << "bit " << bit;
  }
}

TEST(TosaFile, OperatorsThatAreNotKnown) {
  EXPECT_EQ(code_of_read(Odd{.op = 200, .tag = 200}.bytes()), "tosa-file.operator");
}
TEST(TosaFile, OperatorNumberZero) { EXPECT_EQ(code_of_read(Odd{.op = 0, .tag = 0}.bytes()), "tosa-file.operator"); }
TEST(TosaFile, AnotherOperatorsAttributes) { EXPECT_EQ(code_of_read(Odd{.tag = 12}.bytes()), "tosa-file.attribute"); }
TEST(TosaFile, MissingAttributes) { EXPECT_EQ(code_of_read(Odd{.op = 61, .tag = 61}.bytes()), "tosa-file.attribute"); }
TEST(TosaFile, UnknownEnumerator) { EXPECT_EQ(code_of_read(Odd{.op = 64, .tag = 64}.bytes()), "tosa-file.attribute"); }
TEST(TosaFile, UnknownDtype) {
  EXPECT_EQ(code_of_read(Odd{.dtype = 0}.bytes()), "tosa-file.dtype");
  EXPECT_EQ(code_of_read(Odd{.dtype = 10}.bytes()), "tosa-file.dtype");
  EXPECT_EQ(code_of_read(Odd{.dtype = 19}.bytes()), "tosa-file.dtype");
}
TEST(TosaFile, DynamicAndHugeShapes) {
  EXPECT_EQ(code_of_read(Odd{.shape = {-1}}.bytes()), "tosa-file.dynamic");
  EXPECT_EQ(code_of_read(Odd{.shape = {0}}.bytes()), "tosa-file.dynamic");
  EXPECT_EQ(code_of_read(Odd{.shape = {2147483647, 2147483647, 2147483647}}.bytes()), "tosa-file.size");
}
TEST(TosaFile, NamesThatAreNotThere) {
  EXPECT_EQ(code_of_read(Odd{.operand = "nobody"}.bytes()), "tosa-file.name");
  EXPECT_EQ(code_of_read(Odd{.operand = "y"}.bytes()), "tosa-file.name");
  EXPECT_EQ(code_of_read(Odd{.result = "x"}.bytes()), "tosa-file.name");
  EXPECT_EQ(code_of_read(Odd{.output = "nobody"}.bytes()), "tosa-file.name");
}
TEST(TosaFile, ConstantsOfTheWrongSize) {
  EXPECT_EQ(code_of_read(Odd{.constant = {1, 2, 3}}.bytes()), "tosa-file.constant-size");
  EXPECT_EQ(code_of_read(Odd{.constant = std::vector<std::uint8_t>(8)}.bytes()), "");
  EXPECT_EQ(code_of_read(Odd{.dtype = 1, .constant = {1, 2}}.bytes()), "tosa-file.constant");
}
TEST(TosaFile, OneElementWrittenSeveralTimes) {
  EXPECT_EQ(code_of_read(Odd{.shape = {1}, .constant = {1, 0, 0, 0, 1, 0, 0, 0}}.bytes()), "");
  EXPECT_EQ(code_of_read(Odd{.shape = {1}, .constant = {1, 0, 0, 0, 2, 0, 0, 0}}.bytes()), "tosa-file.constant-size");
}
TEST(TosaFile, NotATosaFile) {
  EXPECT_EQ(code_of_read(Bytes()), "tosa-file.not-tosa");
  EXPECT_EQ(code_of_read(Bytes::copy("PK\3\4aaaaaaaa", 12)), "tosa-file.not-tosa");
  EXPECT_EQ(code_of_read(Bytes::copy("\0\0\0\0TOSA", 8)), "tosa-file.corrupt");
}

TEST(TosaFile, BodiesThatContainThemselves) {
  Graph graph = graph_of(varied);
  const Bytes good = written(graph);
  std::string text(good.text());
  // The body "else" is renamed to "main" in place: it becomes its own grandparent.
  const std::size_t at = text.find("else");
  ASSERT_NE(at, std::string::npos);
  for (std::size_t p = at; p != std::string::npos; p = text.find("else", p + 1)) text.replace(p, 4, "main");
  EXPECT_EQ(code_of_read(Bytes::copy(text.data(), text.size())), "tosa-file.nesting");
}

TEST(TosaFile, TruncatedAnywhere) {
  const Bytes good = written(graph_of(varied));
  for (std::size_t size = 0; size + 8 < good.size(); ++size)  // the last bytes are padding
    EXPECT_NE(code_of_read(Bytes::copy(good.data(), size)), "") << "cut to " << size << " of " << good.size();
}

// Whatever the bytes, reading ends with a graph that verifies or with a diagnostic.
TEST(TosaFile, MutatedFiles) {
  const Bytes good = written(graph_of(varied));
  std::mt19937 random(20260);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> bytes(good.data(), good.data() + good.size());
    for (unsigned flips = 1 + random() % 4; flips > 0; --flips) {
      const std::size_t at = random() % bytes.size();
      if (random() % 2)
        bytes[at] = static_cast<std::byte>(random());
      else
        bytes[at] ^= static_cast<std::byte>(1u << (random() % 8));
    }
    auto graph = tosa_file::read(Bytes::of(std::move(bytes)), "mutated.tosa");
    if (graph.ok()) {
      ++accepted;
      EXPECT_TRUE(verify(*graph).ok());
    } else {
      EXPECT_FALSE(graph.error().internal) << render(graph.error(), false);
    }
  }
  EXPECT_GT(accepted, 100);  // weights changed, not structure: the mutations do reach behind the verifier
}

}  // namespace
}  // namespace tosaic
