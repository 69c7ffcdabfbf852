// SPDX-License-Identifier: Apache-2.0
// SPIR-V in a third of its bytes, for files: most words are small numbers, or near to the one that stood at the same
// place of the last instruction of that kind.
//
//   module       version, generator, bound, schema, then instructions; the magic word is left out
//   instruction  opcode * 16 + count, where 15 is followed by count - 15; then count operands
//   operand      the difference to the operand before it there, 0, -1, 1, -2 ... as 0, 1, 2, 3 ...
//
// each of them a number of 7 bits a byte, the lowest first, the eighth bit set where more follow.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "formats/spirv/spirv.h"

namespace tosaic::spirv {

// Nothing, where the words are no row of instructions behind a header.
std::optional<std::vector<std::byte>> pack(std::span<const Word> words);
// Nothing, where the bytes end inside a module. There are at most as many words as bytes and one; what they say is
// check_shader's to look at.
std::optional<std::vector<Word>> unpack(std::span<const std::byte> bytes);

}  // namespace tosaic::spirv
