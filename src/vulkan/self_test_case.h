// SPDX-License-Identifier: Apache-2.0
// What the driver's own check lets a module compute: one of its dispatches, on numbers made up for it.
#pragma once
#include <set>
#include <vector>

#include "formats/spirv/compute/run_shader.h"
#include "formats/vulkan_program/vulkan_program.h"

namespace tosaic::vulkan {

// A module in one of its dispatches.
struct SelfTestCase {
  const vulkan_program::Dispatch* dispatch = nullptr;
  std::uint64_t hash = 0;
  spirv::ShaderProgram program;
  std::vector<std::uint64_t> offsets;  // of the ranges, constants aside, in the case's memory; overlaps are kept
  std::uint64_t bytes = 0;             // of that
  std::vector<std::byte> memory;       // before the dispatch
  std::uint64_t scratch = 0;           // where that lies on the device
  bool unchecked = false;

  void fill_memory();
  // With its memory there.
  spirv::ShaderCall call(std::vector<std::byte>& memory, const Bytes& constants) const;
};

// One for each module that is not among these and that can be computed here; memory is filled later.
std::vector<SelfTestCase> self_test_cases(const vulkan_program::Tier& tier, const std::set<std::uint64_t>& checked);

}  // namespace tosaic::vulkan
