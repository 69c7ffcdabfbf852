// SPDX-License-Identifier: Apache-2.0
// Reductions as PyTorch does them, for the operator files under aten/.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "ir/tosa_operators.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {

// `dtype` of a call, applied to its input. Quantised tensors stay as they are: their dtype is the quantiser's business.
inline Val with_dtype(Builder& b, const Call& call, Val x) {
  if (x.type().quantised()) return x;
  const auto wanted = call.schema().argument("dtype") ? call.dtype("dtype") : std::nullopt;
  if (!wanted) return x;
  return b.cast(x, *wanted);
}

// The dims that a reduction names; all of them where the overload has no `dim`.
inline std::vector<int> reduced_axes(const Call& call, Val x) {
  if (call.schema().argument("dim")) return call.axes("dim", x.rank());
  std::vector<int> all;
  for (int i = 0; i < x.rank(); ++i) all.push_back(i);
  return all;
}
inline bool keeps_dims(const Call& call) { return call.schema().argument("keepdim") && call.flag("keepdim"); }

// PyTorch adds up and multiplies integers and booleans in i64. So do we where the program still says i64; where that
// was narrowed, in i32.
inline Val as_summed(Builder& b, const Call& call, Val x) {
  const bool wide = !call.declared().empty() && call.declared()[0].dtype == DType::i64;
  return wide && !is_float(x.dtype()) && !x.type().quantised() ? b.cast(x, DType::i64) : x;
}
// f16 is added up in f32, where a long sum does not overflow.
inline DType sum_dtype(DType t) {
  if (t == DType::f16) return DType::f32;
  return is_float(t) || t == DType::i64 ? t : DType::i32;
}

// The sum over `axes` times `factor`.
inline Val summed(Val x, const std::vector<int>& axes, bool keep, double factor = 1.0) {
  Builder& b = x.builder();
  if (x.type().quantised()) return b.scaled(b.reduce(tosa::op::reduce_sum, x, axes, keep), factor);
  const DType sum = sum_dtype(x.dtype()), result = is_float(x.dtype()) ? x.dtype() : sum;
  Val wide = b.cast(x, sum);
  return b.cast(b.scaled(b.reduce(tosa::op::reduce_sum, wide, axes, keep), factor), result);
}

// What a reduction reads, which may be without elements: then every result is the same number, given there is one.
inline Val reduced_tensor(const Call& call) {
  const auto x = call.optional_tensor("self");
  return x && x->shape().is_empty() ? *x : call.tensor("self");
}
inline Val of_nothing(const Call& call, Val x, const std::vector<int>& axes, bool keep, double value, DType otherwise) {
  std::vector<std::int64_t> dims;
  for (int i = 0; i < x.rank(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end())
      dims.push_back(x.dim(i));
    else if (keep)
      dims.push_back(1);
  if (Shape(dims).is_empty()) call.tensor("self");  // which refuses it
  const DType type = call.declared().empty() ? otherwise : call.declared()[0].dtype;
  return call.builder().filled(value, type, Shape(dims));
}

inline std::int64_t elements_along(Val x, const std::vector<int>& axes) {
  std::int64_t n = 1;
  for (int axis : axes) n *= x.dim(axis);
  return n;
}

// The largest or smallest element along `axes`.
inline Val extreme_along(Val x, const std::vector<int>& axes, bool keep, bool largest) {
  Builder& b = x.builder();
  if (x.dtype() == DType::boolean)
    return b.reduce(largest ? tosa::op::reduce_any : tosa::op::reduce_all, x, axes, keep);
  return b.reduce(largest ? tosa::op::reduce_max : tosa::op::reduce_min, x, axes, keep);
}

// Where the largest or smallest element along `axis` stands, the first one of equals, as i32.
inline Val index_of_extreme(Val x, int axis, bool keep, bool largest) {
  Builder& b = x.builder();
  const DType t = x.dtype();
  if (is_float(t) || (largest && (t == DType::i8 || t == DType::i16))) {
    Val index = b.tosa(tosa::op::argmax, {largest ? x : b.negate(x)},
                       {{"axis", std::int64_t{axis}}, {"nan_mode", std::string("propagate")}});
    return keep ? b.unsqueeze(index, axis) : index;
  }
  // ARGMAX has neither i32 nor argmin of quantised values: the least index whose element equals the extreme.
  Val wide = x.type().quantised() || t == DType::i64 ? b.as_i32(x) : b.cast(x, DType::i32);
  Val best = b.reduce(largest ? tosa::op::reduce_max : tosa::op::reduce_min, wide, {axis}, true);
  std::vector<std::int64_t> positions, dims(static_cast<std::size_t>(x.rank()), 1);
  for (std::int64_t i = 0; i < x.dim(axis); ++i) positions.push_back(i);
  dims[static_cast<std::size_t>(axis)] = x.dim(axis);
  Val index = b.select(b.binary(tosa::op::equal, wide, best), b.integers(positions, DType::i32, Shape(dims)),
                       b.scalar(static_cast<double>(x.dim(axis)), DType::i32));
  return b.reduce(tosa::op::reduce_min, index, {axis}, keep);
}

}  // namespace tosaic
