// SPDX-License-Identifier: Apache-2.0
// Segments of a VGF file held to the rules, before a driver sees them: drivers and layers trust what they are given,
// some to the point of crashing on an id that is not there. So no graph module of a file reaches a driver: its graph is
// read, verified, and written anew. That also mends two kinds of output which Arm's emulation layer leaves unwritten:
// one that is OpConstantNull, and the first of two that are one value. Shaders are programs and passed on as they are.
#pragma once
#include <vector>

#include "formats/vgf/vgf.h"

namespace tosaic::vulkan {

struct BoundResource {
  std::uint32_t set = 0, binding = 0, resource = 0;
};

struct CheckedSegment {
  const vgf::Segment* segment = nullptr;
  std::vector<BoundResource> bound;
  vgf::File graph;  // of a graph segment: it alone, with its constants
  // Resources that the graph gives one value: they must be one memory.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> same;
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
