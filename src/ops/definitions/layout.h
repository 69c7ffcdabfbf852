// SPDX-License-Identifier: Apache-2.0
// Operators that move elements without looking at them: quantised scales go through. Private to src/ops.
#pragma once
#include "ops/definitions/row.h"
#include "ops/definitions/walk.h"

namespace tosaic::tosa {

// Scales of which channel i is channel taken[i] of `scales` (which are per channel).
Scales channels_taken(const Scales& scales, const std::vector<std::int64_t>& taken);
// The parts that are the same in every row: one data operand, any data type, one output.
Op layout_row(std::string_view name, std::uint16_t schema_number, std::string_view summary);
// Writes out[0] in its order, reading in[0] along `from`.
Status copy_along(const Run& run, const Walk& from);

}  // namespace tosaic::tosa
