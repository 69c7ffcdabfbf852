// SPDX-License-Identifier: Apache-2.0
#include "ops/builder_domain.h"

#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

namespace tosaic {
namespace {

struct DomainEnd {
  double x, y;
};

// The last number on the way from `inside` to `outside` at which f is defined; each round of 255 places between takes 8
// bits off the interval.
DomainEnd domain_end_of(const RealFunction& f, DomainEnd inside, double outside) {
  for (int round = 0; round < 8; ++round) {
    std::vector<double> between;
    for (int i = 1; i < 256; ++i) between.push_back(inside.x + (outside - inside.x) * i / 256);
    const auto values = f(between);
    std::size_t defined = 0;
    while (defined < values.size() && !std::isnan(values[defined])) ++defined;
    if (defined < values.size()) outside = between[defined];
    if (defined > 0) inside = {between[defined - 1], values[defined - 1]};
  }
  return inside;
}

// The knot beyond an end of the domain, such that the line from the knot within goes through the end of the domain's
// value. Too steep a line would only be clipped.
double knot_beyond(const DomainEnd& within, const DomainEnd& domain_end, double beyond) {
  const double ratio = (beyond - within.x) / (domain_end.x - within.x);
  if (!std::isfinite(ratio) || ratio > 16 || !std::isfinite(within.y) || !std::isfinite(domain_end.y))
    return domain_end.y;
  return within.y + (domain_end.y - within.y) * ratio;
}

void fill_run(const RealFunction& f, const std::vector<double>& x, std::vector<double>& y, std::size_t first,
              std::size_t end, bool interpolated) {
  constexpr double nowhere = std::numeric_limits<double>::infinity();
  DomainEnd below{-nowhere, 0}, above{nowhere, 0};
  if (first > 0) below = domain_end_of(f, {x[first - 1], y[first - 1]}, x[first]);
  if (end < x.size()) above = domain_end_of(f, {x[end], y[end]}, x[end - 1]);
  for (std::size_t i = first; i < end; ++i) y[i] = x[i] - below.x <= above.x - x[i] ? below.y : above.y;
  if (!interpolated || (end - first == 1 && first > 0 && end < x.size())) return;
  if (first > 0) y[first] = knot_beyond({x[first - 1], y[first - 1]}, below, x[first]);
  if (end < x.size()) y[end - 1] = knot_beyond({x[end], y[end]}, above, x[end - 1]);
}

}  // namespace

void close_domain(const RealFunction& f, const std::vector<double>& x, std::vector<double>& y, bool interpolated) {
  for (std::size_t first = 0; first < y.size(); ++first) {
    if (!std::isnan(y[first])) continue;
    std::size_t end = first;
    while (end < y.size() && std::isnan(y[end])) ++end;
    if (first == 0 && end == y.size()) return;  // defined nowhere
    fill_run(f, x, y, first, end, interpolated);
    first = end;
  }
  if (y.size() < 2) return;
  for (const auto& [at, neighbour] :
       {std::pair{std::size_t{0}, std::size_t{1}}, std::pair{y.size() - 1, y.size() - 2}}) {
    if (!std::isinf(y[at])) continue;
    const double within = f({x[at] + (x[neighbour] - x[at]) * 1e-6}).at(0);
    if (!std::isnan(within)) y[at] = std::copysign(y[at], within);
  }
}

}  // namespace tosaic
