// SPDX-License-Identifier: Apache-2.0
// Artifacts that other tools read hold TOSA alone, whatever executors make of it: a program of which nearly everything
// is raised to extension operators, read back from each of its files, has none, and executors find them in what is
// read.
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <random>

#include "cpu/cpu.h"
#include "formats/pte/pte_file.h"
#include "formats/tosa/tosa_file.h"
#include "formats/vgf/vgf_graph.h"
#include "ir/extension_operators.h"
#include "tosaic/tosaic.hpp"

namespace tosaic {
namespace {

// A layer of a language model: rows of a table, norms, attention with a mask and without, a weight.
Program layer() {
  auto graph = parse(R"(graph @main(%i: 1x16xi32, %mask: 16x16xf32, %shown: 16x16xbool) -> (%z) {
  %t: 256x256xf32 = aten.zeros.default() {size=[256, 256]}
  %w: 256x256xf32 = aten.zeros.default() {size=[256, 256]}
  %g: 256xf32 = aten.zeros.default() {size=[256]}
  %b: 256xf32 = aten.zeros.default() {size=[256]}
  %e: 1x16x256xf32 = aten.embedding.default(%t, %i)
  %r: 1x16x256xf32 = aten.rms_norm.default(%e, %g) {normalized_shape=[256], eps=1e-06}
  %q: 1x16x256xf32 = aten.linear.default(%r, %w)
  %k: 1x256x16xf32 = aten.transpose.int(%r) {dim0=1, dim1=2}
  %s: 1x16x16xf32 = aten.bmm.default(%q, %k)
  %p: 1x16x16xf32 = aten.softmax.int(%s) {dim=-1}
  %a: 1x16x256xf32 = aten.scaled_dot_product_attention.default(%q, %r, %r, %mask)
  %c: 1x16x256xf32 = aten.scaled_dot_product_attention.default(%a, %r, %r) {is_causal=true}
  %h: 1x16x256xf32 = aten.scaled_dot_product_attention.default(%c, %r, %r, %shown)
  %o: 1x16x256xf32 = aten.bmm.default(%p, %h)
  %n: 1x16x256xf32 = aten.layer_norm.default(%o, %g, %b) {normalized_shape=[256]}
  %u: 1x16x256xf32 = aten.softmax.int(%n) {dim=-1}
  %z: 1x16x256xf32 = aten.linear.default(%u, %w)
})");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  std::mt19937 random(1);
  for (Node& node : graph->nodes) {
    if (!node.inputs.empty()) continue;
    Value& made = (*graph)[node.outputs[0]];
    std::vector<float> numbers(static_cast<std::size_t>(made.type.shape.elements()));
    for (float& x : numbers) x = static_cast<float>(random() % 2001) / 1000 - 1;
    made.constant = Bytes::of(std::move(numbers));
  }
  drop_dead(*graph);
  const std::string text = print(*graph, ConstantText::all);
  auto program = Program::read(Bytes::copy(text.data(), text.size()), "layer");
  EXPECT_TRUE(program.ok()) << (program.ok() ? "" : render(program.error(), false));
  return *std::move(program);
}

void expect_tosa_alone(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    EXPECT_TRUE(tosa::find(node.op)) << node.op.name();
    for (const Graph& body : node.regions) expect_tosa_alone(body);
  }
}

// What the executor for the CPU makes of it.
void expect_raised(const Graph& graph, std::vector<std::string> kernels) {
  const auto program = cpu::Program::compile(graph, {.threads = 1});
  ASSERT_TRUE(program.ok()) << render(program.error(), false);
  const auto used = program->kernels();
  for (const std::string& kernel : kernels)
    EXPECT_TRUE(std::ranges::find(used, kernel) != used.end())
        << kernel << " is missing among " << fmt::format("{}", fmt::join(used, " "));
  EXPECT_TRUE(std::ranges::find(used, "reduction") == used.end());
}

struct Case {
  const char *target, *weights, *quantise = "auto";
};
class TosaAlone : public testing::TestWithParam<Case> {};

TEST_P(TosaAlone, InEveryFile) {
  const auto& [target, weights, quantise] = GetParam();
  std::vector<std::string> kernels{"softmax", "layer_norm", "rms_norm", "attention"};
  const bool dynamic = quantise != std::string("auto");
  if (weights != std::string("per-channel")) kernels.push_back("coded_rows");
  if (weights != std::string("per-channel") && !dynamic) kernels.push_back("coded_f32");
  if (dynamic) kernels.insert(kernels.end(), {"quantise_rows", "coded_i8"});
  const auto made = compile(layer(), target, Options().set("weights", weights).set("quantize", quantise));
  ASSERT_TRUE(made.ok()) << render(made.error(), false);
  int graphs = 0;
  for (const std::string& name : made->pieces()) {
    if (name != "tosa" && name != "vgf" && name != "payload") continue;
    SCOPED_TRACE(name);
    const auto bytes = made->piece(name);
    ASSERT_TRUE(bytes.ok());
    const auto graph = vgf::is_vgf(*bytes) ? vgf::read_graph(*bytes, name) : tosa_file::read(*bytes, name);
    ASSERT_TRUE(graph.ok()) << render(graph.error(), false);
    expect_tosa_alone(*graph);
    expect_raised(*graph, kernels);
    ++graphs;
  }
  EXPECT_GE(graphs, 2);  // the graph, and what the program's delegate is given
  const auto pte = made->piece("pte");
  ASSERT_TRUE(pte.ok());
  const auto program = pte::read(*pte, "layer.pte");
  ASSERT_TRUE(program.ok());
  for (const pte::Plan& plan : program->plans) {
    EXPECT_EQ(plan.delegates.size(), 1u);
    for (const pte::OperatorName& op : plan.operators) EXPECT_EQ(op.name.find("tosaic"), std::string::npos) << op.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, TosaAlone,
                         testing::Values(Case{"tosa-fp", "per-channel"}, Case{"tosa-fp", "int8"},
                                         Case{"tosa-fp", "int4"}, Case{"tosa-fp", "int4", "dynamic-int8"},
                                         Case{"vgf", "per-channel"}),
                         [](const auto& one) {
                           std::string name =
                               fmt::format("{}_{}_{}", one.param.target, one.param.weights, one.param.quantise);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// Who would write one is refused.
TEST(Writers, NoneTakesAnExtensionOperator) {
  const auto graph = parse(R"(graph @main(%x: 2x4xf32) -> (%y) {
  %y: 2x4xf32 = tosaic.softmax(%x) {axis=1, safe=false}
})");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_FALSE(tosa::verify_graph(*graph, tosa::Spec::everything()).ok());
  EXPECT_FALSE(tosa_file::write(*graph).ok());
  EXPECT_FALSE(vgf::from_graph(*graph).ok());
}

}  // namespace
}  // namespace tosaic
