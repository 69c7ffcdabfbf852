// SPDX-License-Identifier: Apache-2.0
// What the modules of a tier ask of a device.
#pragma once
#include "formats/vulkan_program/vulkan_program.h"

namespace tosaic::test {

struct Asked {
  std::uint64_t invocations = 0, shared_bytes = 0, push_bytes = 0, bindings = 0;
};
// The most of all its dispatches.
Asked asked_of(const vulkan_program::Tier& tier);
// Of every tier's dispatches: no more than its row in tiers.cpp. compiled() holds every graph of the tests to it.
void expect_within_limits(const vulkan_program::Program& program);

}  // namespace tosaic::test
