// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/resample_weights.h"

#include <algorithm>
#include <cmath>

#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/lowering/creation.h"

namespace tosaic {
namespace {

// Keys' cubic convolution: two polynomials, joined at distance 1, ending at 2.
double cubic(double distance, double a) {
  const double t = std::fabs(distance);
  if (t < 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? a * (((t - 5) * t + 8) * t - 4) : 0;
}

double filtered(Filter filter, double distance) {
  return filter == Filter::cubic ? cubic(distance, -0.5) : std::max(0.0, 1 - std::fabs(distance));
}

Val along_last(Builder& b, Val x, const Resampled& dim, const std::vector<double>& weights) {
  Val matrix = b.constant({x.dtype(), Shape{dim.out, dim.in}, std::nullopt}, constant_bytes(x.dtype(), weights));
  return b.aten(aten::op::linear, {x, matrix, std::nullopt});
}

}  // namespace

// Positions in single precision, as PyTorch has them. What lies beyond an end counts as the end.
std::vector<double> cubic_weights(const Resampled& dim, bool align_corners) {
  std::vector<double> weights(static_cast<std::size_t>(dim.out * dim.in), 0.0);
  const auto step = align_corners
                        ? (dim.out > 1 ? static_cast<float>(dim.in - 1) / static_cast<float>(dim.out - 1) : 0.0f)
                        : static_cast<float>(dim.step);
  for (std::int64_t o = 0; o < dim.out; ++o) {
    const float at = align_corners ? step * static_cast<float>(o) : step * (static_cast<float>(o) + 0.5f) - 0.5f;
    const float below = std::floor(at);
    for (int tap = -1; tap <= 2; ++tap) {
      const std::int64_t i = std::clamp<std::int64_t>(static_cast<std::int64_t>(below) + tap, 0, dim.in - 1);
      weights[static_cast<std::size_t>(o * dim.in + i)] += cubic(static_cast<double>(at - below) - tap, -0.75);
    }
  }
  return weights;
}

std::vector<double> antialiased_weights(const Resampled& dim, Filter filter) {
  std::vector<double> weights(static_cast<std::size_t>(dim.out * dim.in), 0.0);
  const double widened = std::max(dim.step, 1.0), support = (filter == Filter::cubic ? 2.0 : 1.0) * widened;
  for (std::int64_t o = 0; o < dim.out; ++o) {
    const double centre = dim.step * (static_cast<double>(o) + 0.5);
    const auto first = std::max<std::int64_t>(static_cast<std::int64_t>(centre - support + 0.5), 0);
    const auto end = std::min<std::int64_t>(static_cast<std::int64_t>(centre + support + 0.5), dim.in);
    double* row = weights.data() + o * dim.in;
    double total = 0;
    for (std::int64_t i = first; i < end; ++i)
      total += row[i] = filtered(filter, (static_cast<double>(i) - centre + 0.5) / widened);
    for (std::int64_t i = first; i < end && total != 0; ++i) row[i] /= total;
  }
  return weights;
}

Vals lower_weighted_upsample(Builder& b, const Call& call, Filter filter, bool antialias) {
  Val x = call.tensor(call.schema().argument("input") ? "input" : "self");
  const auto dims = resampled_dims(b, call, x, 2);
  const bool align_corners = call.flag("align_corners");
  if (antialias && align_corners)
    b.refuse("aten." + call.schema().name + ".align_corners", "antialiasing with aligned corners");
  for (const Resampled& d : dims) creation::check_size(call, Shape{d.out, d.in});
  auto weights = [&](const Resampled& d) {
    return antialias ? antialiased_weights(d, filter) : cubic_weights(d, align_corners);
  };
  auto changes = [&](const Resampled& d) { return d.in != d.out || (!align_corners && d.step != 1.0); };
  if (dims[1].in > 1 && changes(dims[1])) x = along_last(b, x, dims[1], weights(dims[1]));
  if (dims[0].in > 1 && changes(dims[0]))
    x = calls::transpose(along_last(b, calls::transpose(x, 2, 3), dims[0], weights(dims[0])), 2, 3);
  // The weights of one pixel are 1: a broadcast.
  std::vector<std::int64_t> wide{x.dim(0), x.dim(1), dims[0].out, dims[1].out};
  return x.shape() == Shape(wide) ? x : b.aten(aten::op::expand, {x}, {{"size", std::move(wide)}});
}

}  // namespace tosaic
