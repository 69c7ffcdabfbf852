// SPDX-License-Identifier: Apache-2.0
// Sizes and offsets of a VGF file's raw parts, for its reader and writer.
#pragma once
#include <cstddef>

namespace tosaic::vgf {

inline constexpr char file_magic[4] = {'V', 'G', 'F', '1'};
inline constexpr char constants_magic[8] = {'C', 'O', 'N', 'S', 'T', '0', '0', '\0'};
inline constexpr std::size_t header_bytes = 128, version_at = 8, first_section_entry = 16, alignment = 8;
inline constexpr std::size_t constants_header_bytes = 16, constant_record_bytes = 24;

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace tosaic::vgf
