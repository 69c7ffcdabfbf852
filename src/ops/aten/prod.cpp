// SPDX-License-Identifier: Apache-2.0
#include "ir/tosa_operators.h"
#include "ops/lowering/reduce.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// TOSA has products of floats only; integers are multiplied pairwise, halving the length.
Val product(Builder& b, Val x, int axis) {
  if (is_float(x.dtype())) {
    const DType dtype = x.dtype();
    return b.cast(b.reduce(tosa::op::reduce_product, b.cast(x, dtype == DType::f16 ? DType::f32 : dtype), {axis}, true),
                  dtype);
  }
  x = b.cast(x, sum_dtype(x.dtype()));
  while (x.dim(axis) > 1) {
    const std::int64_t half = x.dim(axis) / 2, odd = x.dim(axis) % 2;
    Val paired = b.mul(b.slice_axis(x, axis, 0, half), b.slice_axis(x, axis, half, half));
    x = odd ? b.concat({paired, b.slice_axis(x, axis, 2 * half, 1)}, axis) : paired;
  }
  return x;
}
Vals lower(Builder& b, const Call& call) {
  Val x = reduced_tensor(call);
  if (x.shape().is_empty())
    return of_nothing(call, x, call.overload() == "default" ? reduced_axes(call, x) : call.axes("dim", x.rank()),
                      keeps_dims(call), 1, is_float(x.dtype()) ? x.dtype() : DType::i32);
  if (auto dtype = call.dtype("dtype")) x = b.cast(x, *dtype);
  x = as_summed(b, call, x);
  if (call.overload() == "default") {
    if (x.rank() == 0) return x;
    return b.reshape(product(b, b.reshape(x, {x.shape().elements()}), 0), {});
  }
  if (x.rank() == 0) return x;
  const int axis = call.axis("dim", x.rank());
  Val y = product(b, x, axis);
  return call.flag("keepdim") ? y : b.squeeze(y, {axis});
}
}  // namespace

AtenOp aten_prod() {
  return {.schemas = {"prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
                      "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"},
          .summary = "the product of the elements, along one dim or of all",
          .rule = Rule::float_only,
          .lower = {lower},
          .domain = {"default: x(2,3)", "dim_int: x(2,3,4), 1", "dim_int: x(2,3), -1, True", "dim_int: i(-4,4,2,5), 1"},
          .out_overloads = {{"prod.dim_int", "int_out"}}};
}
}  // namespace tosaic
