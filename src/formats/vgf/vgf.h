// SPDX-License-Identifier: Apache-2.0
// The VGF container, format 0.5 (also read: 0.3.0 to 0.4.3): modules (SPIR-V graphs and shaders), the segments that
// run them in order, the tensors that they share, constants. Nothing here knows what a module computes.
//
//   header (128 bytes) | modules | segments | resources | constants, each at a multiple of 8
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/rope.h"

namespace tosaic::vgf {

inline constexpr std::uint32_t none = 0xffffffffu;
inline constexpr std::uint32_t tensor_descriptor = 1000460000;  // VK_DESCRIPTOR_TYPE_TENSOR_ARM

enum class Kind : std::uint8_t { compute, graph };
enum class Language : std::uint8_t { absent, spirv, glsl, hlsl };
enum class Category : std::uint8_t { input, output, intermediate, constant };

struct Module {
  Kind kind = Kind::graph;
  std::string name, entry_point;
  Language language = Language::absent;
  Bytes code;  // SPIR-V words (4-byte aligned) or source text
};

struct Slot {
  std::uint32_t binding = 0, resource = 0;
};
struct DescriptorSet {
  std::uint32_t index = none;  // none: its index in the list
  std::vector<Slot> slots;
};
struct PushRange {
  std::uint32_t stages = 0, offset = 0, size = 0;
};
struct GraphConstant {
  std::uint32_t id = 0, constant = 0;  // GraphConstantID in the module, index in the file's constants
};

struct Segment {
  Kind kind = Kind::graph;
  std::string name;
  std::uint32_t module = 0;
  std::vector<DescriptorSet> sets;
  std::vector<Slot> inputs, outputs;
  std::vector<GraphConstant> constants;
  std::vector<std::uint32_t> dispatch;  // work groups of a compute segment: none or three
  std::vector<PushRange> push_ranges;
};

struct Sampler {
  std::array<std::uint32_t, 5> values;  // min and mag filter, address modes u and v, border colour
};

struct Resource {
  std::uint32_t descriptor_type = none, format = 0;  // Vulkan's numbers
  Category category = Category::intermediate;
  std::vector<std::int64_t> shape;  // -1: not known
  std::vector<std::int64_t> strides;
  std::uint32_t alias_group = none;
  std::vector<Sampler> sampler;  // none or one
};

struct Constant {
  std::uint32_t resource = 0;
  std::int32_t sparsity_dimension = -1;  // -1: dense
  Bytes data;
};

struct File {
  std::array<std::uint8_t, 3> version{0, 5, 0};
  std::vector<Module> modules;
  std::vector<Segment> segments;
  std::vector<Slot> inputs, outputs;
  std::vector<std::string> input_names, output_names;
  std::vector<Resource> resources;
  std::vector<Constant> constants;
};

// Constants are not copied: the result's pieces are what the file holds.
Result<Rope> write(const File& file);
// Checks what the container's own decoder does not: every index between the tables, every size. Data and code look
// into `bytes`. Errors: vgf.not-a-vgf, vgf.version, vgf.truncated, vgf.corrupt, vgf.index.
Result<File> read(const Bytes& bytes);
// For each resource the first one that is the same memory: of its alias group, or itself.
std::vector<std::uint32_t> first_of_memory(const File& file);
// Do the first bytes say that it is a VGF file?
bool is_vgf(const Bytes& bytes);

}  // namespace tosaic::vgf
