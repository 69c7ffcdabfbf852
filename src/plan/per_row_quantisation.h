// SPDX-License-Identifier: Apache-2.0
// Activations that are 8-bit quantised values with one scale, and perhaps a zero point, for each row.
#pragma once
#include <optional>
#include <span>

#include "ir/graph.h"

namespace tosaic::plan {

// (q - zero) * scale. A product whose rows it is may multiply the quantised values, and scale its sums.
struct PerRowQuantisation {
  ValueId quantised = no_value;               // i8
  ValueId scale = no_value, zero = no_value;  // f32, one for each row; no_value: 1 and 0
};
// Of f32 `value`, which a product reads as rows of k elements, after views. `producer`: of the graph (producers()).
// nullopt: it is something else.
std::optional<PerRowQuantisation> find_per_row_quantisation(const Graph& graph, std::span<const std::int32_t> producer,
                                                            ValueId value, std::int64_t k);

}  // namespace tosaic::plan
