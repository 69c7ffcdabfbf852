// SPDX-License-Identifier: Apache-2.0
// Which device is taken, and what is said when there is none.
#include <gtest/gtest.h>

#include "vulkan/drivers.h"

namespace tosaic::vulkan {
namespace {

constexpr std::uint32_t v12 = VK_API_VERSION_1_2, v13 = VK_API_VERSION_1_3;
const DeviceInfo lavapipe{0, "llvmpipe (LLVM 15)", VK_PHYSICAL_DEVICE_TYPE_CPU, v13, true, false};
const DeviceInfo integrated{1, "Mali-G999", VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, v13, true, false};
const DeviceInfo discrete{2, "Big GPU", VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, v13, false, false};
const DeviceInfo old{3, "Old GPU", VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, v12, true, false};

std::string code(const std::vector<DeviceInfo>& devices, const std::string& wanted) {
  const auto chosen = choose(devices, wanted);
  return chosen.ok() ? "device " + devices[*chosen].name : chosen.error().code;
}

TEST(VulkanDevices, BestThatCan) {
  EXPECT_EQ(code({lavapipe, integrated, discrete, old}, ""), "device Mali-G999");
  EXPECT_EQ(code({lavapipe, discrete, old}, ""), "device llvmpipe (LLVM 15)");
}
TEST(VulkanDevices, ByNameOrIndex) {
  EXPECT_EQ(code({lavapipe, integrated}, "LLVMPIPE"), "device llvmpipe (LLVM 15)");
  EXPECT_EQ(code({lavapipe, integrated}, "1"), "device Mali-G999");
  EXPECT_EQ(code({lavapipe, integrated}, "0"), "device llvmpipe (LLVM 15)");
}
TEST(VulkanDevices, Refusals) {
  EXPECT_EQ(code({}, ""), "vulkan.no-driver");
  EXPECT_EQ(code({lavapipe}, "7"), "vulkan.device");
  EXPECT_EQ(code({lavapipe}, "geforce"), "vulkan.device");
  EXPECT_EQ(code({old}, ""), "vulkan.version");
  EXPECT_EQ(code({lavapipe, old}, "old"), "vulkan.version");
  EXPECT_EQ(code({discrete}, ""), "vulkan.no-extension");
  EXPECT_EQ(code({old, discrete}, ""), "vulkan.no-extension");  // the one that the emulation layer can help
  const auto none = choose({discrete}, "");
  EXPECT_NE(none.error().help.find("ai_ml_emulation_layer_for_vulkan"), std::string::npos);
}

}  // namespace
}  // namespace tosaic::vulkan
