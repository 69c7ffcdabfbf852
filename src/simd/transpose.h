// SPDX-License-Identifier: Apache-2.0
// Transposition of a matrix of elements of 4 bytes, in vectors.
#pragma once
#include <cstdint>

namespace tosaic::simd {

// to[j * to_pitch + i] = from[i * from_pitch + j] for i < rows and j < columns; pitches in elements.
void transpose_words(const std::uint32_t* from, std::int64_t from_pitch, std::uint32_t* to, std::int64_t to_pitch,
                     std::int64_t rows, std::int64_t columns);

}  // namespace tosaic::simd
