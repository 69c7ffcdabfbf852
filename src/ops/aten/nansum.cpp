// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/lowering/reduce.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  const Val given = reduced_tensor(call);
  if (given.shape().is_empty())
    return of_nothing(call, given, call.axes("dim", given.rank()), call.flag("keepdim"), 0, given.dtype());
  Val x = with_dtype(b, call, given);
  const double infinity = std::numeric_limits<double>::infinity();
  const auto axes = call.axes("dim", x.rank());
  const bool keep = call.flag("keepdim");
  Val numbers = b.aten(aten::op::nan_to_num, {x}, {{"nan", 0.0}, {"posinf", infinity}, {"neginf", -infinity}});
  return calls::sum(numbers, axes, keep);
}
}  // namespace

AtenOp aten_nansum() {
  return {.schemas = {"nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"},
          .summary = "the sum of the elements that are not NaN",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(2,3,4), [1]", "n(1)", "n(4,2), [1], True", "x(2,3)", "i(-9,9,3,4), [0]"}};
}
}  // namespace tosaic
