// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "ir/aten_operators.h"
#include "ir/tosa_operators.h"
#include "ops/lowering/calls.h"
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

// In other calls, each product of which has a range of its own in integers. Factors that are multiplied side by side
// have one scale, which leaves little of a small one: so only many are, until there are few.
Vals composed(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const auto as = [&](DType type) {
    return x.dtype() == type ? x : b.aten(aten::op::_to_copy, {x}, {{"dtype", type}});
  };
  if (auto dtype = call.dtype("dtype")) x = as(*dtype);
  if (!is_float(x.dtype()) && !x.type().quantised()) {
    const bool wide = !call.declared().empty() && call.declared()[0].dtype == DType::i64;
    x = as(wide ? DType::i64 : sum_dtype(x.dtype()));
  }
  const bool all = call.overload() == "default";
  if (all && x.rank() > 0) x = calls::view(x, {x.shape().elements()});
  if (x.rank() == 0) return b.aten(aten::op::clone, {x});
  const int axis = all ? 0 : call.axis("dim", x.rank());
  constexpr std::int64_t few = 16;
  std::optional<Val> product;
  const auto multiply = [&](std::int64_t i) {
    const Val factor = calls::slice(x, axis, i, 1);
    product = product ? calls::mul(*product, factor) : factor;
  };
  while (x.dim(axis) > few) {
    const std::int64_t half = x.dim(axis) / 2;
    if (x.dim(axis) % 2 != 0) multiply(2 * half);
    x = calls::mul(calls::slice(x, axis, 0, half), calls::slice(x, axis, half, half));
  }
  for (std::int64_t i = 0; i < x.dim(axis); ++i) multiply(i);
  x = *product;
  if (all) return calls::view(x, {});
  return call.flag("keepdim") ? b.aten(aten::op::clone, {x})
                              : b.aten(aten::op::squeeze_dim, {x}, {{"dim", static_cast<std::int64_t>(axis)}});
}
}  // namespace

AtenOp aten_prod() {
  return {.schemas = {"prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
                      "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"},
          .summary = "the product of the elements, along one dim or of all",
          .rule = Rule::inside,
          .lower = {lower, composed},
          .domain = {"default: x(3)", "dim_int: x(2,3,4), 1", "dim_int: x(2,3), -1, True", "dim_int: i(-4,4,2,5), 1",
                     "default: u(0.5,1.5,2,9) # share=0.0002: it rounds eighteen times", "dim_int: u(-2,2,5,3), 0",
                     "dim_int: x(2,1), 1"},
          .out_overloads = {{"prod.dim_int", "int_out"}}};
}
}  // namespace tosaic
