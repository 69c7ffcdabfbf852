// SPDX-License-Identifier: Apache-2.0
// Attention in one dispatch: a work group goes over the keys block by block with a tile of queries, and keeps of each
// row of scores only the largest one so far, the sum of what softmax makes of them and the values weighted by it, which
// a larger score rescales. Scores are never stored. (Online softmax: Milakov and Gimelshein 2018; in attention: Dao et
// al., FlashAttention, 2022.)
#pragma once
#include <functional>

#include "plan/uses.h"
#include "shaders/kernels.h"

namespace tosaic::shaders {

// matmul(softmax(scale(matmul(queries, keys))), values), of which nothing is seen on the way.
struct Attention {
  std::uint32_t scores = 0, values = 0;            // the two products
  std::vector<std::uint32_t> nodes;                // all that is computed, ascending
  ValueId score = no_value;                        // what `before_softmax` begins with
  std::optional<plan::Expression> before_softmax;  // scales and masks
  // Where a mask leaves scores out, `before_softmax` has the row's least score, whose weight becomes zero: what weighs
  // nothing does as well, and that one is not computed. Otherwise none.
  ValueId least = no_value;
  bool rows_may_be_empty = false;  // those whose scores are all -inf become zeros, and not NaN
  double factor = 1;               // by which queries and keys were multiplied before
};
// The one whose scores node `scores` makes. `can`: nodes that are free and elementwise, with a shader.
std::optional<Attention> attention_at(const plan::Uses& uses, const std::function<bool(std::uint32_t node)>& can,
                                      std::uint32_t scores);

// Of f16 by matrices of subgroups, and of f32. What follows the second product is `end`'s.
MadeList make_attention(const Work& work, const Attention& attention, const Finish& end);
MadeList make_tiled_attention(const Work& work, const Attention& attention, const Finish& end);  // of f32 alone

}  // namespace tosaic::shaders
