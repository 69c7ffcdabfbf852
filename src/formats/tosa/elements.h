// SPDX-License-Identifier: Apache-2.0
// How the TOSA flatbuffer stores elements, and tosaic's storage form, into each other. They differ for int4 (two
// per byte, low nibble first) and int48 (six bytes); everything else is the same little-endian bytes.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "ir/graph.h"
#include "tosa_generated.h"

namespace tosaic::tosa_file {

std::optional<tosa_schema::DType> schema_dtype(DType type);  // nullopt: TOSA has no such type
std::optional<DType> dtype_of(tosa_schema::DType type);      // nullopt: UNKNOWN or newer than 1.0

// A tensor's sizes as the file has them. Error tosa-file.size: beyond 32 bits, or 0.
Result<std::vector<std::int32_t>> dims_of(const Value& value);

// Bytes of `elements` elements in the file.
std::uint64_t packed_size(DType type, std::int64_t elements);
Bytes pack(DType type, const Bytes& elements);
// `packed` holds packed_size(type, elements) bytes. Views `packed` where the forms agree and it is aligned for its
// elements, else copies. Never null.
Bytes unpack(DType type, std::int64_t elements, const Bytes& packed);

}  // namespace tosaic::tosa_file
