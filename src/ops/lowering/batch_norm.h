// SPDX-License-Identifier: Apache-2.0
// Batch normalisation with known statistics: y = x * scale + shift per channel, shared by batch_norm's spellings
// and instance_norm.
#pragma once
#include <cmath>
#include <optional>
#include <vector>

#include "ops/lowering/calls.h"
#include "ops/lowering/moments.h"
#include "ops/op.h"

namespace tosaic {

inline Shape channel_shape(Val x) {
  std::vector<std::int64_t> dims(static_cast<std::size_t>(x.rank()) - 1, 1);
  dims[0] = x.dim(1);
  return Shape(dims);
}

// scale = weight / sqrt(var + eps), shift = bias - mean * scale: computed here, in double, when all are constant.
inline Val batch_normalised(Val x, std::optional<Val> weight, std::optional<Val> bias, Val mean, Val variance,
                            double eps) {
  Builder& b = x.builder();
  const auto fits = [&](const std::optional<Val>& v) { return !v || v->shape().elements() == x.dim(1); };
  if (x.rank() < 2 || !fits(mean) || !fits(variance) || !fits(weight) || !fits(bias))
    b.refuse("aten.batch_norm.shape", "statistics of shape " + to_string(mean.shape()) +
                                          ", or a weight or a bias, that do not fit an input of shape " +
                                          to_string(x.shape()));
  const Shape shape = channel_shape(x);
  auto known = [](const std::optional<Val>& v) { return !v || (v->is_constant() && is_float(v->dtype())); };
  if (known(weight) && known(bias) && known(mean) && known(variance)) {
    const auto n = static_cast<std::size_t>(x.dim(1));
    auto at = [&](const std::optional<Val>& v, std::size_t i, double otherwise) {
      return v ? element_as_double(v->dtype(), b.graph()[v->id()].constant.data(), i) : otherwise;
    };
    std::vector<double> scale, shift;
    for (std::size_t i = 0; i < n; ++i) {
      scale.push_back(at(weight, i, 1.0) / std::sqrt(at(variance, i, 1.0) + eps));
      shift.push_back(at(bias, i, 0.0) - at(mean, i, 0.0) * scale.back());
    }
    const DType dtype = is_float(x.dtype()) ? x.dtype() : mean.dtype();
    Val s = b.constant({dtype, shape, {}}, constant_bytes(dtype, scale)),
        t = b.constant({dtype, shape, {}}, constant_bytes(dtype, shift));
    return calls::add(calls::mul(x, s), t);
  }
  Val rstd = calls::rsqrt(calls::add(variance, eps));
  Val y = calls::mul(calls::sub(x, calls::view(mean, shape)), calls::view(rstd, shape));
  return affine(y, weight, bias, shape);
}

}  // namespace tosaic
