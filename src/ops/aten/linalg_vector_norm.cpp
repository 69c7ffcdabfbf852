// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/lowering/reduce.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Val powered(Val x, double exponent) {
  return x.builder().aten(aten::op::pow_Tensor_Scalar, {x}, {{"exponent", exponent}});
}
Vals lower(Builder& b, const Call& call) {
  const Val given = reduced_tensor(call);
  if (given.shape().is_empty())
    return of_nothing(call, given, call.axes("dim", given.rank()), call.flag("keepdim"), 0, given.dtype());
  Val x = with_dtype(b, call, given);
  const auto axes = call.axes("dim", x.rank());
  const bool keep = call.flag("keepdim");
  const double order = call.number("ord");
  if (order == 2) return calls::sqrt(calls::sum(calls::mul(x, x), axes, keep));
  Val size = calls::abs(x);
  if (order == 1) return calls::sum(size, axes, keep);
  if (std::isinf(order)) return order > 0 ? calls::amax(size, axes, keep) : calls::amin(size, axes, keep);
  if (order == 0) {
    Val zero = b.scalar(0.0, x.dtype()), one = b.scalar(1.0, x.dtype());
    return calls::sum(calls::where(b.aten(aten::op::ne_Scalar, {x}, {{"other", 0.0}}), one, zero), axes, keep);
  }
  return powered(calls::sum(powered(size, order), axes, keep), 1.0 / order);
}
}  // namespace

AtenOp aten_linalg_vector_norm() {
  return {.schemas = {"linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
                      "ScalarType? dtype=None) -> Tensor"},
          .summary = "the p-norm of the elements, over some dims or all",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(2,3,4)", "x(2,3,4), 2, [1], True", "x(2,3,4), 1, [-1]", "x(2,3), inf, [0]", "x(2,3), 3.0, [0]",
                     "x(2,3), 0, [1]"},
          .has_exact_form = true};
}
}  // namespace tosaic
