// SPDX-License-Identifier: Apache-2.0
// What a .pte holds around its flatbuffer, and the numbers of element types. All integers are little-endian.
//   0  u32     offset of the flatbuffer's root table, counted from the file's start
//   4  "ET12"
//   8  "eh00"  extended header; absent: the whole file is the flatbuffer
//  12  u32     header length: 32, or 24 without the last field
//  16  u64     size of the flatbuffer, header included
//  24  u64     where the segments start (0: there are none)
//  32  u64     bytes from there to the end of the last segment (0: not stated)
#pragma once
#include <cstddef>
#include <optional>
#include <string_view>

#include "ir/dtype.h"
#include "program_generated.h"

namespace tosaic::pte {

inline constexpr std::string_view header_magic = "eh00";
inline constexpr std::size_t header_offset = 8;
inline constexpr std::size_t header_bytes = 32;  // a multiple of 16, the flatbuffer's largest alignment
inline constexpr std::size_t constant_alignment = 16;
inline constexpr int max_rank = 16;

std::optional<pte_schema::ScalarType> scalar_type(DType type);
std::optional<DType> dtype_of(pte_schema::ScalarType type);

}  // namespace tosaic::pte
