// SPDX-License-Identifier: Apache-2.0
// Which tier of a program a device runs.
#pragma once
#include "formats/vulkan_program/tiers.h"
#include "formats/vulkan_program/vulkan_program.h"
#include "vulkan/device.h"

namespace tosaic::vulkan {

// The environment's TOSAIC_VULKAN_TIER, where it is set, allows one tier alone: for tests, and to compare.
// Errors: vulkan.tier.

// The program's tiers that the device may run, best first; at least one.
Result<std::vector<std::size_t>> tiers_of_program(const Device& device, const vulkan_program::Program& program);
// The best tier for the device that `wanted` chooses: what a program that is made for it alone is to have.
Result<vulkan_program::TierId> tier_of_device(const std::string& wanted);

}  // namespace tosaic::vulkan
