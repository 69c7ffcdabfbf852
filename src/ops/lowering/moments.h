// SPDX-License-Identifier: Apache-2.0
// Mean and variance in two passes, and what is built on them: the norms, var, std. Written in ATen calls, for
// composites (Rule::inside).
#pragma once
#include <algorithm>
#include <optional>
#include <vector>

#include "ops/lowering/calls.h"
#include "ops/lowering/reduce.h"
#include "ops/op.h"

namespace tosaic {

struct Moments {
  Val mean, centred, variance;  // mean and variance keep the reduced dims as size 1
};
// variance = sum((x - mean)^2) / (n - correction), NaN or infinite where PyTorch's is.
inline Moments moments(Val x, const std::vector<int>& axes, double correction) {
  Moments m;
  m.mean = calls::mean(x, axes, true);
  m.centred = calls::sub(x, m.mean);
  Val squares = calls::mul(m.centred, m.centred);
  const double n = static_cast<double>(elements_along(x, axes));
  m.variance = correction == 0 ? calls::mean(squares, axes, true)
                               : calls::mul(calls::sum(squares, axes, true), 1.0 / std::max(n - correction, 0.0));
  return m;
}

struct Normalised {
  Val y, mean, rstd, variance;
};
inline Normalised normalised(Val x, const std::vector<int>& axes, double eps) {
  Moments m = moments(x, axes, 0.0);
  Val rstd = calls::rsqrt(calls::add(m.variance, eps));
  return {calls::mul(m.centred, rstd), m.mean, rstd, m.variance};
}

// y * weight + bias, both seen as `shape`.
inline Val affine(Val y, std::optional<Val> weight, std::optional<Val> bias, const Shape& shape) {
  if (weight) y = calls::mul(y, calls::view(*weight, shape));
  if (bias) y = calls::add(y, calls::view(*bias, shape));
  return y;
}

// The trailing dims that `normalized_shape` names.
inline std::vector<int> normalised_axes(Builder& b, const Call& call, Val x) {
  const auto shape = call.ints("normalized_shape");
  const int first = x.rank() - static_cast<int>(shape.size());
  std::vector<int> axes;
  if (shape.empty()) b.refuse("aten." + call.schema().name + ".shape", "normalized_shape names no dims");
  for (int i = 0; i < static_cast<int>(shape.size()); ++i) {
    if (first < 0 || x.dim(first + i) != shape[static_cast<std::size_t>(i)])
      b.refuse("aten." + call.schema().name + ".shape",
               "normalized_shape " + to_string(Shape(shape)) + " does not end shape " + to_string(x.shape()));
    axes.push_back(first + i);
  }
  return axes;
}

// The arguments that var, std, var_mean and std_mean share, in their three spellings.
struct VarianceCall {
  Val x;
  std::vector<int> axes;
  double correction;
  bool keep;
};
inline VarianceCall variance_call(const Call& call) {
  Val x = call.tensor("self");
  const auto has = [&](std::string_view name) { return call.schema().argument(name) != nullptr; };
  VarianceCall v{x, {}, 1.0, false};
  v.axes = reduced_axes(call, x);
  if (has("unbiased")) v.correction = call.flag("unbiased") ? 1.0 : 0.0;
  if (has("correction") && call.has("correction")) v.correction = call.number("correction");
  v.keep = keeps_dims(call);
  return v;
}
// Drops the reduced dims of a kept result, as an ATen view.
inline Val without_axes(Val y, const VarianceCall& v) {
  if (v.keep) return y;
  std::vector<std::int64_t> dims;
  for (int i = 0; i < y.rank(); ++i)
    if (std::find(v.axes.begin(), v.axes.end(), i) == v.axes.end()) dims.push_back(y.dim(i));
  return calls::view(y, Shape(dims));
}

}  // namespace tosaic
