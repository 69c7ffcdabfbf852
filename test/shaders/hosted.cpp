// SPDX-License-Identifier: Apache-2.0
// Control flow and VARIABLEs on a Vulkan device, with the host between the pieces: results are the interpreter's.
#include <cstdlib>

#include "delegates/vulkan_graph/hosted_graph.h"
#include "shaders/on_device.h"

namespace tosaic::test {
namespace {

using delegates::HostedGraph;

// A running sum; as long as it is below 50 it grows, by another amount where an element is negative; then a product.
constexpr const char* text = R"(graph @main(%x: 4xf32) -> (%y, %turns, %sum) {
  %zero: 1xi32 = constant [0]
  %shift: 1xi8 = constant [0]
  %first: 4xf32 = constant [1.0, 2.0, 3.0, 4.0]
  tosa.variable(%first) {name="sum", var_shape=[4], type=f32}
  %before: 4xf32 = tosa.variable_read() {name="sum"}
  %sum: 4xf32 = tosa.add(%before, %x)
  tosa.variable_write(%sum) {name="sum"}
  %turns: 1xi32, %grown: 4xf32 = tosa.while_loop(%zero, %sum) (
    graph @below(%n: 1xi32, %v: 4xf32) -> (%go) {
      %limit: 1xf32 = constant [50.0]
      %top: 1xf32 = tosa.reduce_max(%v) {axis=0, nan_mode="propagate"}
      %go: 1xbool = tosa.greater(%limit, %top)
    }
    graph @grow(%n: 1xi32, %v: 4xf32) -> (%m, %w) {
      %one: 1xi32 = constant [1]
      %none: 1xf32 = constant [0.0]
      %m: 1xi32 = tosa.add(%n, %one)
      %least: 1xf32 = tosa.reduce_min(%v) {axis=0, nan_mode="propagate"}
      %negative: 1xbool = tosa.greater(%none, %least)
      %w: 4xf32 = tosa.cond_if(%negative, %v) (
        graph @far(%a: 4xf32) -> (%b) {
          %ten: 4xf32 = constant [10.0, 10.0, 10.0, 10.0]
          %b: 4xf32 = tosa.add(%a, %ten)
        }
        graph @near(%a: 4xf32) -> (%b) {
          %b: 4xf32 = tosa.add(%a, %a)
        }
      )
    }
  )
  %y: 4xf32 = tosa.mul(%grown, %x, %shift)
})";

Tensor of(std::vector<float> values) {
  const TensorType type{DType::f32, Shape{static_cast<std::int64_t>(values.size())}};
  return {type, Bytes::of(std::move(values))};
}

TEST(VulkanControlFlow, IsTheInterpreters) {
  if (without_vulkan()) GTEST_SKIP() << no_device;
  auto graph = parse(text);
  ASSERT_TRUE(graph.ok()) << render(graph.error(), false);
  const Status right = tosa::verify_graph(*graph, tosa::Spec::everything());
  ASSERT_TRUE(right.ok()) << render(right.error(), false);
  ASSERT_TRUE(delegates::needs_host(*graph));
  auto hosted = HostedGraph::load(*graph, "");
  ASSERT_TRUE(hosted.ok()) << render(hosted.error(), false);
  const auto expect_runs = [&](HostedGraph& runs, tosa::Variables& variables, const std::vector<float>& x) {
    const auto wanted = interp::run(*graph, {of(x)}, {.variables = &variables});
    ASSERT_TRUE(wanted.ok()) << render(wanted.error(), false);
    const auto found = runs.run({of(x)});
    ASSERT_TRUE(found.ok()) << render(found.error(), false);
    for (std::size_t i = 0; i < wanted->size(); ++i) expect_same((*found)[i], (*wanted)[i], {}, "hosted");
  };
  tosa::Variables variables, others;
  expect_runs(*hosted, variables, {1, -30, 2, 3});
  expect_runs(*hosted, variables, {0.5, 1, 2, 3});
  auto clone = hosted->clone();
  ASSERT_TRUE(clone.ok()) << render(clone.error(), false);
  expect_runs(*clone, others, {1, 1, 1, 1});        // in the state at first
  expect_runs(*hosted, variables, {100, 1, 2, 3});  // no turn
  hosted->reset();
  variables.clear();
  expect_runs(*hosted, variables, {1, 2, 3, 4});
  EXPECT_GT(hosted->device_seconds(), 0);
}

TEST(VulkanControlFlow, ALoopWithoutEnd) {
  if (without_vulkan()) GTEST_SKIP() << no_device;
  auto graph = parse(text);
  ASSERT_TRUE(graph.ok());
  auto hosted = HostedGraph::load(*graph, "");
  ASSERT_TRUE(hosted.ok()) << render(hosted.error(), false);
  setenv("TOSAIC_LOOP_LIMIT", "20", 1);
  const auto found = hosted->run({of({-1, -2, -3, -4})});  // all are 0, and stay so
  unsetenv("TOSAIC_LOOP_LIMIT");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, "run.loop-limit");
  EXPECT_TRUE(hosted->run({of({100, 1, 1, 1})}).ok());
}

}  // namespace
}  // namespace tosaic::test
