// SPDX-License-Identifier: Apache-2.0
// A step of a recurrent layer in one dispatch: a product of few rows whose sums are cut into gates, and what is
// elementwise over these. A work group makes four neighbours of each gate.
#pragma once
#include <span>

#include "plan/expression.h"
#include "shaders/kernels.h"

namespace tosaic::shaders {

// `end`: what finishes the product's sums, which only inputs of `expression` read, each a run of every row. It stores
// the results of `others` of its calls, too. nullopt: the product has no few rows, or its sums are read otherwise.
MadeList make_gated_product(const Work& work, const Node& product, const Finish& end,
                            const plan::Expression& expression, std::span<const ValueId> others);

// Do these nodes alone read the value, as it is or as parts and views of it?
bool is_read_by_these(const plan::Uses& uses, ValueId v, const std::vector<std::uint32_t>& nodes);

}  // namespace tosaic::shaders
