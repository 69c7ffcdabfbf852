// SPDX-License-Identifier: Apache-2.0
// Products of tiles: 16 rows of A by 16 columns of B, 64 products each, in one instruction (Intel AMX).
#pragma once
#include <cstdint>

#include "cpu/matrix/gemm_i8.h"

namespace tosaic::cpu {

// What multiplies tiles. Programs keep what was chosen when they were compiled.
enum class Tiles {
  none,
  instructions,
  plain_code,  // what the instructions are defined to do: for tests on other processors
};
// Whether this processor has the instructions and the system lets this process use them, asked once.
bool tile_instructions_allowed();
Tiles tiles_in_use();  // at first: the instructions where they are allowed
void use_tiles(Tiles tiles);

// Null: no tiles in use.
const GemmI8* gemm_i8_tiles();
// With fewer rows, or products in a sum, vectors are as fast or faster: MobileNetV2's layers with 16, 24 and 32 inputs
// took 1.16, 1.18 and 1.05 of vectors' time, those with 64 took 0.85.
constexpr bool worth_tiles(std::int64_t rows, std::int64_t k) { return rows >= 8 && k >= 48; }

}  // namespace tosaic::cpu
