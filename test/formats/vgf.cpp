// SPDX-License-Identifier: Apache-2.0
// .vgf files: what comes back is the graph that went in, the container is checked, and files lie in vain.
#include <gtest/gtest.h>
#include <cstring>

#include <random>

#include "formats/sample_graph.h"
#include "formats/vgf/vgf_graph.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic {
namespace {

// Besides the sample: constants inside and outside the module, several results, rank 0, a tensor that is two outputs,
// an input that is an output.
const std::string varied =
    "graph @main(%x: 1x8x8x4xf32, %q: 4x6xi8, %p: bool, %s: f32) -> "
    "(%tall, %narrow, %flag, %real, %imag, %narrow, %scalar, %wide, %p) {\n" +
    sample_nodes +
    R"(  %slice: 1x8x8xf32 = constant [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 6.5, 7.0, 7.5, 8.0, 0.5, 1.0,
    1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 6.5, 7.0, 7.5, 8.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5,
    5.0, 5.5, 6.0, 6.5, 7.0, 7.5, 8.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 6.5, 7.0, 7.5, 8.0]
  %fr: 1x8x8xf32, %fi: 1x8x8xf32 = tosa.fft2d(%slice, %slice) {inverse=true, local_bound=false}
  %real: 1x8x5xf32, %imag: 1x8x5xf32 = tosa.rfft2d(%slice) {local_bound=false}
  %scalar: f32 = tosa.exp(%s)
  %big: 1xi48 = constant [-123456789012]
  %wide: 1xi48 = tosa.identity(%big)
})";

Bytes file_of(const Graph& graph) {
  auto file = vgf::from_graph(graph);
  EXPECT_TRUE(file.ok()) << (file.ok() ? "" : render(file.error(), false));
  auto bytes = file.ok() ? vgf::write(*file) : Result<Rope>(Rope());
  return bytes.ok() ? bytes->joined() : Bytes();
}

Result<Graph> graph_in(const Bytes& bytes) {
  TOSAIC_TRY(Graph graph, vgf::read_graph(bytes, "test.vgf"));
  TOSAIC_CHECK(verify(graph));
  return graph;
}

std::vector<const Node*> instructions(const Graph& graph) {
  std::vector<const Node*> list;
  for (const Node& n : graph.nodes)
    if (n.op != tosa::op::identity && n.op != tosa::op::reshape) list.push_back(&n);
  return list;
}

TEST(Vgf, GraphComesBack) {
  const Graph graph = graph_of(varied);
  const auto back = graph_in(file_of(graph));
  ASSERT_TRUE(back.ok()) << render(back.error(), false);
  ASSERT_EQ(back->inputs.size(), graph.inputs.size());
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    EXPECT_EQ((*back)[back->inputs[i]].name, graph[graph.inputs[i]].name);
    EXPECT_EQ((*back)[back->inputs[i]].type, graph[graph.inputs[i]].type);
  }
  ASSERT_EQ(back->outputs.size(), graph.outputs.size());
  for (std::size_t i = 0; i < graph.outputs.size(); ++i)
    EXPECT_EQ((*back)[back->outputs[i]].type, graph[graph.outputs[i]].type) << i;
  EXPECT_EQ(back->outputs[1], back->outputs[5]);
  EXPECT_EQ((*back)[back->outputs[0]].name, "tall");

  const auto wanted = instructions(graph), found = instructions(*back);
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(found[i]->op, wanted[i]->op);
    EXPECT_EQ(found[i]->attrs, wanted[i]->attrs) << wanted[i]->op.name();
    ASSERT_EQ(found[i]->inputs.size(), wanted[i]->inputs.size());
    for (std::size_t k = 0; k < wanted[i]->inputs.size(); ++k) {
      const Value &w = graph[wanted[i]->inputs[k]], &f = (*back)[found[i]->inputs[k]];
      EXPECT_EQ(f.type.dtype, w.type.dtype);
      EXPECT_EQ(f.constant, w.constant) << w.name;
    }
  }
}

// A module has [1] for it, and no RESHAPE takes int48.
TEST(Vgf, Int48OfRankZero) {
  const Graph graph = graph_of(R"(graph @main(%x: i48, %s: f32) -> (%y, %z, %e) {
  %k: i48 = constant [-140737488355328]
  %y: i48 = tosa.identity(%k)
  %z: i48 = tosa.identity(%x)
  %e: f32 = tosa.exp(%s)
})");
  const auto back = graph_in(file_of(graph));
  ASSERT_TRUE(back.ok()) << render(back.error(), false);
  ASSERT_EQ(back->outputs.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const TensorType &found = (*back)[back->outputs[i]].type, &wanted = graph[graph.outputs[i]].type;
    EXPECT_EQ(found.dtype, wanted.dtype);
    EXPECT_EQ(found.shape.elements(), 1);
    if (i != 1) { EXPECT_EQ(found.shape, wanted.shape); }
  }
  EXPECT_TRUE(graph_in(file_of(*back)).ok());  // what was read is written and read again
}

TEST(Vgf, ConstantsOfMoreThanFourElementsLieOutside) {
  const auto file = vgf::read(file_of(graph_of(varied)));
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(file->constants.size(), 3u);  // the weight, the picture, and what is an output by itself
  EXPECT_EQ(file->constants[0].data.size(), 72u * 4);
  EXPECT_EQ(file->resources[file->constants[0].resource].shape, (std::vector<std::int64_t>{2, 3, 3, 4}));
  EXPECT_EQ(vgf::name_of_format(file->resources[file->inputs[1].resource].format), "R8_SINT");
  EXPECT_TRUE(file->resources[file->inputs[3].resource].shape.empty());  // rank 0 stays rank 0
}

TEST(Vgf, SparseWeightsAreMarked) {
  for (const bool sparse : {false, true}) {
    std::vector<std::int8_t> weight(1 * 3 * 3 * 8, 0);
    for (std::size_t i = 0; i < weight.size(); ++i)
      weight[i] = static_cast<std::int8_t>(sparse && i % 4 > 1 ? 0 : i + 1);
    Graph graph = graph_of(R"(graph @main(%x: 1x8x8x8xi8, %w: 1x3x3x8xi8) -> (%y) {
      %b: 1xi32 = constant [0]
      %z: 1xi8 = constant [0]
      %y: 1x6x6x1xi32 = tosa.conv2d(%x, %w, %b, %z, %z) {pad=[0, 0, 0, 0], stride=[1, 1], dilation=[1, 1], acc_type=i32, local_bound=false}
    })");
    graph[graph.inputs[1]].constant = Bytes::of(weight);
    graph.inputs.pop_back();
    const auto file = vgf::from_graph(graph);
    ASSERT_TRUE(file.ok()) << render(file.error(), false);
    EXPECT_EQ(file->constants[0].sparsity_dimension, sparse ? 3 : -1);
  }
}

TEST(Vgf, WhatSpirvCannotSayIsRefused) {
  const auto file = vgf::from_graph(graph_of(R"(graph @main(%p: bool, %x: 2xf32) -> (%y) {
    %y: 2xf32 = tosa.cond_if(%p, %x) (
      graph @t(%a: 2xf32) -> (%a) {
      }
      graph @e(%a: 2xf32) -> (%a) {
      }
    )
  })"));
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, "spirv.no-instruction");
}

TEST(Vgf, BadFiles) {
  const Bytes good = file_of(graph_of(varied));
  auto code_of = [&](auto change) {
    std::vector<std::byte> bytes(good.data(), good.data() + good.size());
    change(bytes);
    const auto graph = graph_in(Bytes::of(std::move(bytes)));
    return graph.ok() ? std::string("good") : graph.error().code;
  };
  EXPECT_EQ(code_of([](auto&) {}), "good");
  EXPECT_EQ(code_of([](auto& b) { b[0] = std::byte{'X'}; }), "vgf.not-a-vgf");
  EXPECT_EQ(code_of([](auto& b) { b[9] = std::byte{6}; }), "vgf.version");
  EXPECT_EQ(code_of([](auto& b) { b.resize(100); }), "vgf.truncated");
  EXPECT_EQ(code_of([](auto& b) { b.resize(b.size() - 8); }), "vgf.truncated");
  EXPECT_EQ(code_of([](auto& b) { b[17] = std::byte{0xff}; }).substr(0, 4), "vgf.");

  auto file = *vgf::read(good);
  auto code_with = [](const vgf::File& f) {
    const auto graph = graph_in(vgf::write(f)->joined());
    return graph.ok() ? std::string("good") : graph.error().code;
  };
  auto broken = file;
  broken.segments[0].module = 7;
  EXPECT_EQ(code_with(broken), "vgf.index");
  broken = file;
  broken.inputs[0].resource = 99;
  EXPECT_EQ(code_with(broken), "vgf.index");
  broken = file;
  broken.constants[0].data = broken.constants[0].data.slice(0, 4);
  EXPECT_EQ(code_with(broken), "spirv.corrupt");
  broken = file;
  broken.segments[0].constants.clear();
  EXPECT_EQ(code_with(broken), "spirv.corrupt");
  broken = file;
  broken.resources[broken.inputs[0].resource].shape = {1, 8, 8};
  EXPECT_EQ(code_with(broken), "vgf.corrupt");
  broken = file;
  broken.segments[0].kind = broken.modules[0].kind = vgf::Kind::compute;
  EXPECT_EQ(code_with(broken), "vgf.compute-segment");
  broken = file;
  broken.modules[0].entry_point = "other";
  EXPECT_EQ(code_with(broken), "spirv.no-graph");
}

// Any word may be any other: the answer is a graph that holds or an error, never a crash.
TEST(Vgf, EveryWordChanged) {
  const Bytes good = file_of(graph_of(varied));
  std::mt19937 random(7);
  for (std::size_t at = 0; at + 4 <= good.size(); at += 4) {
    std::vector<std::byte> bytes(good.data(), good.data() + good.size());
    const std::uint32_t values[] = {0, 1, 0xffffffffu, static_cast<std::uint32_t>(random())};
    std::memcpy(bytes.data() + at, &values[at / 4 % 4], 4);
    const auto graph = graph_in(Bytes::of(std::move(bytes)));
    if (!graph.ok()) { EXPECT_FALSE(graph.error().code.empty()); }
  }
}

std::string quoted(const std::string& text) {
  std::string out;
  for (char c : text) out += c == '"' ? std::string("\\\"") : std::string(1, c);
  return out;
}

// Domains without a number are refused; those with one come back with their names and attributes.
TEST(Vgf, CustomOperatorsAreKept) {
  const Graph graph = graph_of(R"(graph @main(%x: 1x4xf32, %z: 2x3xi8) -> (%y, %w) {
    %b: 1x4xf32 = tosa.custom(%x) {operator_name="one", domain_name="com.arm.bespoke", implementation_attrs="hello"}
    %c: 1x2xf32, %w: 3xi8 = tosa.custom(%b, %z) {operator_name="two", domain_name="acme.ops", implementation_attrs=""}
    %y: 1x2xf32 = tosa.exp(%c)
  })");
  const auto refused = vgf::from_graph(graph);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, "spirv.no-instruction");
  const auto file = vgf::from_graph(graph, {.custom_domains = {{"com.arm.bespoke", 0}, {"acme.ops", 7}}});
  ASSERT_TRUE(file.ok()) << render(file.error(), false);
  const auto back = graph_in(vgf::write(*file)->joined());
  ASSERT_TRUE(back.ok()) << render(back.error(), false);
  EXPECT_EQ(print(*back, ConstantText::all), print(graph, ConstantText::all));
}

// A shader is a segment of its own; what lies before and after it, two graph segments.
TEST(Vgf, ShadersAreComputeSegments) {
  const std::string attributes = quoted(
      R"({"entry_point": "main", "workgroup_sizes": [4, 1, 1], "shader_language": "GLSL", "shader_code": "void main() {}", )"
      R"("input_0_binding": 0, "input_0_descriptorset": 0, "input_0_type": "Image", "input_0_vkformat": )"
      R"("VK_FORMAT_R32_SFLOAT", "input_0_vkdescriptortype": "VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER", )"
      R"("input_0_sampler": {"min_filter": "VK_FILTER_LINEAR", "mag_filter": "VK_FILTER_NEAREST", "address_mode_u": )"
      R"("VK_SAMPLER_ADDRESS_MODE_REPEAT", "address_mode_v": "VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE", "border_color": )"
      R"("VK_BORDER_COLOR_INT_OPAQUE_WHITE"}, "input_1_binding": 1, "input_1_descriptorset": 0, "input_1_type": "Tensor", )"
      R"("input_1_vkformat": "VK_FORMAT_R32_SFLOAT", "input_1_vkdescriptortype": "VK_DESCRIPTOR_TYPE_TENSOR_ARM", )"
      R"("output_0_binding": 2, "output_0_descriptorset": 0, "output_0_type": "Tensor", "output_0_vkformat": )"
      R"("VK_FORMAT_R32_SFLOAT", "output_0_vkdescriptortype": "VK_DESCRIPTOR_TYPE_STORAGE_BUFFER"})");
  const Graph graph = graph_of(R"(graph @main(%x: 1x4xf32, %g: 1x4xf32) -> (%y, %k, %x) {
    %a: 1x4xf32 = tosa.abs(%x)
    %k: 1x4xf32 = constant [1.0, 2.0, 3.0, 4.0]
    %b: 1x4xf32 = tosa.custom(%a, %g) {operator_name="first", domain_name="com.arm.VulkanCustomShader", implementation_attrs=")" +
                               attributes + R"("}
    %d: 1x4xf32 = tosa.add(%b, %a)
    %c: 1x4xf32 = tosa.custom(%d, %k) {operator_name="second", domain_name="com.arm.VulkanCustomShader", implementation_attrs=")" +
                               attributes + R"("}
    %y: 1x4xf32 = tosa.exp(%c)
  })");
  const auto file = vgf::from_graph(graph);
  ASSERT_TRUE(file.ok()) << render(file.error(), false);
  std::string kinds;
  for (const vgf::Segment& s : file->segments) kinds += s.kind == vgf::Kind::graph ? 'g' : 'c';
  EXPECT_EQ(kinds, "gcgcg");
  const auto back = graph_in(vgf::write(*file)->joined());
  ASSERT_TRUE(back.ok()) << render(back.error(), false);
  std::vector<const Node*> wanted = instructions(graph), found = instructions(*back);
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(found[i]->op, wanted[i]->op);
    EXPECT_EQ(found[i]->attrs, wanted[i]->attrs);
  }
  // Who reads whom has stayed: the second shader reads the sum and a constant, the sum the first shader and the abs.
  EXPECT_EQ(found[2]->inputs, (std::vector<ValueId>{found[1]->outputs[0], found[0]->outputs[0]}));
  EXPECT_EQ(found[3]->inputs[0], found[2]->outputs[0]);

  Graph bad = graph;
  for (Node& n : bad.nodes)
    if (n.op == tosa::op::custom) n.attrs.set("implementation_attrs", Attr(std::string("{\"entry_point\": 3}")));
  const auto refused = vgf::from_graph(bad);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, "vgf.shader");
}

}  // namespace
}  // namespace tosaic
