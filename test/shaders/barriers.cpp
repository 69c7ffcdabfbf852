// SPDX-License-Identifier: Apache-2.0
// How often the device waits between dispatches: once for each level of what depends on each other, not for each
// dispatch.
#include "shaders/faulty_device.h"

namespace tosaic::test {
namespace {

using vulkan_program::TierId;

PFN_vkCmdPipelineBarrier real_barrier = nullptr;
int barriers = 0;

class Barriers : public OnFaultyDevice {
 protected:
  void SetUp() override {
    OnFaultyDevice::SetUp();
    if (!device) return;
    if (!is_cpu()) GTEST_SKIP() << for_cpu_devices;
    real_barrier = kept.vkCmdPipelineBarrier;
    device->vk.vkCmdPipelineBarrier =
        [](VkCommandBuffer commands, VkPipelineStageFlags before, VkPipelineStageFlags after, VkDependencyFlags flags,
           std::uint32_t n, const VkMemoryBarrier* memory, std::uint32_t buffers,
           const VkBufferMemoryBarrier* of_buffers, std::uint32_t images, const VkImageMemoryBarrier* of_images) {
          barriers += before == VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT && after == before;
          real_barrier(commands, before, after, flags, n, memory, buffers, of_buffers, images, of_images);
        };
  }
  // Between the dispatches of a run, whose results are right.
  int barriers_of(const Net& net, TierId tier = TierId::cpu) {
    expect_on_device(net, {1e-4, 1e-5}, "barriers");
    auto model = vulkan::ComputeModel::load(compiled(net.graph, {&tier, 1}));
    EXPECT_TRUE(model.ok());
    barriers = 0;
    EXPECT_TRUE(model.ok() && model->clone().ok());  // which is recorded and nothing else
    return barriers;
  }
};

ValueId product(Net& net, ValueId x) {
  return net.node("matmul",
                  {x, net.constant(DType::f32, {1, 24, 24}, -0.3, 0.3), net.zero(DType::f32), net.zero(DType::f32)});
}

// Chains of products, one behind the other in the program or step by step.
Net chains(int count, int length, bool in_turns) {
  Net net(count);
  std::vector<ValueId> ends;
  for (int c = 0; c < count; ++c) ends.push_back(net.input(DType::f32, {1, 8, 24}, -1, 1));
  for (int i = 0; i < count * length; ++i) {
    ValueId& end = ends[static_cast<std::size_t>(in_turns ? i % count : i / length)];
    end = product(net, end);
  }
  for (ValueId end : ends) net.output(end);
  return net;
}

TEST_F(Barriers, AreBetweenLevels) {
  for (int length : {1, 2, 5}) EXPECT_EQ(barriers_of(chains(1, length, false)), length - 1);
  for (int count : {2, 4}) {
    EXPECT_EQ(barriers_of(chains(count, 1, false)), 0);
    EXPECT_EQ(barriers_of(chains(count, 2, true)), 1);
  }
  // One value that all read.
  Net net(3);
  const ValueId x = product(net, net.input(DType::f32, {1, 8, 24}, -1, 1));
  for (int i = 0; i < 3; ++i) net.output(product(net, x));
  EXPECT_EQ(barriers_of(net), 1);
}

// On GPUs, chains that need nothing of each other do not wait for each other either, whatever their order in the
// program: what they take of memory lies apart.
TEST_F(Barriers, OfIndependentChainsAreAsDeepAsOne) {
  for (int count : {2, 4})
    for (int length : {2, 3, 8})
      for (bool in_turns : {false, true})
        EXPECT_EQ(barriers_of(chains(count, length, in_turns), TierId::base), length - 1) << count << in_turns;
}

// Unless that takes much: 4 chains of values of 4 MB would need 8 of these at once instead of 2.
TEST_F(Barriers, MemoryIsWorthMore) {
  Net net(4);
  const ValueId weights = net.constant(DType::f32, {1, 1024, 1024}, 0, 0);
  for (int c = 0; c < 4; ++c) {
    ValueId x = net.input(DType::f32, {1, 1024, 1024}, 0, 0);
    for (int i = 0; i < 3; ++i) x = net.node("matmul", {x, weights, net.zero(DType::f32), net.zero(DType::f32)});
    net.output(x);
  }
  const TierId base = TierId::base;
  const auto program = shaders::compile(net.graph, {&base, 1});
  ASSERT_TRUE(program.ok());
  EXPECT_LE(program->tiers.at(0).activation_bytes, 8u << 20);
}

// Each is timed alone.
TEST_F(Barriers, AreBeforeEachDispatchThatIsTimed) {
  auto model = vulkan::ComputeModel::load(compiled(chains(3, 2, true).graph, every_tier()));
  ASSERT_TRUE(model.ok()) << render(model.error(), false);
  barriers = 0;
  ASSERT_TRUE(model->measure(true).ok());
  EXPECT_EQ(barriers, 6);
}

}  // namespace
}  // namespace tosaic::test
