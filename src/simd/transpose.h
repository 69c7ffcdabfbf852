// SPDX-License-Identifier: Apache-2.0
// Transposition of a matrix in vectors: of elements of 4 bytes, or of few rows or columns, as images have them.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tosaic::simd {

// to[j * to_pitch + i] = from[i * from_pitch + j] for i < rows and j < columns; pitches in elements.
void transpose_words(const std::uint32_t* from, std::int64_t from_pitch, std::uint32_t* to, std::int64_t to_pitch,
                     std::int64_t rows, std::int64_t columns);

constexpr bool is_few(std::int64_t rows) { return rows >= 2 && rows <= 4; }
// to[j * rows + i] = from[i * from_pitch + j] for few rows, of elements of 1, 2 or 4 bytes.
void interleave(const void* from, std::int64_t from_pitch, void* to, std::int64_t rows, std::int64_t columns,
                std::size_t element);
// to[i * to_pitch + j] = from[j * rows + i]: the other way.
void separate(const void* from, void* to, std::int64_t to_pitch, std::int64_t rows, std::int64_t columns,
              std::size_t element);

}  // namespace tosaic::simd
