// SPDX-License-Identifier: Apache-2.0
// Activations that are codes of 8 bits with one scale, and perhaps a zero point, for each row.
#pragma once
#include <optional>
#include <span>

#include "ir/graph.h"

namespace tosaic::plan {

// (codes - zero) * scale. A product whose rows it is may multiply the codes, and scale its sums.
struct RowCodes {
  ValueId codes = no_value;                   // i8
  ValueId scale = no_value, zero = no_value;  // f32, one for each row; no_value: 1 and 0
};
// Of f32 `value`, which a product reads as rows of k elements, behind views. `producer`: of the graph (producers()).
// nullopt: it is something else.
std::optional<RowCodes> row_codes(const Graph& graph, std::span<const std::int32_t> producer, ValueId value,
                                  std::int64_t k);

// Where a product that multiplies codes has the other two: behind a convolution's own operands.
inline constexpr std::size_t row_scale_operand = 5, row_zero_operand = 6;
// Has it the codes read instead of `value`.
void read_row_codes(Node& product, const RowCodes& codes);

}  // namespace tosaic::plan
