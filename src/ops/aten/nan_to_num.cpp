// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
double largest(DType type) {
  if (type == DType::f16) return 65504.0;
  return type == DType::bf16 ? 0x1.FEp127 : static_cast<double>(std::numeric_limits<float>::max());
}

// Quantised values and integers are numbers already.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  if (!is_float(x.dtype())) return x;
  auto number = [&](const char* name, double otherwise) {
    return b.like(x, call.has(name) ? call.number(name) : otherwise);
  };
  const double infinity = std::numeric_limits<double>::infinity(), most = largest(x.dtype());
  Val y = b.select(functions::equal(x, x), x, number("nan", 0.0));
  y = b.select(functions::equal(x, b.like(x, infinity)), number("posinf", most), y);
  return b.select(functions::equal(x, b.like(x, -infinity)), number("neginf", -most), y);
}
}  // namespace

AtenOp aten_nan_to_num() {
  return {.schemas = {"nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
                      "nan_to_num_(Tensor(a!) self, float? nan=None, float? posinf=None, float? neginf=None) -> "
                      "Tensor(a!)"},
          .summary = "finite values instead of NaN and infinities",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"e(28) # half=off: the largest number of f16 is another", "n(8), 1.5, 7.0, -8.0",
                     "n(8), nan=2.0, posinf=inf, neginf=-inf", "x(2,3,4)", "i(-5,5,6)", "b(4)"}};
}
}  // namespace tosaic
