// SPDX-License-Identifier: Apache-2.0
// Activations that are quantised at run time, in one dispatch: reductions of rows (their largest and smallest
// elements), scales and zero points made of them, and the quantised values; and what the rows are made of by reductions
// before (layer norm).
#pragma once
#include <functional>

#include "plan/uses.h"
#include "shaders/kernels.h"

namespace tosaic::shaders {

// The nodes that make what `product` multiplies (quantised_weights.h), ascending; the most first. Whoever else reads
// something of them stands after the last one. `free`: nodes that are not taken; `can`: which are elementwise, too,
// with a shader.
using Asked = std::function<bool(std::uint32_t node)>;
std::vector<std::vector<std::uint32_t>> find_row_quantisation(const plan::Uses& uses, const Asked& free,
                                                              const Asked& can, const Node& product);
MadeList make_row_quantisation(const Work& work, const std::vector<std::uint32_t>& nodes);

}  // namespace tosaic::shaders
