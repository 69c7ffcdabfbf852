// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/aten_operators.h"
#include "ir/tensor.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// The element (or what lies between two) at the rank q * (size - 1) of the sorted dim.
Val at_rank(Builder& b, const Call& call, Val sorted, int axis, double q) {
  if (!(q >= 0 && q <= 1)) b.refuse("aten.quantile.q", "the quantile " + std::to_string(q) + " is not between 0 and 1");
  const std::string how = call.text("interpolation");
  const float rank = static_cast<float>(q) * static_cast<float>(sorted.dim(axis) - 1);  // PyTorch's precision
  float below = std::floor(rank), above = std::ceil(rank);
  double weight = rank - below;
  if (how == "lower" || how == "higher" || how == "nearest") {
    below = how == "lower" ? below : how == "higher" ? above : std::nearbyint(rank);
    weight = 0;
  } else if (how == "midpoint") {
    weight = above > below ? 0.5 : 0.0;
  } else if (how != "linear") {
    b.refuse("aten.quantile.interpolation", "the interpolation '" + how + "' is not known");
  }
  Val low = calls::slice(sorted, axis, static_cast<std::int64_t>(below), 1);
  if (weight == 0) return low;
  Val high = calls::slice(sorted, axis, static_cast<std::int64_t>(above), 1);
  return b.aten(aten::op::lerp_Scalar, {low, high}, {{"weight", weight}});
}

Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const int rank = x.rank();
  const bool all = !call.has("dim");
  const int axis = all ? 0 : call.axis("dim", rank);
  std::vector<std::int64_t> left(static_cast<std::size_t>(all && call.flag("keepdim") ? rank : 0), 1);
  if (!all) left = x.shape().sizes();
  if (!all && rank > 0) {
    if (call.flag("keepdim"))
      left[static_cast<std::size_t>(axis)] = 1;
    else
      left.erase(left.begin() + axis);
  }
  if (all || rank == 0) x = calls::view(x, {x.shape().elements()});
  Val sorted = b.aten_all(aten::op::sort, {x}, {{"dim", std::int64_t{axis}}})[0];
  // A NaN makes all of its line one; no quantile is above the largest.
  Val most = calls::amax(x, {axis}, true);
  auto result = [&](double q) {
    return calls::view(b.aten(aten::op::minimum, {at_rank(b, call, sorted, axis, q), most}), Shape(left));
  };
  if (call.overload() == "scalar") return result(call.number("q"));
  Val q = call.tensor("q");
  if (!q.is_constant() || q.rank() > 1)
    b.refuse("aten.quantile.q", "which quantiles are wanted is known only at run time: give constants");
  std::vector<std::int64_t> line = left;
  line.insert(line.begin(), 1);
  std::vector<Val> parts;
  for (std::int64_t i = 0; i < q.shape().elements(); ++i)
    parts.push_back(calls::view(
        result(element_as_double(q.dtype(), b.graph()[q.id()].constant.data(), static_cast<std::size_t>(i))),
        Shape(line)));
  Val y = calls::cat(parts, 0);
  return q.rank() == 0 ? calls::view(y, Shape(left)) : y;
}
}  // namespace

AtenOp aten_quantile() {
  return {
      .schemas = {"quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
                  "interpolation=\"linear\") -> Tensor",
                  "quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
                  "interpolation=\"linear\") -> Tensor"},
      .summary = "the value that a share q of a dim's elements does not exceed",
      .rule = Rule::inside,
      .lower = {lower},
      .domain = {"scalar: x(3,7), 0.3, 1", "scalar: x(5,2), 0.5, 0, True", "scalar: x(2,3,4), 0.9",
                 "scalar: x(2,3), 1.0, -1", "scalar: x(2,6), 0.0, 1, True, interpolation='nearest'",
                 "scalar: x(2,6), 0.35, 1, interpolation='lower'", "scalar: x(2,6), 0.35, 1, interpolation='higher'",
                 "scalar: x(2,6), 0.35, 1, interpolation='midpoint'", "scalar: x(2,3), 0.25, None, True",
                 "scalar: n(8), 0.5", "default: x(3,7), const(u(0,1,4)), 1", "default: x(3,7), const(u(0,1)), 0",
                 "default: x(2,6), const(s(0,1,3)), 1, True"}};
}
}  // namespace tosaic
