// SPDX-License-Identifier: Apache-2.0
// MATMUL: the second operand is packed when the program runs (or once, when it is constant).
#pragma once
#include <optional>

#include "cpu/step.h"

namespace tosaic::cpu {
// [batch,h,c] x [batch,c,w]; `turned`: the second lies as [batch,w,c].
struct MatmulShape {
  std::int64_t batch, h, c, w;
  bool turned = false;
};
// The TRANSPOSE that makes B, the second operand, for nobody else than node n: panels are made of what it reads.
std::optional<std::uint32_t> transposed_b(const Planning& planning, std::uint32_t n);
bool take_matmul(Planning& planning, std::uint32_t node);
}  // namespace tosaic::cpu
