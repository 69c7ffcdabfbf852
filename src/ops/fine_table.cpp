// SPDX-License-Identifier: Apache-2.0
#include "ops/fine_table.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ir/tensor.h"
#include "ops/fixed_point.h"

namespace tosaic {
namespace {

// What the table by itself gives at quantised values -fine_values...fine_values of x.
std::vector<double> of_lines(const TensorType& x, const TensorType& to, const Builder::Function& f) {
  std::vector<std::int64_t> quantised;
  for (std::int64_t q = -fine_values; q <= fine_values; ++q) quantised.push_back(q);
  const Shape shape{static_cast<std::int64_t>(quantised.size())};
  Graph scratch;
  Builder b(scratch);
  b.fold(true);
  const Val y = b.table(b.constant(x.with(shape), constant_bytes(DType::i16, quantised)), to.with(shape), f);
  const Value& found = scratch[y.id()];
  std::vector<double> values;
  for (std::size_t i = 0; found.is_constant() && i < quantised.size(); ++i)
    values.push_back(to.scales->scale[0] * static_cast<double>(element_as_integer(to.dtype, found.constant.data(), i) -
                                                               to.scales->zero_point[0]));
  return values;
}

}  // namespace

Val fine_table(Builder& b, Val x, const TensorType& to, const Builder::Function& f) {
  if (x.dtype() != DType::i16 || !to.scales) return b.table(x, to, f);
  // Between the two the sum has 16 bits, whatever the result has.
  const auto limits = quantised_range(to);
  const Scales& t = *to.scales;
  const double lowest = t.scale[0] * static_cast<double>(limits.lowest - t.zero_point[0]);
  const double highest = t.scale[0] * static_cast<double>(limits.highest - t.zero_point[0]);
  const double reach = std::max(std::fabs(lowest), std::fabs(highest));
  const TensorType half{DType::i16, x.shape(), Scales{{reach / 32767}, {0}}};
  const std::vector<double> lines = of_lines(x.type(), half, f);
  if (lines.empty()) return b.table(x, to, f);
  const double step = x.type().scales->scale[0];
  std::vector<double> at;
  for (int q = -fine_values; q <= fine_values; ++q) at.push_back(q * step);
  const std::vector<double> real = f(at);
  std::vector<double> missing(lines.size(), 0.0);
  double largest = 0;
  for (std::size_t i = 0; i < missing.size() && i < real.size(); ++i) {
    if (!std::isnan(real[i])) missing[i] = std::clamp(real[i], lowest, highest) - lines[i];
    largest = std::max(largest, std::fabs(missing[i]));
  }
  if (!(largest > 0)) return b.table(x, to, f);
  const Builder::Function correction = [&](const std::vector<double>& inputs) {
    std::vector<double> found;
    const auto of = [&](double q) {
      return std::fabs(q) > fine_values ? 0.0 : missing[static_cast<std::size_t>(q + fine_values)];
    };
    for (double v : inputs) {
      const double q = v / step, below = std::floor(q + 1e-6);
      found.push_back(of(below) + (of(below + 1) - of(below)) * std::max(q - below, 0.0));
    }
    return found;
  };
  const Val first = b.table(x, half, f);
  const Val near = b.rescale(x, {DType::i16, x.shape(), Scales{{step / 128}, {0}}});  // others saturate
  const Val second = b.table(near, {DType::i16, x.shape(), Scales{{largest / 16383}, {0}}}, correction);
  const TensorType sum{DType::i32, x.shape(), Scales{{half.scales->scale[0] / 256}, {0}}};
  return b.rescale(b.add(b.rescale(first, sum), b.rescale(second, sum)), to.with(x.shape()));
}

}  // namespace tosaic
