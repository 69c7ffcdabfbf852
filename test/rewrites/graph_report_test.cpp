// SPDX-License-Identifier: Apache-2.0
// What --print-after, --trace-node and --dump-dir show of a program.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "api/compile_options.h"
#include "base/diagnostic.h"
#include "ir/dot.h"
#include "pipeline/pipeline.h"

namespace tosaic {
namespace {

namespace fs = std::filesystem;

Graph graph_of(const std::string& text) {
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : render(graph.error(), false));
  return graph.ok() ? *graph : Graph();
}

const std::string identity_and_relu = R"(graph @main(%x: 2x3xf32) -> (%relu) {
  %detach: 2x3xf32 = aten.detach.default(%x)
  %relu: 2x3xf32 = aten.relu.default(%detach)
})";

std::string printed(const Options& options) {
  const auto how = compile_options_for("tosa-fp", options);
  if (!how.ok()) return how.error().code;
  ExportedProgram program;
  program.methods.emplace_back().name = "forward";
  program.methods[0].graph = graph_of(identity_and_relu);
  const auto made = compile_model(program, *how, {});
  return made.ok() ? made->printed : made.error().code;
}

TEST(GraphReport, prints_a_graph_that_a_rewrite_changed) {
  EXPECT_EQ(printed(Options().set("print-after", {"normalise/drop_identities"})),
            "// normalise/drop_identities, change 1\n"
            "graph @main(%x: 2x3xf32) -> (%relu) {\n"
            "  %relu: 2x3xf32 = aten.relu.default(%x)\n"
            "}\n");
}

TEST(GraphReport, says_what_changed_nothing) {
  EXPECT_EQ(printed(Options().set("print-after", {"normalise/functionalise"})),
            "// normalise/functionalise changed nothing\n");
}

TEST(GraphReport, prints_stages_as_they_are) {
  EXPECT_EQ(printed(Options().set("print-after", {"read"})), print(graph_of(identity_and_relu)));
}

TEST(GraphReport, refuses_names_that_the_target_does_not_know) {
  EXPECT_EQ(printed(Options().set("print-after", {"tidy/nothing"})), "option.value");
  EXPECT_EQ(printed(Options().set("print-after", {"tidy/minima_as_maxima"})), "option.value");
}

TEST(GraphReport, follows_a_node) {
  EXPECT_EQ(printed(Options().set("trace-node", "relu")),
            "read\n"
            "  + %relu: 2x3xf32 = aten.relu.default(%detach)\n"
            "normalise/drop_identities\n"
            "  - %relu: 2x3xf32 = aten.relu.default(%detach)\n"
            "  + %relu: 2x3xf32 = aten.relu.default(%x)\n"
            "partition\n"
            "  + %relu: 2x3xf32 = \"delegate\"(%x) {region=0}\n"
            "lower\n"
            "  - %relu: 2x3xf32 = aten.relu.default(%x)\n"
            "  + %relu: 2x3xf32 = tosa.clamp(%x) {min_val=0.0, max_val=inf, nan_mode=\"propagate\"}\n");
  EXPECT_EQ(printed(Options().set("trace-node", "rely")), "// nothing is called 'rely'; did you mean relu?\n");
}

TEST(GraphReport, dumps_what_changed) {
  std::string folder = (fs::temp_directory_path() / "graphs_XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  EXPECT_EQ(printed(Options().set("dump-dir", folder + "/new")), "");
  std::set<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder + "/new")) files.insert(entry.path().filename().string());
  for (const char* file : {"000_read.txt", "000_read.dot", "001_normalise.drop_identities.txt",
                           "001_normalise.drop_identities.dot", "002_normalise.txt"})
    EXPECT_TRUE(files.contains(file)) << file;
  std::ifstream from(folder + "/new/000_read.txt");
  std::stringstream text;
  text << from.rdbuf();
  EXPECT_EQ(text.str(), print(graph_of(identity_and_relu)));
  fs::remove_all(folder);
}

TEST(Dot, draws_nodes_operands_and_bodies) {
  const Graph graph = graph_of(R"(graph @main(%p: bool, %x: 2xf32) -> (%y) {
  %w: 2xf32 = constant [1.0, 2.0]
  %sum: 2xf32 = aten.add.Tensor(%x, %w)
  %y: 2xf32 = higher_order.cond(%p, %sum) (
    graph @yes(%a: 2xf32) -> (%r) {
      %r: 2xf32 = aten.relu.default(%a)
    }
  )
})");
  EXPECT_EQ(dot(graph), R"(digraph {
  node [shape=box, fontname=monospace]
  "%p" [label="p", shape=ellipse]
  "%x" [label="x", shape=ellipse]
  "0" [label="sum = aten.add.Tensor"]
  "%x" -> "0" [label="2xf32"]
  "1" [label="y = higher_order.cond"]
  "%p" -> "1" [label="bool"]
  "0" -> "1" [label="2xf32"]
  subgraph "cluster1.0." { label="yes of higher_order.cond"
    "1.0.%a" [label="a", shape=ellipse]
    "1.0.0" [label="r = aten.relu.default"]
    "1.0.%a" -> "1.0.0" [label="2xf32"]
    "1.0.result 0" [label="result 0", shape=ellipse]
    "1.0.0" -> "1.0.result 0" [label="2xf32"]
  }
  "result 0" [label="result 0", shape=ellipse]
  "1" -> "result 0" [label="2xf32"]
}
)");
}

}  // namespace
}  // namespace tosaic
