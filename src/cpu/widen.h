// SPDX-License-Identifier: Apache-2.0
// Convolutions, products, pools and reductions on f16, bf16 and 8-bit floats are computed as f32 ones between
// casts, which chains then absorb: each sum is rounded once. Everything else keeps its dtypes, and so do weights that
// are read unpacked (cpu/matrix/unpacked_product.h).
#pragma once
#include "ir/graph.h"

namespace tosaic::cpu {
// Every value keeps its id; new ones are appended.
void widen_narrow_floats(Graph& graph);
}  // namespace tosaic::cpu
