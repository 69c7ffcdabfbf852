// SPDX-License-Identifier: Apache-2.0
// A device of this machine whose functions a test replaces by others.
#pragma once
#include <cstdlib>

#include "shaders/on_device.h"
#include "vulkan/compute_model.h"
#include "vulkan/device.h"

namespace tosaic::test {

// Of tests that make another device of this machine's, or many: GPUs are what they are, and have few of them.
inline constexpr const char* for_cpu_devices = "for a CPU device, of which another one can be made";

class OnFaultyDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (without_vulkan()) GTEST_SKIP() << no_device;
    auto opened = vulkan::Device::open("", vulkan::Use::compute);
    ASSERT_TRUE(opened.ok()) << render(opened.error(), false);
    device = *opened;
    kept = device->vk;
    setenv("TOSAIC_VULKAN_SELF_TEST", "always", 1);
  }
  bool is_cpu() const { return device && device->info().type == VK_PHYSICAL_DEVICE_TYPE_CPU; }
  void TearDown() override {
    if (device) device->vk = kept;
    unsetenv("TOSAIC_VULKAN_SELF_TEST");
  }
  static std::string code_of(vulkan_program::Program program) {
    const auto model = vulkan::ComputeModel::load(std::move(program));
    if (model.ok()) return "loaded";
    said = model.error();
    return said.code;
  }
  std::shared_ptr<vulkan::Device> device;
  VolkDeviceTable kept{};
  static inline Diagnostic said;
};

}  // namespace tosaic::test
