// SPDX-License-Identifier: Apache-2.0
// Programs whose sizes change between runs: one payload gives at each size what the interpreter gives there, and a
// change of size makes no pipeline. Payloads that lie about sizes.
#include <atomic>
#include <chrono>

#include "ir/extent.h"
#include "ir/specialise.h"
#include "ops/definitions/rest.h"
#include "shaders/faulty_device.h"

namespace tosaic::test {
namespace {

using vulkan_program::Program;

Graph graph_of(std::string text) {
  if (const auto at = text.find("WEIGHTS"); at != std::string::npos) {
    std::string numbers = "1";
    for (int i = 1; i < 8 * 3 * 3 * 4; ++i) numbers += ", " + std::to_string(i * 37 % 19 - 9);
    text.replace(at, 7, numbers);
  }
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << render(graph.error(), false);
  return graph.ok() ? *std::move(graph) : Graph();
}

// Attention over b sequences of length s, without its reshapes: all of its products see a symbol.
constexpr const char* attention = R"(graph @main(%q: (b in 1..4)x(s in 1..24)x8xf32, %k: (b in 1..4)x(s in 1..24)x8xf32)
    -> (%y, %top) {
  %zero: 1xf32 = constant [0]
  %shift: 1xi8 = constant [0]
  %t: (b in 1..4)x8x(s in 1..24)xf32 = tosa.transpose(%k) {perms=[0, 2, 1]}
  %scores: (b in 1..4)x(s in 1..24)x(s in 1..24)xf32 = tosa.matmul(%q, %t, %zero, %zero)
  %most: (b in 1..4)x(s in 1..24)x1xf32 = tosa.reduce_max(%scores) {axis=2, nan_mode="propagate"}
  %below: (b in 1..4)x(s in 1..24)x(s in 1..24)xf32 = tosa.sub(%scores, %most)
  %e: (b in 1..4)x(s in 1..24)x(s in 1..24)xf32 = tosa.exp(%below)
  %sum: (b in 1..4)x(s in 1..24)x1xf32 = tosa.reduce_sum(%e) {axis=2}
  %r: (b in 1..4)x(s in 1..24)x1xf32 = tosa.reciprocal(%sum)
  %p: (b in 1..4)x(s in 1..24)x(s in 1..24)xf32 = tosa.mul(%e, %r, %shift)
  %y: (b in 1..4)x(s in 1..24)x8xf32 = tosa.matmul(%p, %k, %zero, %zero)
  %top: (b in 1..4)x(s in 1..24)xi32 = tosa.argmax(%scores) {axis=2, nan_mode="propagate"}
})";

// Quantised values: a batch of images of any height, then sums along it.
constexpr const char* images = R"(graph @main(%x: (b in 1..5)x(h in 2..17)x6x4xi8) -> (%y, %z) {
  %w: 8x3x3x4xi8 = constant [WEIGHTS]
  %bias: 1xi32 = constant [5]
  %zp: 1xi8 = constant [2]
  %y: (b in 1..5)x(h in 2..17)x6x8xi32 = tosa.conv2d(%x, %w, %bias, %zp, %zp) {pad=[1, 1, 1, 1], stride=[1, 1], dilation=[1, 1], acc_type="i32", local_bound=false}
  %c: (b in 1..5)x(2*h for h in 2..17)x6x8xi32 = tosa.concat(%y, %y) {axis=1}
  %z: (b in 1..5)x1x6x8xi32 = tosa.reduce_sum(%c) {axis=1}
})";

// Three groups of channels, of narrow ones and of wide ones, over heights that vary.
std::string grouped(std::int64_t width) {
  const auto numbers = [](std::int64_t count) {
    std::string text = "1";
    for (std::int64_t i = 1; i < count; ++i) text += ", " + std::to_string(i * 37 % 19 - 9);
    return text;
  };
  const std::string image = "(b in 1..3)x(h in 2..9)x6x";
  std::string text =
      fmt::format("graph @main(%x: {}{}xi8) -> (%y) {{\n  %bias: 1xi32 = constant [5]\n", image, 3 * width);
  text += "  %zp: 1xi8 = constant [2]\n  %none: 1xi8 = constant [0]\n";
  text += fmt::format("  %size: 4xshape = constant [3, 9, 6, {}]\n", width);
  for (std::int64_t g = 0; g < 3; ++g) {
    text += fmt::format("  %start{}: 4xshape = constant [0, 0, 0, {}]\n", g, g * width);
    text += fmt::format("  %w{}: {}x3x3x{}xi8 = constant [{}]\n", g, width, width, numbers(9 * width * width));
    text += fmt::format("  %s{}: {}{}xi8 = tosa.slice(%x, %start{}, %size)\n", g, image, width, g);
    text += fmt::format("  %c{}: {}{}xi32 = tosa.conv2d(%s{}, %w{}, %bias, %zp, %none) ", g, image, width, g, g);
    text += "{pad=[1, 1, 1, 1], stride=[1, 1], dilation=[1, 1], acc_type=\"i32\", local_bound=false}\n";
  }
  return text + fmt::format("  %y: {}{}xi32 = tosa.concat(%c0, %c1, %c2) {{axis=3}}\n}}", image, 3 * width);
}

// Windows that move by twos and threes, over heights that these do not divide.
constexpr const char* strides = R"(graph @main(%x: 1x(h in 4..19)x9x4xi8) -> (%y, %d, %m, %a) {
  %w: 8x3x3x4xi8 = constant [WEIGHTS]
  %dw: 2x3x4x1xi8 = constant [1, -2, 3, 4, 5, 6, -7, 8, 9, 1, 2, -3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6, 7, 8]
  %bias: 1xi32 = constant [5]
  %zp: 1xi8 = constant [2]
  %y: 1x((h - 1)//2 + 1 for h in 4..19)x5x8xi32 = tosa.conv2d(%x, %w, %bias, %zp, %zp) {pad=[1, 1, 1, 1], stride=[2, 2], dilation=[1, 1], acc_type="i32", local_bound=false}
  %d: 1x(h//3 + 1 for h in 4..19)x3x4xi32 = tosa.depthwise_conv2d(%x, %dw, %bias, %zp, %zp) {pad=[0, 2, 0, 0], stride=[3, 3], dilation=[1, 1], acc_type="i32", local_bound=false}
  %m: 1x((h - 2)//2 + 1 for h in 4..19)x4x4xi8 = tosa.max_pool2d(%x) {kernel=[3, 3], stride=[2, 2], pad=[0, 1, 0, 0], nan_mode="propagate"}
  %a: 1x((h - 2)//2 + 1 for h in 4..19)x5x4xi8 = tosa.avg_pool2d(%x, %zp, %zp) {kernel=[3, 3], stride=[2, 2], pad=[0, 1, 1, 1], acc_type="i32"}
})";

// As TOSA has it at one size: the padding at the end is less by what a stride leaves.
void end_with_the_last_window(Graph& graph) {
  for (Node& node : graph.nodes)
    while (tosa::check_rest(tosa::View(graph, node))) {
      auto pad = node.attrs.get<std::vector<std::int64_t>>("pad");
      ASSERT_GT(pad[1]--, 0) << node.op.name();
      node.attrs.set("pad", pad);
    }
}

// A sum that is stored, and read further by who stores it.
constexpr const char* shared = R"(graph @main(%x: (b in 1..4)x(s in 1..24)xi32, %n: (b in 1..4)x1xi32) -> (%y, %z) {
  %a: (b in 1..4)x(s in 1..24)xi32 = tosa.add(%x, %n)
  %e: (b in 1..4)x(s in 1..24)xi32 = tosa.abs(%a)
  %y: (b in 1..4)x1xi32 = tosa.reduce_sum(%a) {axis=1}
  %z: 1x(s in 1..24)xi32 = tosa.reduce_sum(%e) {axis=0}
})";

// What the model gives for random inputs of these sizes is what the interpreter gives.
void expect_at(const Graph& graph, vulkan::ComputeModel& model, const Sizes& sizes, double tolerance) {
  auto at = specialise(graph, sizes);
  ASSERT_TRUE(at.ok()) << render(at.error(), false);
  end_with_the_last_window(*at);
  Net net;
  std::vector<Tensor> inputs;
  std::vector<Shape> shapes;
  std::vector<const void*> in;
  for (ValueId v : at->inputs) {
    const TensorType& type = (*at)[v].type;
    inputs.push_back({type, net.elements(type, is_float(type.dtype) ? -1 : -9, is_float(type.dtype) ? 1 : 9)});
    shapes.push_back(type.shape);
  }
  for (const Tensor& t : inputs) in.push_back(t.data.data());
  const auto wanted = interp::run(*at, inputs);
  ASSERT_TRUE(wanted.ok()) << render(wanted.error(), false);
  const auto resized = model.resize(shapes);
  ASSERT_TRUE(resized.ok()) << render(resized.error(), false);
  std::vector<std::vector<std::byte>> data;
  std::vector<void*> out;
  for (std::size_t i = 0; i < wanted->size(); ++i) {
    EXPECT_EQ((*resized)[i], (*wanted)[i].type.shape);
    out.push_back(data.emplace_back((*wanted)[i].type.storage_bytes(), std::byte{0x5a}).data());
  }
  const Status ran = model.run(in, out);
  ASSERT_TRUE(ran.ok()) << render(ran.error(), false);
  for (std::size_t i = 0; i < wanted->size(); ++i)
    expect_same({(*wanted)[i].type, Bytes::of(std::move(data[i]))}, (*wanted)[i], {tolerance, tolerance}, "sizes");
}

std::atomic<int> pipelines = 0;
PFN_vkCreateComputePipelines real_create = nullptr;
VkResult counted(VkDevice d, VkPipelineCache cache, std::uint32_t n, const VkComputePipelineCreateInfo* infos,
                 const VkAllocationCallbacks* by, VkPipeline* made) {
  pipelines += static_cast<int>(n);
  return real_create(d, cache, n, infos, by, made);
}

class VulkanSizes : public OnFaultyDevice {
 protected:
  void expect_at_all(const std::string& text, const std::vector<Sizes>& all, double tolerance) {
    const Graph graph = graph_of(text);
    real_create = kept.vkCreateComputePipelines;
    for (const auto tier : every_tier()) {
      device->vk.vkCreateComputePipelines = counted;
      auto model = vulkan::ComputeModel::load(compiled(graph, {&tier, 1}));
      if (!model.ok() && model.error().code == "vulkan.tier") continue;
      ASSERT_TRUE(model.ok()) << render(model.error(), false);
      pipelines = 0;
      for (const Sizes& sizes : all) expect_at(graph, *model, sizes, tolerance);
      EXPECT_EQ(pipelines, 0);
      auto clone = model->clone();
      ASSERT_TRUE(clone.ok());
      expect_at(graph, *clone, all.back(), tolerance);
      expect_at(graph, *model, all.front(), tolerance);
      EXPECT_EQ(pipelines, 0);
    }
  }
};

TEST_F(VulkanSizes, WindowsLeaveWhatTheirStrideDoesNotReach) {
  expect_at_all(strides, {{{"h", 19}}, {{"h", 4}}, {{"h", 5}}, {{"h", 6}}, {{"h", 12}}}, 0);
}

TEST_F(VulkanSizes, FloatsAtAnySize) {
  expect_at_all(attention, {{{"b", 4}, {"s", 24}}, {{"b", 1}, {"s", 1}}, {{"b", 3}, {"s", 7}}, {{"b", 2}, {"s", 24}}},
                1e-5);
}

TEST_F(VulkanSizes, CodesAtAnySize) {
  expect_at_all(images, {{{"b", 5}, {"h", 17}}, {{"b", 1}, {"h", 2}}, {{"b", 4}, {"h", 9}}}, 0);
}

TEST_F(VulkanSizes, GroupsOfChannelsAtAnySize) {
  for (const std::int64_t width : {4, 20}) {
    const std::vector<vulkan_program::TierId> every = every_tier();
    for (const auto& tier : compiled(graph_of(grouped(width)), every).tiers) {
      ASSERT_EQ(tier.dispatches.size(), 1u);
      EXPECT_EQ(tier.dispatches[0].kernel, "grouped_conv2d");
    }
    expect_at_all(grouped(width), {{{"b", 3}, {"h", 9}}, {{"b", 1}, {"h", 2}}, {{"b", 2}, {"h", 7}}}, 0);
  }
}

TEST_F(VulkanSizes, SeveralResultsAtAnySize) {
  const std::vector<vulkan_program::TierId> every = every_tier();
  EXPECT_EQ(compiled(graph_of(shared), every).tiers.back().dispatches.size(), 3u);
  expect_at_all(shared, {{{"b", 4}, {"s", 24}}, {{"b", 1}, {"s", 1}}, {{"b", 3}, {"s", 7}}}, 0);
}

// Numbers of a payload that has not been resized are those at the bounds.
TEST_F(VulkanSizes, ARecordingIsShort) {
  auto model = vulkan::ComputeModel::load(compiled(graph_of(attention), every_tier()));
  ASSERT_TRUE(model.ok()) << render(model.error(), false);
  double least = 1;
  for (std::int64_t s = 1; s <= 20; ++s) {
    const std::vector<Shape> shapes(2, Shape{2, s, 8});
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(model->resize(shapes).ok());
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  EXPECT_LT(least, 1e-3);
}

TEST_F(VulkanSizes, ShapesThatThereAreNot) {
  auto model = vulkan::ComputeModel::load(compiled(graph_of(attention), every_tier()));
  ASSERT_TRUE(model.ok()) << render(model.error(), false);
  const auto said_of = [&](const std::vector<Shape>& shapes) {
    const auto resized = model->resize(shapes);
    return resized.ok() ? "taken" : resized.error().code + ": " + resized.error().message;
  };
  EXPECT_EQ(said_of({{5, 3, 8}, {5, 3, 8}}), "model.size: q.0 is 5, outside of its range 1..4 (b)");
  EXPECT_EQ(said_of({{2, 25, 8}, {2, 25, 8}}), "model.size: q.1 is 25, outside of its range 1..24 (s)");
  EXPECT_EQ(said_of({{2, 3, 8}, {2, 4, 8}}), "model.size: k.1 is 4, and has to be 3, as q.1 is 3 (s)");
  EXPECT_EQ(said_of({{2, 3, 9}, {2, 3, 8}}), "model.size: q.2 is 9, and has to be 8");
  EXPECT_EQ(said_of({{0, 3, 8}, {0, 3, 8}}), "model.size: q.0 is 0, outside of its range 1..4 (b)");
  EXPECT_EQ(said_of({{2, 3, 8}, {2, 3, 8}}), "taken");
}

TEST(VulkanSizedPayload, LiesAreRefused) {
  constexpr vulkan_program::TierId base[] = {vulkan_program::TierId::base};
  const auto sum = [&] {
    return compiled(graph_of("graph @main(%a: (n in 1..100)xf32, %b: (n in 1..100)xf32) -> (%sum) "
                             "{ %sum: (n in 1..100)xf32 = tosa.add(%a, %b) }"),
                    base);
  };
  const auto said_of = [&](const std::function<void(Program&)>& change) {
    Program p = sum();
    change(p);
    const auto read = vulkan_program::read(vulkan_program::write(p).joined());
    return read.ok() ? "accepted" : read.error().code + ": " + read.error().message;
  };
  const std::string format = "vulkan-program.format: ";
  EXPECT_EQ(said_of([](Program&) {}), "accepted");
  EXPECT_EQ(said_of([](Program& p) { p.tiers[0].dispatches[0].sizes[0].expression = 9; }),
            format + "dispatch 0 has a size 9 of 2 in push constant 0 of 1");
  EXPECT_EQ(said_of([](Program& p) { p.tiers[0].dispatches[0].sizes[0].push = 1; }),
            format + "dispatch 0 has a size 0 of 2 in push constant 1 of 1");
  EXPECT_EQ(said_of([](Program& p) { p.tiers[0].dispatches[0].group_count = 2; }),
            format + "dispatch 0 has a group count 2 of 2");
  EXPECT_EQ(said_of([](Program& p) {
              p.expressions[1] = Dim(Symbol{"m", {1, 9}});
            }),
            format + "no input has the size m");
  EXPECT_EQ(said_of([](Program& p) {
              p.expressions[1] = Dim(Symbol{"n", {0, 100}});
            }),
            format + "the size 'n' has no bounds that a tensor could have");
  // What a dispatch would be at sizes that are in bounds, but not what is launched.
  Program p = sum();
  p.expressions[p.tiers[0].dispatches[0].group_count] = Dim(Symbol{"n", {1, 100}}) * Dim(std::int64_t{1} << 40);
  const auto sizes = vulkan_program::sizes_of(p, std::vector<Shape>(2, Shape{50}));
  ASSERT_TRUE(sizes.ok()) << render(sizes.error(), false);
  const Status resized = vulkan_program::resize(p, *sizes, p.tiers[0].dispatches);
  ASSERT_FALSE(resized.ok());
  EXPECT_EQ(resized.error().message, "elementwise of 'sum' would have 54975581388800 groups at these sizes");
}

}  // namespace
}  // namespace tosaic::test
