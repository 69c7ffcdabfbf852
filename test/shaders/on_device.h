// SPDX-License-Identifier: Apache-2.0
// Small TOSA graphs as compute shaders on this machine's Vulkan driver, compared with the interpreter. `make test`
// installs a driver: a device that does not open is a failure; TOSAIC_WITHOUT_VULKAN=1 says that a machine has none.
// The graphs are those of the CPU executor's tests, too, which ask expect_as_interpreted(): here it takes one of five
// of them; TOSAIC_ALL_SHADERS=1: all.
#pragma once
#include "cpu/net.h"
#include "shaders/compile.h"

namespace tosaic::test {

// The program's payload with these tiers, read back: every module is checked as a file's would be.
vulkan_program::Program compiled(const Graph& graph, std::span<const vulkan_program::TierId> tiers,
                                 shaders::Precision precision = shaders::Precision::fp32);
std::vector<vulkan_program::TierId> every_tier();
// Each tier that the device runs computes what the interpreter does.
void expect_on_device(const Net& net, const Tolerance& tolerance = {}, const std::string& what = {},
                      shaders::Precision precision = shaders::Precision::fp32);
bool without_vulkan();
constexpr const char* no_device = "TOSAIC_WITHOUT_VULKAN says that this machine has no Vulkan device";

}  // namespace tosaic::test
