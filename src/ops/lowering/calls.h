// SPDX-License-Identifier: Apache-2.0
// Short names for the ATen operators that composites (Rule::inside) are written with. With a Builder each call is
// lowered at once; with a Composer it stays one node, which in the quantiser's expansion gets its integer form by its
// own rule.
#pragma once
#include <fmt/format.h>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/aten_operators.h"
#include "ops/builder.h"

namespace tosaic::calls {

using Axes = std::vector<int>;

inline std::vector<std::int64_t> as_ints(const Axes& axes) { return {axes.begin(), axes.end()}; }

inline Val unary(Operator op, Val x) { return x.builder().aten(op, {x}); }
inline Val exp(Val x) { return unary(aten::op::exp, x); }
inline Val log(Val x) { return unary(aten::op::log, x); }
inline Val abs(Val x) { return unary(aten::op::abs, x); }
inline Val sqrt(Val x) { return unary(aten::op::sqrt, x); }
inline Val rsqrt(Val x) { return unary(aten::op::rsqrt, x); }
inline Val reciprocal(Val x) { return unary(aten::op::reciprocal, x); }

inline Val add(Val a, Val b) { return a.builder().aten(aten::op::add_Tensor, {a, b}); }
inline Val sub(Val a, Val b) { return a.builder().aten(aten::op::sub_Tensor, {a, b}); }
inline Val mul(Val a, Val b) { return a.builder().aten(aten::op::mul_Tensor, {a, b}); }
inline Val add(Val a, double b) { return b == 0 ? a : a.builder().aten(aten::op::add_Scalar, {a}, {{"other", b}}); }
inline Val mul(Val a, double b) { return b == 1 ? a : a.builder().aten(aten::op::mul_Scalar, {a}, {{"other", b}}); }
inline Val at_least(Val x, double lowest) { return x.builder().aten(aten::op::clamp, {x}, {{"min", lowest}}); }
inline Val clamp(Val x, double lowest, double highest) {
  return x.builder().aten(aten::op::clamp, {x}, {{"min", lowest}, {"max", highest}});
}
inline Val where(Val condition, Val a, Val b) {
  return condition.builder().aten(aten::op::where_self, {condition, a, b});
}

inline Val reduced(Operator op, Val x, const Axes& axes, bool keep) {
  return x.builder().aten(op, {x}, {{"dim", as_ints(axes)}, {"keepdim", keep}});
}
inline Val sum(Val x, const Axes& axes, bool keep) { return reduced(aten::op::sum_dim_IntList, x, axes, keep); }
inline Val mean(Val x, const Axes& axes, bool keep) { return reduced(aten::op::mean_dim, x, axes, keep); }
inline Val amax(Val x, const Axes& axes, bool keep) { return reduced(aten::op::amax, x, axes, keep); }
inline Val amin(Val x, const Axes& axes, bool keep) { return reduced(aten::op::amin, x, axes, keep); }

inline Val transpose(Val x, int a, int b) {
  return x.builder().aten(aten::op::transpose_int, {x}, {{"dim0", std::int64_t{a}}, {"dim1", std::int64_t{b}}});
}
inline Val permute(Val x, const Axes& dims) {
  return x.builder().aten(aten::op::permute, {x}, {{"dims", as_ints(dims)}});
}
// Elements [start, start + size) of one dim.
inline Val slice(Val x, int axis, std::int64_t start, std::int64_t size) {
  return x.builder().aten(aten::op::slice_Tensor, {x},
                          {{"dim", std::int64_t{axis}}, {"start", start}, {"end", start + size}});
}
inline Val cat(const std::vector<Val>& parts, int axis) {
  if (parts.size() == 1) return parts[0];
  return parts[0].builder().aten(aten::op::cat, {parts.begin(), parts.end()}, {{"dim", std::int64_t{axis}}});
}
inline Val matmul(Val a, Val b) { return a.builder().aten(aten::op::matmul, {a, b}); }
inline Val softmax(Val x, int axis) {
  return x.builder().aten(aten::op::softmax_int, {x}, {{"dim", std::int64_t{axis}}});
}

// A constant (a weight, a bias) is given its new shape at once, without a node.
inline Val view(Val x, const Shape& shape) {
  if (x.shape() == shape) return x;
  if (x.is_constant() && !x.type().quantised() && x.shape().elements() == shape.elements())
    return x.builder().constant(x.type().with(shape), x.builder().graph()[x.id()].constant);
  return x.builder().aten(aten::op::view, {x}, {{"size", shape.sizes()}});
}

}  // namespace tosaic::calls
