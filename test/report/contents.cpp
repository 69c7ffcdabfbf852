// SPDX-License-Identifier: Apache-2.0
// What a report holds: graphs, memory, and JSON and a page that no name breaks out of.
#include <gtest/gtest.h>
#include <simdjson.h>
#include <filesystem>

#include "report/contents_json.h"
#include "report/extra_json.h"
#include "report/graph.h"
#include "report/instructions.h"
#include "report/memory.h"
#include "report/page.h"

namespace tosaic::reporting {
namespace {

// Two tensors of 4 KiB are alive while the third is written; a view takes nothing.
constexpr const char* graph_text = R"text(graph @main(%x: 1x1024xf32) -> (%y) {
  %shape: 2xshape = constant [1024, 1]
  %a: 1x1024xf32 = tosa.abs(%x) loc("model.py":6 "a = x.abs()" in "body.0" "torch.nn.modules.Abs" as "abs_1")
  %b: 1x1024xf32 = tosa.exp(%a)
  %v: 1024x1xf32 = tosa.reshape(%b, %shape)
  %w: 1x1024xf32 = tosa.negate(%a)
  %y: 1x1024xf32 = tosa.add(%w, %b)
}
)text";

Graph parsed(const char* text) {
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  return *graph;
}

std::size_t occurrences(const std::string& text, const std::string& of) {
  std::size_t count = 0;
  for (std::size_t at = text.find(of); at != text.npos; at = text.find(of, at + 1)) ++count;
  return count;
}

TEST(Report, GraphSaysWhereNodesComeFrom) {
  const auto graphs = shown(parsed(graph_text), "delegate 0", ShownGraph::Kind::delegate);
  ASSERT_EQ(graphs.size(), 1u);
  const ShownNode& node = graphs[0].nodes[0];
  EXPECT_EQ(node.name, "a");
  EXPECT_EQ(node.op, "tosa.abs");
  EXPECT_EQ(node.module, "body.0");
  EXPECT_EQ(node.module_type, "Abs");
  EXPECT_EQ(node.place, "model.py:6");
  EXPECT_EQ(node.source, "a = x.abs()");
  EXPECT_EQ(node.exported, std::vector<std::string>{"abs_1"});
  EXPECT_EQ(graphs[0].values[node.inputs[0]].name, "x");
  EXPECT_EQ(graphs[0].values[node.inputs[0]].bytes, 4096u);
}

TEST(Report, ScalesGiveRealRanges) {
  const auto graphs = shown(parsed(R"(graph @main(%x: 4xi8<0.5:-2>) -> (%y) {
  %y: 4xi8<0.5:-2> = aten.relu.default(%x)
}
)"),
                            "forward", ShownGraph::Kind::program);
  const ShownValue& x = graphs[0].values[0];
  EXPECT_EQ(x.type, "4xi8");  // the scales are not said twice
  ASSERT_TRUE(x.scales.has_value());
  EXPECT_DOUBLE_EQ(x.scales->lowest_real, -63.0);
  EXPECT_DOUBLE_EQ(x.scales->highest_real, 64.5);
}

TEST(Report, MemoryIsWhatIsAliveAtOnce) {
  const Graph graph = parsed(graph_text);
  const ShownMemory memory = activations(graph, shown(graph, "g", ShownGraph::Kind::delegate)[0], 0);
  EXPECT_EQ(memory.peak_bytes, 3u * 4096);  // a, b and w, or w, b and y
  EXPECT_GE(memory.arena_bytes, memory.peak_bytes);
  EXPECT_EQ(memory.buffers.size(), 5u);  // not the view
  for (const auto& buffer : memory.buffers) EXPECT_LE(buffer.first, buffer.last);
}

TEST(Report, InstructionsOfAProgram) {
  for (const char* name : {"add_mul", "branch", "conv", "counter", "mlp", "tosa_delegate"}) {
    SCOPED_TRACE(name);
    const std::string path = std::string(TOSAIC_TEST_DATA) + "/formats/pte/" + name + ".pte";
    const auto file = map_file(path);
    ASSERT_TRUE(file.ok());
    const auto program = pte::read(*file, path);
    ASSERT_TRUE(program.ok());
    for (const pte::Plan& plan : program->plans) {
      const ShownGraph graph = shown(plan);
      ASSERT_EQ(graph.nodes.size(), plan.instructions.size());
      const ShownMemory memory = planned_memory(plan, graph, 0);
      EXPECT_LE(memory.peak, graph.nodes.size());
      for (const auto& buffer : memory.buffers) {
        EXPECT_LE(buffer.first, buffer.last);
        EXPECT_LT(buffer.last, graph.nodes.size());
        EXPECT_LE(buffer.offset + buffer.bytes, memory.arena_bytes);
      }
    }
  }
}

TEST(Report, ALoopKeepsWhatItReads) {
  pte::Plan plan;
  const auto tensor = [](std::uint64_t offset) {
    pte::TensorValue t;
    t.sizes = {16};
    t.is_planned = true;
    t.planned = {1, offset};
    return t;
  };
  plan.values = {tensor(0), tensor(64), pte::Value(true)};
  plan.inputs = {0};
  plan.outputs = {1};
  plan.operators = {{"aten::add", "out"}};
  plan.instructions = {pte::MoveCall{0, 1}, pte::KernelCall{0, {0, 1}}, pte::KernelCall{0, {1, 1}},
                       pte::JumpFalseCall{2, 1}};
  plan.arena_sizes = {128};
  const ShownGraph graph = shown(plan);
  const ShownMemory memory = planned_memory(plan, graph, 0);
  ASSERT_EQ(memory.buffers.size(), 2u);
  EXPECT_EQ(memory.buffers[0].last, 3u);  // the input is read again when the loop begins anew
}

Contents hostile() {
  const std::string evil = "</script><script>alert(1)<!--\xff\x01 \"'&@REPORT_DATA@";
  Contents contents;
  contents.name = evil;
  contents.format = "artifact";
  ShownNode node;
  node.name = node.op = node.text = node.module = node.place = node.source = evil;
  node.reason = error(evil, evil);
  contents.graphs.push_back({.name = evil, .kind = ShownGraph::Kind::delegate, .id = evil});
  contents.graphs[0].values.push_back({.name = evil, .type = evil, .scales = {}});
  contents.graphs[0].nodes.push_back(std::move(node));
  contents.messages.push_back(error(evil, evil));
  return contents;
}

TEST(Report, JsonIsJsonWhateverNamesAre) {
  const std::string json = contents_json(hostile(), "0.1.0");
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  ASSERT_FALSE(parser.parse(simdjson::padded_string(json)).get(root)) << json;
  std::string_view name;
  ASSERT_FALSE(root.at_pointer("/graphs/0/nodes/0/name").get(name));
  EXPECT_TRUE(name.starts_with("</script><script>alert(1)"));
}

TEST(Report, NoNameEndsTheScript) {
  const Contents evil = hostile();
  Contents harmless;
  harmless.name = "net";
  const auto page = page_of(contents_json(evil, "0.1.0"), evil.name);
  const auto plain = page_of(contents_json(harmless, "0.1.0"), harmless.name);
  ASSERT_TRUE(page.ok() && plain.ok());
  for (const char* word : {"<script", "</script", "<!--", "</title"})
    EXPECT_EQ(occurrences(*page, word), occurrences(*plain, word)) << word;
  EXPECT_EQ(occurrences(*page, "alert(1)<"), 0u);
}

TEST(Report, ThePageAsksNobody) {
  const auto page = page_of("{}", "net");
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page->find("@REPORT_"), std::string::npos);
  EXPECT_NE(page->find("default-src 'none'"), std::string::npos);
  for (const char* loads : {" src=", "@import", "url(http", "integrity="})
    EXPECT_EQ(page->find(loads), std::string::npos) << loads;
  EXPECT_LT(page->size(), 500'000u);
}

TEST(Report, OtherJsonIsRefusedWithTheCommandThatPrintsIt) {
  const auto check = [](std::string_view json) {
    return checked_json(json, {"run"}, "operations", "t.json", "run --profile --json");
  };
  EXPECT_EQ(*check("{\"command\": \"run\",\n \"operations\": []}"), R"({"command":"run","operations":[]})");
  for (const char* wrong : {"", "[]", "{", "{}", R"({"command": 3})", R"({"command": "compare", "operations": []})",
                            R"({"command": "run"})"}) {
    const auto refused = check(wrong);
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_EQ(refused.error().code, "report.json");
    EXPECT_EQ(refused.error().place.file, "t.json");
    EXPECT_NE(refused.error().help.find("run --profile --json"), std::string::npos);
  }
}

}  // namespace
}  // namespace tosaic::reporting
