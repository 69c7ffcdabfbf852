// SPDX-License-Identifier: Apache-2.0
// TOSA's operators as calls of a program: what lowerings of custom operators are written in (python/tosaic/tosa.py).
// Everything is read off TOSA's rows: "tosaic::clamp(Tensor input, *, Scalar min_val, Scalar max_val, str
// nan_mode='propagate') -> Tensor" is a call like PyTorch's, whose lowering is the one node.
#pragma once
#include <vector>

#include "ops/op.h"

namespace tosaic {

// One per row that a call can be: has tensors as operands and no bodies or names. Each has two overloads: "default" has
// floats among its operands or results, which integer programs quantise; "integer" has none, its integers are meant
// as they are.
std::vector<AtenOp> row_calls();

}  // namespace tosaic
