// SPDX-License-Identifier: Apache-2.0
// Compute shaders held to the language that our own shaders are written in, before a driver sees them: drivers trust
// what they are given. It is a small part of SPIR-V 1.3, and a module that passes is a valid one: every id is defined
// once and where it can be seen, every operand has its type, blocks nest as `if` and `for` do; all invocations of a
// work group reach each barrier, and indices into the memory that they share stay inside it. What a shader computes,
// how long its loops run and which elements of its own buffers it touches is not checked.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "formats/spirv/spirv.h"

namespace tosaic::spirv {

inline constexpr Word push_words = 32;
// Sums of matrices are 16 x 16. The invocations of a subgroup share the elements of a matrix, neighbours of a row.
inline constexpr Word matrix_side = 16, matrix_sharers = 32;
struct MatrixSize {
  Word rows = matrix_side, columns = matrix_side;
  constexpr Word shares() const { return rows * columns / matrix_sharers; }
};
constexpr Word matrix_depth(bool integers) { return integers ? 2 * matrix_side : matrix_side; }
constexpr MatrixSize matrix_size(MatrixUse use, bool integers) {
  const Word depth = matrix_depth(integers);
  return {use == MatrixUse::right ? depth : matrix_side, use == MatrixUse::left ? depth : matrix_side};
}

struct ShaderBinding {
  enum class Kind : std::uint8_t { buffer, texels_of_words, texels_of_reals };  // the last two: uniform texel buffers
  Kind kind = Kind::buffer;
  Word element_bits = 32;  // of a buffer: 8, 16, 32, or 64 to 128 of vectors
  bool written = false;
};
struct ShaderInterface {
  std::vector<ShaderBinding> bindings;  // 0, 1, ... of descriptor set 0
  bool has_pushes = false;              // push_words of them
  Word group_size = 1;
  bool shuffles = false;  // among the invocations of a subgroup
  bool matrices = false;  // that subgroups of 32 have
  bool int8_matrices = false;
  bool dots = false;      // of four 8-bit quantised values each in two words
  Word shared_bytes = 0;  // of a work group
};

// Errors: vulkan-program.shader, with the word at which the instruction stands.
Result<ShaderInterface> check_shader(std::span<const Word> words);

}  // namespace tosaic::spirv
