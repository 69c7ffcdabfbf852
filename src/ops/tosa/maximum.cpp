// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
namespace {
Status eval(const Run& run) {
  if (ignores_nan(run.view)) return map_binary<[](auto a, auto b) { return larger(a, b, true); }>(run);
  return map_binary<[](auto a, auto b) { return larger(a, b, false); }>(run);
}
}  // namespace

Op tosa_maximum() {
  Op op = binary_row("maximum", 26, "the larger of a and b, with broadcasting",
                     integers("in_out", {DType::i32}) + floats("in_out") + int64s("in_out"), eval);
  op.attrs = {{"nan_mode", AttrKind::nan_mode}};
  op.bounds = bounds::larger;
  op.moves = Moves::compared;
  op.core_aten = aten::op::maximum;
  return op;
}
}  // namespace tosaic::tosa
