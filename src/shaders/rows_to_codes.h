// SPDX-License-Identifier: Apache-2.0
// Activations that become codes as they come, in one dispatch: reductions of rows (their largest and smallest
// elements), scales and zero points made of them, and the codes; and what the rows are made of by reductions before
// (layer norm).
#pragma once
#include <functional>

#include "plan/uses.h"
#include "shaders/kernels.h"

namespace tosaic::shaders {

// The nodes that make what `product` multiplies (coded_weights.h), ascending; the most first. Whoever else reads
// something of them stands behind the last one. `free`: nodes that are not taken; `can`: which are elementwise, too,
// with a shader.
using Asked = std::function<bool(std::uint32_t node)>;
std::vector<std::vector<std::uint32_t>> rows_to_codes(const plan::Uses& uses, const Asked& free, const Asked& can,
                                                      const Node& product);
MadeList make_rows_to_codes(const Work& work, const std::vector<std::uint32_t>& nodes);

}  // namespace tosaic::shaders
