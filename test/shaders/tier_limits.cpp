// SPDX-License-Identifier: Apache-2.0
// What the modules of a tier ask of a device is what the tier's row says, and a device that has less runs another one.
#include "shaders/tier_limits.h"

#include "formats/spirv/compute/check_shader.h"
#include "shaders/faulty_device.h"

namespace tosaic::test {

using vulkan_program::TierId;

namespace {

void expect_at_most(std::uint64_t most, std::uint64_t wanted, const char* what, const vulkan_program::Tier& tier,
                    const vulkan_program::Dispatch& d) {
  EXPECT_LE(wanted, most) << what << " of '" << d.value << "' (" << d.kernel << ", tier " << tier.name << ")";
}

}  // namespace

Asked asked_of(const vulkan_program::Tier& tier) {
  Asked asked;
  for (const vulkan_program::Dispatch& d : tier.dispatches) {
    const auto shader = spirv::check_shader(tier.modules.at(d.module).as<spirv::Word>());
    EXPECT_TRUE(shader.ok());
    if (!shader.ok()) continue;
    asked.invocations = std::max<std::uint64_t>(asked.invocations, shader->group_size);
    asked.shared_bytes = std::max<std::uint64_t>(asked.shared_bytes, shader->shared_bytes);
    asked.push_bytes = std::max<std::uint64_t>(asked.push_bytes, 4 * d.pushes.size());
    asked.bindings = std::max<std::uint64_t>(asked.bindings, shader->bindings.size());
  }
  return asked;
}

void expect_within_limits(const vulkan_program::Program& program) {
  for (const vulkan_program::Tier& tier : program.tiers) {
    const vulkan_program::TierRow* row = vulkan_program::find_tier(tier.name);
    ASSERT_NE(row, nullptr);
    for (const vulkan_program::Dispatch& d : tier.dispatches) {
      vulkan_program::Tier one{tier.name, 0, {tier.modules.at(d.module)}, 0, {d}};
      one.dispatches[0].module = 0;
      const Asked asked = asked_of(one);
      expect_at_most(row->most_invocations, asked.invocations, "invocations", tier, d);
      expect_at_most(row->most_shared_bytes, asked.shared_bytes, "shared bytes", tier, d);
      expect_at_most(128, asked.push_bytes, "bytes of push constants", tier, d);  // every device takes so many
      expect_at_most(vulkan_program::most_ranges, asked.bindings, "bindings", tier, d);
      for (std::uint32_t groups : d.groups) expect_at_most(vulkan_program::most_groups, groups, "groups", tier, d);
    }
  }
}

namespace {

Net product(DType dtype, std::int64_t rows, std::int64_t depth, std::int64_t columns) {
  Net net(9);
  net.output(net.node("matmul", {net.input(dtype, {1, rows, depth}, -1, 1),
                                 net.input(dtype, {1, depth, columns}, -1, 1), net.zero(dtype), net.zero(dtype)}));
  return net;
}

// Large enough for every row of the tables of tiles: nothing of this is run.
TEST(TierLimits, ProductsOfEverySize) {
  for (DType dtype : {DType::f32, DType::f16, DType::i8})
    for (std::int64_t rows : {1, 16, 200, 1024})
      for (std::int64_t depth : {40, 256, 1024})
        for (std::int64_t columns : {8, 64, 96, 1024})
          for (TierId tier : every_tier()) {
            const Net net = product(dtype, rows, depth, columns);
            expect_within_limits(*shaders::compile(net.graph, {&tier, 1}));
          }
}

// The check of the check: a tier that asks for more than another one's row allows is found.
TEST(TierLimits, TheLargestAreWhatRowsSay) {
  std::vector<Asked> most(every_tier().size());
  for (TierId tier : every_tier())
    for (std::int64_t size : {64, 512, 2048}) {
      const Net net = product(tier == TierId::coopmat ? DType::f16 : DType::f32, size, 256, size);
      const auto program = shaders::compile(net.graph, {&tier, 1});
      ASSERT_TRUE(program.ok());
      const Asked asked = asked_of(program->tiers.at(0));
      Asked& known = most.at(static_cast<std::size_t>(tier));
      known.invocations = std::max(known.invocations, asked.invocations);
      known.shared_bytes = std::max(known.shared_bytes, asked.shared_bytes);
    }
  EXPECT_GT(most.at(static_cast<std::size_t>(TierId::coopmat)).shared_bytes, row_of(TierId::base).most_shared_bytes);
  EXPECT_GT(most.at(static_cast<std::size_t>(TierId::base)).shared_bytes, row_of(TierId::base).most_shared_bytes / 2);
  EXPECT_GE(most.at(static_cast<std::size_t>(TierId::base)).invocations, row_of(TierId::base).most_invocations / 2);
}

// ---- devices that have less

PFN_vkGetPhysicalDeviceProperties real_properties = nullptr;
void (*weaken)(VkPhysicalDeviceLimits&) = nullptr;
void weak_properties(VkPhysicalDevice d, VkPhysicalDeviceProperties* p) {
  real_properties(d, p);
  weaken(p->limits);
}

class Fallback : public OnFaultyDevice {
 protected:
  // The tier that a device with these limits and traits loads; the code of the refusal.
  std::string tier_of(
      const Net& net, std::span<const TierId> tiers, void (*limits)(VkPhysicalDeviceLimits&),
      void (*traits)(vulkan_program::DeviceTraits&) = [](auto&) {}) {
    device->forget();
    real_properties = vkGetPhysicalDeviceProperties;
    weaken = limits;
    vkGetPhysicalDeviceProperties = weak_properties;
    auto opened = vulkan::Device::open("", vulkan::Use::compute);
    vkGetPhysicalDeviceProperties = real_properties;
    EXPECT_TRUE(opened.ok());
    if (!opened.ok()) return "none";
    traits(const_cast<vulkan::DeviceInfo&>((*opened)->info()).traits);
    const auto model = vulkan::ComputeModel::load(compiled(net.graph, tiers));
    (*opened)->forget();
    if (!model.ok()) said = model.error();
    return model.ok() ? model->tier() : model.error().code;
  }
};

TEST_F(Fallback, TheNextTierWhereTheBestIsBeyondALimit) {
  if (!is_cpu()) GTEST_SKIP() << for_cpu_devices;
  const Net net = product(DType::f32, 16, 64, 64);
  const std::vector<TierId> all = every_tier();
  EXPECT_EQ(tier_of(net, all, [](auto&) {}), "cpu");
  EXPECT_EQ(tier_of(net, all, [](auto& l) { l.maxTexelBufferElements = 16; }), "base");
  EXPECT_EQ(tier_of(net, all, [](auto& l) { l.maxPerStageDescriptorSampledImages = 0; }), "base");
  // Where none is left the last one says why.
  EXPECT_EQ(tier_of(net, all,
                    [](auto& l) {
                      l.maxTexelBufferElements = 16;
                      l.maxComputeWorkGroupInvocations = 4;
                    }),
            "vulkan.limit");
  EXPECT_NE(said.message.find("invocations in a group"), std::string::npos) << said.message;
  EXPECT_EQ(tier_of(net, std::vector{TierId::cpu}, [](auto& l) { l.maxTexelBufferElements = 16; }), "vulkan.limit");
  EXPECT_NE(said.message.find("texels in one buffer"), std::string::npos) << said.message;
}

// A GPU that has matrices, but not the memory for their tiles.
TEST_F(Fallback, MatricesWithoutEnoughSharedMemory) {
  const Net net = product(DType::f16, 1024, 256, 1024);
  const auto gpu = [](vulkan_program::DeviceTraits& t) {
    t.is_cpu = false;
    t.matrices = t.storage_16 = t.dots = t.fast_dots = true;
  };
  const auto program = compiled(net.graph, every_tier());
  ASSERT_TRUE(std::ranges::any_of(program.tiers, [](const auto& t) { return t.name == "coopmat"; }));
  EXPECT_EQ(tier_of(
                net, every_tier(), [](auto& l) { l.maxComputeSharedMemorySize = 16 << 10; }, gpu),
            "base");
  EXPECT_EQ(tier_of(
                net, std::vector{TierId::coopmat}, [](auto& l) { l.maxComputeSharedMemorySize = 16 << 10; }, gpu),
            "vulkan.limit");
  EXPECT_NE(said.message.find("bytes that a group shares"), std::string::npos) << said.message;
}

}  // namespace
}  // namespace tosaic::test
