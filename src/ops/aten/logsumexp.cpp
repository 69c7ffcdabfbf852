// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// log(sum(exp(x))) = m + log(sum(exp(x - m))) with m the maximum, made finite so that infinite rows stay infinite.
Vals lower(Builder&, const Call& call) {
  Val x = call.tensor("self");
  const auto axes = call.axes("dim", x.rank());
  const double largest = x.dtype() == DType::f16 ? 65504.0 : static_cast<double>(std::numeric_limits<float>::max() / 2);
  Val top = calls::clamp(calls::amax(x, axes, true), -largest, largest);
  Val y = calls::add(calls::log(calls::sum(calls::exp(calls::sub(x, top)), axes, true)), top);
  if (call.flag("keepdim")) return y;
  std::vector<std::int64_t> dims;
  for (int i = 0, next = 0; i < y.rank(); ++i) {
    if (next < static_cast<int>(axes.size()) && axes[static_cast<std::size_t>(next)] == i)
      ++next;
    else
      dims.push_back(y.dim(i));
  }
  return calls::view(y, Shape(dims));
}
}  // namespace

AtenOp aten_logsumexp() {
  return {.schemas = {"logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor"},
          .summary = "log(sum(exp(x))) without overflow",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(2,3,4), [1]", "x(2,3,4), [0,-1], True", "u(50,150,2,3), [1]"}};
}
}  // namespace tosaic
