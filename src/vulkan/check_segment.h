// SPDX-License-Identifier: Apache-2.0
// Segments of a VGF file held to the rules, before a driver sees them: drivers and layers trust what they are given.
#pragma once
#include <vector>

#include "formats/vgf/vgf.h"
#include "ir/graph.h"
#include "vulkan/module_interface.h"

namespace tosaic::vulkan {

struct CheckedSegment {
  const vgf::Segment* segment = nullptr;
  ModuleInterface interface;
  GraphOutputs outputs;                // graphs
  std::vector<TensorType> zero_types;  // as many as outputs.zeros
};

// Every segment in order: its graph is valid TOSA, its module's bindings are resources of their types, and what it
// reads has been computed. `file` must outlive the result.
// Errors: spirv.*, tosa.*, vgf.*, vulkan.segment (a shader that cannot be dispatched).
Result<std::vector<CheckedSegment>> check_segments(const vgf::File& file);

// The number of a descriptor set, which may be left to its place in the list.
inline std::uint32_t number_of_set(const vgf::Segment& segment, std::size_t place) {
  const std::uint32_t index = segment.sets[place].index;
  return index == vgf::none ? static_cast<std::uint32_t>(place) : index;
}

}  // namespace tosaic::vulkan
