// SPDX-License-Identifier: Apache-2.0
#include "ops/finer_table.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ir/tensor.h"
#include "ops/fixed_point.h"

namespace tosaic {
namespace {

constexpr int knots = 256;      // on either side of 0
constexpr int corrected = 254;  // of them; at those beyond, and where x saturates, nothing is added

// Quantised values of x at the knots of the second table.
std::vector<std::int64_t> at_knots(int finer) {
  std::vector<std::int64_t> quantised;
  for (std::int64_t k = -corrected; k <= corrected; ++k) quantised.push_back(k * (finest / finer));
  return quantised;
}

// What the table by itself gives at quantised values of x.
std::vector<double> of_lines(const TensorType& x, const std::vector<std::int64_t>& quantised, const TensorType& to,
                             const Builder::Function& f) {
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

// The reals that `to` has quantised values for.
struct Limits {
  double lowest, highest;
  explicit Limits(const TensorType& to) {
    const auto limits = quantised_range(to);
    const Scales& t = *to.scales;
    lowest = t.scale[0] * static_cast<double>(limits.lowest - t.zero_point[0]);
    highest = t.scale[0] * static_cast<double>(limits.highest - t.zero_point[0]);
  }
  double reach() const { return std::max(std::fabs(lowest), std::fabs(highest)); }
};

// Does f stay what it is, as far as `to` can tell, on either side beyond the knots next to 0?
bool flat_beyond(const TensorType& x, const TensorType& to, const Builder::Function& f, int finer) {
  constexpr double tellable = 0.25;  // of a step
  const Limits limits(to);
  for (const double side : {-1.0, 1.0}) {
    std::vector<double> at;
    for (int k = knots / finer; k <= knots; ++k) at.push_back(side * std::min(k * finest, 32767) * x.scales->scale[0]);
    std::vector<double> y = f(at);
    for (double& v : y) v = std::clamp(v, limits.lowest, limits.highest);
    const bool flat =
        std::ranges::all_of(y, [&](double v) { return std::fabs(v - y.front()) <= tellable * to.scales->scale[0]; });
    if (!flat) return false;
  }
  return true;
}

}  // namespace

Val finer_table(Builder& b, Val x, const TensorType& to, const Builder::Function& f, int finer) {
  if (x.dtype() != DType::i16 || !to.scales || finer <= 1) return b.table(x, to, f);
  const double step = x.type().scales->scale[0];
  const TensorType nearer{DType::i16, x.shape(), Scales{{step / finer}, {0}}};
  if (flat_beyond(x.type(), to, f, finer)) return b.table(b.rescale(x, nearer), to, f);
  // Between the two the sum has 16 bits, whatever the result has.
  const Limits limits(to);
  const TensorType half{DType::i16, x.shape(), Scales{{limits.reach() / 32767}, {0}}};
  const auto quantised = at_knots(finer);
  const std::vector<double> lines = of_lines(x.type(), quantised, half, f);
  if (lines.empty()) return b.table(x, to, f);
  std::vector<double> at;
  for (const std::int64_t q : quantised) at.push_back(static_cast<double>(q) * step);
  const std::vector<double> real = f(at);
  std::vector<double> missing(lines.size(), 0.0);
  double largest = 0;
  for (std::size_t i = 0; i < missing.size() && i < real.size(); ++i) {
    if (!std::isnan(real[i])) missing[i] = std::clamp(real[i], limits.lowest, limits.highest) - lines[i];
    largest = std::max(largest, std::fabs(missing[i]));
  }
  if (!(largest > 0)) return b.table(x, to, f);
  const Builder::Function correction = [&](const std::vector<double>& inputs) {
    std::vector<double> found;
    const auto of = [&](double k) {
      return std::fabs(k) > corrected ? 0.0 : missing[static_cast<std::size_t>(k + corrected)];
    };
    const double spacing = step * finest / finer;
    for (double v : inputs) {
      const double k = v / spacing, below = std::floor(k + 1e-6);
      found.push_back(of(below) + (of(below + 1) - of(below)) * std::max(k - below, 0.0));
    }
    return found;
  };
  const Val first = b.table(x, half, f);
  const Val near = b.rescale(x, nearer);  // others saturate
  const Val second = b.table(near, {DType::i16, x.shape(), Scales{{largest / 16383}, {0}}}, correction);
  const TensorType sum{DType::i32, x.shape(), Scales{{half.scales->scale[0] / 256}, {0}}};
  return b.rescale(b.add(b.rescale(first, sum), b.rescale(second, sum)), to.with(x.shape()));
}

}  // namespace tosaic
