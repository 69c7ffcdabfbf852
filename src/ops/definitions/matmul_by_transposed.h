// SPDX-License-Identifier: Apache-2.0
// What MATMUL_T and MATMUL_T_BLOCK_SCALED share: A [N, H, C] by B [D, W, C] transposed, where D is N, or 1 for one
// matrix that all share. Private to src/ops.
#pragma once
#include <array>
#include <span>

#include "ops/definitions/extension.h"
#include "ops/definitions/row.h"

namespace tosaic::tosa {

// "<op>.batch", "<op>.inner-size"; B is operand `b`.
Check check_transposed(const View& view, std::size_t b);
// Into [N, H, W]; false: an integer sum does not fit.
bool store_products(const MutableTensorView& out, std::span<const double> a, std::span<const double> b);
// In TOSA 1.0, MATMUL of {A, B, A_zp, B_zp}.
ValueId matmul_by_transposed(extension::Definition& d, std::array<ValueId, 4> operands, const TensorType& result);

}  // namespace tosaic::tosa
