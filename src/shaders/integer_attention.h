// SPDX-License-Identifier: Apache-2.0
// Attention of 8-bit integers in one dispatch: a work group makes the scores of a tile of queries with all keys, keeps
// 16 bits of each in scratch memory, goes over each row as often as its softmax reduces it, and makes weights as it
// multiplies them by the values. Nothing is rounded otherwise than node by node, so that results are the same bits.
#pragma once
#include <functional>

#include "plan/uses.h"
#include "shaders/kernels.h"

namespace tosaic::shaders {

// matmul(weights(matmul(queries, keys)), values), of which nothing is seen on the way. Weights are made of the scores
// by elementwise nodes and reductions of rows, all of integers.
struct IntegerAttention {
  std::uint32_t scores = 0, values = 0;  // the two products
  std::vector<std::uint32_t> nodes;      // all that is computed, ascending
  // A row is gone over for each of its reductions, and once more for the weights. For each reduction, what is kept of
  // an element when it has been gone over for it: 16 bits, of which all that comes later is made.
  std::vector<std::uint32_t> reductions;
  std::vector<ValueId> kept;
};
// The one whose scores node `scores` makes. `can`: nodes that are free and elementwise, with a shader.
std::optional<IntegerAttention> integer_attention_at(const plan::Uses& uses,
                                                     const std::function<bool(std::uint32_t node)>& can,
                                                     std::uint32_t scores);

// By matrices of subgroups. What follows the second product is `end`'s.
MadeList make_integer_attention(const Work& work, const IntegerAttention& attention, const Finish& end);

}  // namespace tosaic::shaders
