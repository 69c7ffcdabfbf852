// SPDX-License-Identifier: Apache-2.0
// What runs on GPUs with memory of their own and nowhere else: constants that are staged, inputs that are written into
// the device's memory or copied there, outputs that are copied to where the host reads fast, and waiting for a fence.
#include <chrono>

#include "shaders/discrete_device.h"

namespace tosaic::test {
namespace {

using Discrete = OnDiscreteDevice;
using Clock = std::chrono::steady_clock;

Net products() {
  Net net(5);
  const ValueId x = net.input(DType::f32, {1, 20, 30}, -1, 1), y = net.input(DType::f32, {1, 20, 30}, -1, 1);
  const auto product = [&](ValueId v) {
    return net.node("matmul",
                    {v, net.constant(DType::f32, {1, 30, 30}, -1, 1), net.zero(DType::f32), net.zero(DType::f32)});
  };
  net.output(net.node("add", {product(product(x)), y}));
  net.output(net.node("reduce_max", {x}, {{"axis", std::int64_t{2}}, {"nan_mode", std::string("propagate")}}));
  return net;
}
Net codes() {
  Net net(6);
  const ValueId x = net.input(DType::i8, {1, 9, 9, 8}, -128, 127);
  net.output(net.rescale(
      net.node("conv2d",
               {x, net.constant(DType::i8, {12, 3, 3, 8}, -127, 127), net.constant(DType::i32, {12}, -99, 99),
                net.numbers(DType::i8, {5}), net.numbers(DType::i8, {0})},
               {{"pad", std::vector<std::int64_t>{1, 1, 1, 1}},
                {"stride", std::vector<std::int64_t>{1, 1}},
                {"dilation", std::vector<std::int64_t>{1, 1}},
                {"local_bound", false},
                {"acc_type", DType::i32}}),
      DType::i8, 38, 40, true, 0, 5));
  return net;
}
// 21 MB of weights.
Net large() {
  Net net(7);
  net.output(
      net.node("matmul", {net.input(DType::f32, {1, 1, 2048}, -1, 1), net.constant(DType::f32, {1, 2048, 2600}, -1, 1),
                          net.zero(DType::f32), net.zero(DType::f32)}));
  return net;
}

TEST_F(Discrete, ComputesAsTheInterpreter) {
  for (const bool has_both : {false, true}) {
    open(has_both);
    expect_on_device(products(), {1e-5, 1e-5}, "products");
    expect_on_device(codes(), {}, "codes");
    EXPECT_EQ(gpu.mapped, has_both ? (std::set{uncached, cached, both}) : (std::set{uncached, cached}));
    EXPECT_GT(gpu.most_taken[device_only], 0u);
    EXPECT_TRUE(gpu.pieces.empty());
  }
}

// The copies of a run as they are recorded, without those of loading.
std::vector<DiscreteDevice::Copy> copies_of_run(DiscreteDevice& gpu, const Net& net) {
  auto model = vulkan::ComputeModel::load(compiled(net.graph, every_tier()));
  if (!model.ok()) {
    ADD_FAILURE() << render(model.error(), false);
    return {};
  }
  EXPECT_EQ(model->tier(), "base");
  gpu.copies.clear();
  EXPECT_TRUE(model->measure(true).ok());  // records it anew
  return gpu.copies;
}

// A buffer: the sum of all x so far stays on the device from run to run, the largest of each row comes back.
TEST_F(Discrete, WhatStaysIsCopiedOnTheDeviceAlone) {
  Net net(8);
  const ValueId x = net.input(DType::f32, {1, 20, 30}, -1, 1), old = net.input(DType::f32, {1, 20, 30}, -1, 1);
  const ValueId sum = net.node("add", {x, old});
  net.output(sum);
  net.output(net.node("reduce_max", {sum}, {{"axis", std::int64_t{2}}, {"nan_mode", std::string("propagate")}}));
  const std::uint64_t image = 20 * 30 * 4, column = 20 * 4;
  for (const bool has_both : {false, true}) {
    open(has_both);
    auto model = vulkan::ComputeModel::load(compiled(net.graph, every_tier()));
    ASSERT_TRUE(model.ok()) << render(model.error(), false);
    ASSERT_TRUE(model->can_stay(0));
    const std::vector<float> ones(20 * 30, 1.0f), first(20 * 30, 0.5f);
    std::vector<float> largest(20), fetched(20 * 30);
    const auto run = [&](std::uint32_t origin) {
      gpu.copies.clear();
      const void* in[] = {ones.data(), origin ? nullptr : first.data()};
      void* out[] = {nullptr, largest.data()};
      const Status ran = model->run(in, out, {{0, origin}, {1, 0}});
      EXPECT_TRUE(ran.ok()) << render(ran.error(), false);
      return largest;
    };
    EXPECT_EQ(run(0), std::vector<float>(20, 1.5f));
    EXPECT_EQ(run(1), std::vector<float>(20, 2.5f));
    using Copies = std::vector<DiscreteDevice::Copy>;
    if (has_both)
      EXPECT_EQ(gpu.copies, (Copies{{both, both, image}, {both, cached, column}}));
    else
      EXPECT_EQ(
          gpu.copies,
          (Copies{{uncached, device_only, image}, {device_only, device_only, image}, {device_only, cached, column}}));
    EXPECT_EQ(run(1), std::vector<float>(20, 3.5f));
    EXPECT_EQ(gpu.copies, Copies{}) << "the commands are those of the run before";
    EXPECT_TRUE(model->fetch(0, std::as_writable_bytes(std::span(fetched))).ok());
    EXPECT_EQ(fetched, std::vector<float>(20 * 30, 3.5f));
    EXPECT_EQ(run(1), std::vector<float>(20, 4.5f)) << "it is there still";
    EXPECT_EQ(run(0), std::vector<float>(20, 1.5f));
  }
}

// Small results are written to where the host reads them, others are copied there.
TEST_F(Discrete, InputsAndOutputsGoTheShortWay) {
  using Copies = std::vector<DiscreteDevice::Copy>;
  const std::uint64_t image = 20 * 30 * 4, many = 200 * 100 * 4;
  Net larger(10);
  larger.output(larger.node(
      "negate", {larger.input(DType::f32, {200, 100}, -1, 1), larger.zero(DType::f32), larger.zero(DType::f32)}));
  open(false);
  EXPECT_EQ(copies_of_run(gpu, products()), (Copies{{uncached, device_only, image}, {uncached, device_only, image}}));
  EXPECT_EQ(copies_of_run(gpu, larger), (Copies{{uncached, device_only, many}, {device_only, cached, many}}));
  open(true);
  EXPECT_EQ(copies_of_run(gpu, products()), Copies());
  EXPECT_EQ(copies_of_run(gpu, larger), (Copies{{both, cached, many}}));
  expect_on_device(larger, {}, "larger");
}

TEST_F(Discrete, ConstantsAreStagedInPieces) {
  const Net net = large();
  for (const bool has_both : {false, true}) {
    open(has_both);
    expect_on_device(net, {1e-3, 1e-4}, "large");
    // Weights stay out of the memory that both see: it is small, and slow for one of them.
    EXPECT_LT(gpu.most_taken[both], 1u << 20);
    const VkDeviceSize staged = 16 << 20;
    EXPECT_GE(gpu.most_taken[uncached], staged);
    EXPECT_LT(gpu.most_taken[uncached], staged + (1 << 20));
    EXPECT_NE(std::ranges::find(gpu.copies, DiscreteDevice::Copy{uncached, device_only, staged}), gpu.copies.end());
  }
}

// What is large comes in parts: of each the host knows when it is there, or it waits for all of them.
TEST_F(Discrete, LargeResultsAreCopiedAsTheyCome) {
  using Copies = std::vector<DiscreteDevice::Copy>;
  Net net(9);
  const ValueId x = net.input(DType::f32, {3, 200, 301}, -1, 1), y = net.input(DType::f32, {77}, -1, 1);
  net.output(net.node("negate", {x, net.zero(DType::f32), net.zero(DType::f32)}));
  net.output(net.node("negate", {y, net.zero(DType::f32), net.zero(DType::f32)}));
  open(true);
  const std::uint64_t all = 3 * 200 * 301 * 4 + 77 * 4, part = all / 4;
  EXPECT_EQ(copies_of_run(gpu, net), (Copies{{both, cached, part},
                                             {both, cached, part},
                                             {both, cached, part},
                                             {both, cached, part - 77 * 4},
                                             {both, cached, 77 * 4}}));
  const auto expect_result = [&] { expect_on_device(net, {}, "parts"); };
  expect_result();
  // The host looks for a while, and then waits for the fence.
  made->vk.vkGetEventStatus = [](VkDevice, VkEvent) { return VK_EVENT_RESET; };
  gpu.waits = 0;
  expect_result();
  EXPECT_GT(gpu.waits, 0);
  // The first part comes, and others do not.
  made->vk.vkGetEventStatus = [](VkDevice d, VkEvent event) {
    static int looks = 0;
    return looks++ < 4 ? gpu.real.vkGetEventStatus(d, event) : VK_EVENT_RESET;
  };
  expect_result();
  // A device without events.
  made->vk.vkCreateEvent = [](VkDevice, const VkEventCreateInfo*, const VkAllocationCallbacks*, VkEvent*) {
    return VK_ERROR_FEATURE_NOT_PRESENT;
  };
  EXPECT_EQ(copies_of_run(gpu, net).size(), 2u);
  expect_result();
}

// 256 MiB on many GPUs, and other programs have some of it.
TEST_F(Discrete, MemoryThatBothSeeMayBeFull) {
  open(true);
  gpu.room_in_both = 4096;
  expect_on_device(products(), {1e-5, 1e-5}, "products");
  EXPECT_EQ(gpu.most_taken[both], 0u);
  EXPECT_EQ(gpu.mapped, (std::set{uncached, cached}));
}

TEST_F(Discrete, LooksAtTheFenceBeforeItBlocks) {
  open(true);
  setenv("TOSAIC_VULKAN_SELF_TEST", "never", 1);
  const Net net = codes();
  auto model = vulkan::ComputeModel::load(compiled(net.graph, every_tier()));
  ASSERT_TRUE(model.ok()) << render(model.error(), false);
  std::vector<std::byte> result(model->outputs().at(0).type.storage_bytes());
  const void* in[] = {net.inputs.at(0).data.data()};
  void* out[] = {result.data()};
  gpu.looks = gpu.waits = 0;
  gpu.busy = true;  // it blocks, after a while
  const auto begin = Clock::now();
  ASSERT_TRUE(model->run(in, out).ok());
  EXPECT_LT(std::chrono::duration<double>(Clock::now() - begin).count(), 2);
  EXPECT_GT(gpu.looks, 1);
  EXPECT_EQ(gpu.waits, 1);
  gpu.busy = false;  // it is done while we look: the device has the time that it takes before it says so
  made->vk.vkGetFenceStatus = [](VkDevice d, VkFence fence) {
    gpu.real.vkWaitForFences(d, 1, &fence, VK_TRUE, UINT64_MAX);
    return VK_SUCCESS;
  };
  gpu.waits = 0;
  ASSERT_TRUE(model->run(in, out).ok());
  EXPECT_EQ(gpu.waits, 0);
  // What computes on the CPU's cores needs them.
  const_cast<vulkan::DeviceInfo&>(made->info()).type = VK_PHYSICAL_DEVICE_TYPE_CPU;
  made->vk.vkGetFenceStatus = [](VkDevice, VkFence) {
    ++gpu.looks;
    return VK_SUCCESS;
  };
  gpu.looks = gpu.waits = 0;
  ASSERT_TRUE(model->run(in, out).ok());
  EXPECT_EQ(gpu.looks, 0);
  EXPECT_EQ(gpu.waits, 1);
}

TEST_F(Discrete, ALossWhileLookingIsALoss) {
  open(true);
  auto model = vulkan::ComputeModel::load(compiled(codes().graph, every_tier()));
  ASSERT_TRUE(model.ok()) << render(model.error(), false);
  made->vk.vkGetFenceStatus = [](VkDevice d, VkFence fence) {
    gpu.real.vkWaitForFences(d, 1, &fence, VK_TRUE, UINT64_MAX);
    return VK_ERROR_DEVICE_LOST;
  };
  const Net net = codes();
  std::vector<std::byte> result(model->outputs().at(0).type.storage_bytes());
  const void* in[] = {net.inputs.at(0).data.data()};
  void* out[] = {result.data()};
  const Status ran = model->run(in, out);
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.error().code, "vulkan.lost");
  const auto next = vulkan::Device::open("", vulkan::Use::compute);
  ASSERT_TRUE(next.ok());
  EXPECT_NE(*next, made);
}

}  // namespace
}  // namespace tosaic::test
