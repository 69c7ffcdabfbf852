// SPDX-License-Identifier: Apache-2.0
// Rows of floats that are quantised as they come, each with a scale of its own: the calls that torchao writes for it.
#pragma once
#include <optional>
#include <vector>

#include "ops/composer.h"

namespace tosaic {

struct RowsWithScales {
  Val quantised, scale;  // [..., n] of int8 and [..., 1]
  std::optional<Val> zero;
};
// Along the last dim; symmetric ones have no zero point.
RowsWithScales quantise_dynamically(Composer& c, Val x, bool symmetric);
// What the quantised values stand for; without `zero` it is no_value. `block`: how many elements of each dim share a
// scale.
Val reals_of(Composer& c, ValueId quantised, ValueId scale, ValueId zero, const std::vector<std::int64_t>& block,
             DType dtype = DType::f32);
// The block of a row: 1 in all dims but the last.
std::vector<std::int64_t> row_block(const TensorType& type);

}  // namespace tosaic
