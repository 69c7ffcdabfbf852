// SPDX-License-Identifier: Apache-2.0
// The payload of delegate "TosaicVulkan": dispatches of compute shaders over three memories, planned when it was made.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "ir/type.h"

namespace tosaic::vulkan_program {

inline constexpr std::uint32_t version = 1;
inline constexpr std::uint64_t alignment = 256;             // of ranges; Vulkan asks for no more
inline constexpr std::uint64_t most_range_bytes = 1 << 27;  // of one binding: what every Vulkan device takes
inline constexpr std::uint32_t most_groups = 65535;         // along each axis, likewise
inline constexpr std::size_t most_pushes = 32, most_ranges = 12;

enum class Arena : std::uint8_t { constants, activations, io };

// How a shader sees a range: as a storage buffer, or as a uniform texel buffer of this format.
enum class View : std::uint8_t { buffer, r8_uint, r16_uint, r32_uint, rgba32_uint, r32_float, rgba32_float };
inline constexpr View last_view = View::rgba32_float;
std::uint64_t texel_bytes(View view);  // 1 of a buffer
bool has_reals(View view);

struct Range {
  Arena arena = Arena::activations;
  bool written = false;
  View view = View::buffer;
  std::uint64_t offset = 0, bytes = 0;
};

struct Dispatch {
  std::uint32_t module = 0;
  std::vector<std::uint32_t> pushes;
  std::vector<Range> ranges;
  std::array<std::uint32_t, 3> groups{1, 1, 1};
  std::string kernel, value;
};

// See tiers.h. Of one whose name this version does not know there is the name alone.
struct Tier {
  std::string name;
  std::uint64_t activation_bytes = 0;
  std::vector<Bytes> modules;  // SPIR-V words
  std::vector<Dispatch> dispatches;
};

struct Tensor {
  std::string name;
  TensorType type;
  std::uint64_t offset = 0;
};

struct Program {
  std::vector<Tensor> inputs, outputs;
  std::uint64_t io_bytes = 0;
  Bytes constants;
  std::vector<Tier> tiers;
};

Bytes write(const Program& program);
bool is_program(const Bytes& file);
// All that can be told without a device holds afterwards: every range lies in its arena, is viewed as its module says
// and has whole texels, every module is there and is
// one that check_shader passes, with as many bindings as its dispatches have ranges. Errors: vulkan-program.format,
// vulkan-program.version, vulkan-program.shader.
Result<Program> read(const Bytes& file);

}  // namespace tosaic::vulkan_program
