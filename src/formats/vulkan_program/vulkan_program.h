// SPDX-License-Identifier: Apache-2.0
// The payload of delegate "TosaicVulkan": dispatches of compute shaders over three memories, planned when it was made.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/rope.h"
#include "ir/specialise.h"

namespace tosaic::vulkan_program {

// 1: no sizes that vary; 1, 2: SPIR-V is not packed; 1 to 3: all constants are inside; 1 to 4: no guards; 1 to 5: no
// narrow tensors. A program is written as the oldest of 3 to 6 that says it.
inline constexpr std::uint32_t version = 6, version_without_narrow = 5, version_without_guards = 4,
                               version_without_parts = 3, oldest_version = 1;
inline constexpr std::uint64_t alignment = 256;             // of ranges; Vulkan asks for no more
inline constexpr std::uint64_t most_range_bytes = 1 << 27;  // of one binding: what every Vulkan device takes
inline constexpr std::uint32_t most_groups = 65535;         // along each axis, likewise
inline constexpr std::size_t most_pushes = 32, most_ranges = 12;
inline constexpr std::uint64_t most_arena_bytes = std::uint64_t{1} << 40;

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
  bool operator==(const Range&) const = default;
};

// What an expression of the program gives: truncated to a word, or the bits of 1 / it.
struct SizedPush {
  std::uint32_t push = 0, expression = 0;
  bool reciprocal = false;
  bool operator==(const SizedPush&) const = default;
};
std::uint32_t word_of(std::int64_t number, bool reciprocal);
inline constexpr std::uint32_t no_expression = 0xffffffffu;

// Numbers that the inputs' sizes make are here those at the bounds.
struct Dispatch {
  std::uint32_t module = 0;
  std::vector<std::uint32_t> pushes;
  std::vector<SizedPush> sizes;               // pushes that the inputs' sizes make
  std::uint32_t group_count = no_expression;  // likewise, all groups
  std::vector<Range> ranges;
  std::array<std::uint32_t, 3> groups{1, 1, 1};
  std::string kernel, value, place;  // place: in the user's program, "features.3.conv, model.py:6"
  bool operator==(const Dispatch&) const = default;
};

// See tiers.h. Of one whose name this version does not know there is the name alone.
struct Tier {
  std::string name;
  std::uint64_t activation_bytes = 0;
  std::vector<Bytes> modules;      // SPIR-V words
  std::uint64_t stored_bytes = 0;  // of the modules in the file that was read
  std::vector<Dispatch> dispatches;
};

struct Tensor {
  std::string name;
  TensorType type;
  std::uint64_t offset = 0;
  std::optional<Dim> rows = {};  // of an i32 input: each element is the index of a row before this one
  std::int64_t first_row = 0;    // and of none before this: negative ones are computed with
  bool narrow = false;           // of an f32 one: io has it as f16, and the host converts
  TensorType in_io() const { return narrow ? type.with(DType::f16) : type; }
};
std::uint64_t bytes_in_io(const Tensor& tensor);  // for its sizes at the bounds

struct Program {
  std::vector<Dim> expressions;         // of sizes, each of symbols that have bounds and that an input's dim tells
  std::vector<Tensor> inputs, outputs;  // memory is for their sizes at the bounds
  std::vector<Guard> guards;            // of those sizes
  std::uint64_t io_bytes = 0;
  Rope constants;  // of a file that was read: one piece, or a few with those that lie outside it
  std::vector<Tier> tiers;
};

// Its index among the program's, where it is added if it is new.
std::uint32_t expression(Program& program, const Dim& dim);
// Groups in rows, as shaders count them (Shader::row_groups).
inline constexpr std::uint32_t row_groups = 32768;
std::array<std::uint32_t, 3> groups_of(std::uint64_t count);

// The sizes at which inputs have these shapes. Errors: model.size, a shape that no sizes make, one beyond a bound, with
// the symbol's name, or one that a guard does not let pass.
Result<Sizes> sizes_of(const Program& program, std::span<const Shape> inputs);
// Writes into the tier's dispatches what these sizes make of them. Errors: model.size.
Status resize(const Program& program, const Sizes& sizes, std::vector<Dispatch>& dispatches);
Shape at(const Shape& shape, const Sizes& sizes);
// Are these elements of an input indices of rows that there are? Error: tosa.unpredictable, as the CPU says it.
Status check_indices(const Tensor& input, std::int64_t rows, std::span<const std::int32_t> indices);

Rope write(const Program& program);
// With every piece of the constants of at least so many bytes outside, under a key that its content makes.
struct Parts {
  Rope file;
  std::vector<std::pair<std::string, Bytes>> outside;  // each key once
};
Parts write_parts(const Program& program, std::uint64_t least_bytes);
bool is_program(const Bytes& file);
// All that can be told without a device: every range lies in its arena, is viewed as its module says and has whole
// texels, every module is there and is one that check_shader passes, with as many bindings as its dispatches have
// ranges. Who writes a program asks this as who reads it does. Errors: vulkan-program.format, vulkan-program.shader.
Status check(const Program& program);
// A program that check() passes. Errors: its, and vulkan-program.version; vulkan-program.constant-outside where
// `outside` does not have a part of the constants, or has another.
using FindOutside = std::function<Bytes(const std::string& key)>;  // null Bytes: there is no such part
Result<Program> read(const Bytes& file, const FindOutside& outside = {});

}  // namespace tosaic::vulkan_program
